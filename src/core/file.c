#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

static int refuse(const char *path, int reason)
{
    return sl_error(SL_ERR_SYSTEM, "%s: cannot write: %s", path, strerror(reason));
}

int sl_file_create(struct sl_new_file *out, const char *path)
{
    struct stat status;
    out->file = NULL;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return refuse(path, EISDIR);
    if (snprintf(out->path, sizeof out->path, "%s", path) >= (int)sizeof out->path ||
        snprintf(out->temporary, sizeof out->temporary, "%s.%ld.tmp", path, (long)getpid()) >=
            (int)sizeof out->temporary)
        return refuse(path, ENAMETOOLONG);
    out->file = fopen(out->temporary, "wbe");
    return out->file ? 0 : refuse(path, errno);
}

int sl_file_probe(const char *path)
{
    struct sl_new_file probe;
    if (!path)
        return 0;
    if (sl_file_create(&probe, path))
        return SL_ERR_USAGE; /* the sentence names the file */
    sl_file_discard(&probe);
    return 0;
}

int sl_file_commit(struct sl_new_file *out, bool good)
{
    errno = 0;
    good = good && !ferror(out->file) && fflush(out->file) == 0 && fsync(fileno(out->file)) == 0;
    int reason = errno;
    if (fclose(out->file) && good) {
        good = false;
        reason = errno;
    }
    out->file = NULL;
    if (good && rename(out->temporary, out->path)) {
        good = false;
        reason = errno;
    }
    if (!good) {
        unlink(out->temporary);
        return refuse(out->path, reason ? reason : ENOSPC);
    }
    sl_file_sync_directory(out->path);
    return 0;
}

void sl_file_discard(struct sl_new_file *out)
{
    fclose(out->file);
    unlink(out->temporary);
    out->file = NULL;
}

void sl_file_sync_directory(const char *path)
{
    char *copy = strdup(path);
    const int directory = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (directory >= 0) {
        fsync(directory);
        close(directory);
    }
    free(copy);
}
