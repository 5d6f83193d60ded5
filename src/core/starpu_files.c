#include "core/starpu_files.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"

const char *sl_starpu_files_home(void)
{
    static const char *const names[] = {"XDG_CACHE_HOME", "STARPU_HOME", "HOME"};
    const char *home = NULL;
    for (size_t n = 0; n < sizeof names / sizeof *names && !home; n++)
        home = getenv(names[n]);
    return home;
}

/* Write a file of as many bytes as StarPU's files take, and remove it: only writing shows a quota.
 * Return 0 or errno. */
static int try_to_write(const char *directory)
{
    enum { BYTES = 64 << 10 };
    static const char bytes[BYTES];
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/.starling-XXXXXX", directory) >= (int)sizeof path)
        return ENAMETOOLONG;
    const int file = mkstemp(path);
    if (file < 0)
        return errno;
    errno = ENOSPC; /* a write that stops halfway sets no errno */
    int code = write(file, bytes, BYTES) == BYTES ? 0 : errno;
    if (close(file) && !code) /* NFS reports a full disk at close */
        code = errno;
    unlink(path);
    return code;
}

/* Find or make a folder in /tmp that nobody else can write to. A folder that is there may be
 * somebody else's. */
static void find_own_place(char path[PATH_MAX])
{
    enum { TRIES = 10 };
    struct stat status;
    for (int t = 0; t < TRIES; t++) {
        snprintf(path, PATH_MAX, t ? "/tmp/starling-%ld-%d" : "/tmp/starling-%ld", (long)getuid(),
                 t);
        mkdir(path, 0700);
        if (lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == getuid() &&
            (status.st_mode & 022) == 0)
            return;
    }
    strcpy(path, "/tmp/starling-XXXXXX"); /* all ten names are taken */
    if (!mkdtemp(path))
        sl_note("%s: %s", path, strerror(errno));
}

void sl_starpu_files_find_room(void)
{
    char path[PATH_MAX];
    const char *wanted = sl_starpu_files_home();
    int code = wanted ? 0 : ENOENT;
    if (wanted && mkdir(wanted, 0777) && errno != EEXIST)
        code = errno;
    if (!code)
        code = try_to_write(wanted);
    if (!code)
        return;
    find_own_place(path);
    if (wanted)
        sl_note("%s: %s; StarPU keeps its measurements of this machine in %s (XDG_CACHE_HOME, else "
                "STARPU_HOME, names another place)",
                wanted, strerror(code), path);
    if (getenv("XDG_CACHE_HOME"))
        setenv("XDG_CACHE_HOME", path, 1);
    setenv("STARPU_HOME", path, 1);
}

static int remove_empty(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)where;
    if (type == FTW_F && status->st_size == 0)
        unlink(path);
    return 0;
}

void sl_starpu_files_remove_empty(void)
{
    enum { DIRECTORIES = 8 }; /* open directories of the walk */
    char path[PATH_MAX];
    const char *home = sl_starpu_files_home();
    if (home && snprintf(path, sizeof path, "%s/.starpu/sampling", home) < (int)sizeof path)
        nftw(path, remove_empty, DIRECTORIES, FTW_PHYS);
}
