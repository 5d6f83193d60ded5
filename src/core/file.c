#include "core/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

static int refuse(const char *path, int reason)
{
    return sl_error(SL_ERR_SYSTEM, "%s: cannot write: %s", path, strerror(reason));
}

/* ---- Names ---- */

/* Prints into `to`, of PATH_MAX bytes; false: no room. */
static bool print_path(char *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool print_path(char *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(to, PATH_MAX, format, arguments);
    va_end(arguments);
    return length < PATH_MAX;
}

/* Where the last part of `path` begins. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}

/* `path` without symbolic links at its end, also where the last one points to nothing. Returns 0
 * or an errno. */
static int follow_links(const char *path, char target[PATH_MAX])
{
    enum { MOST_LINKS = 40 };
    char link[PATH_MAX], next[PATH_MAX];
    if (!print_path(target, "%s", path))
        return ENAMETOOLONG;
    for (int links = 0; links <= MOST_LINKS; links++) {
        const ssize_t length = readlink(target, link, sizeof link - 1);
        if (length < 0)
            return 0; /* what is wrong with it, whoever opens it finds out */
        link[length] = '\0';
        const int folder = link[0] == '/' ? 0 : (int)folder_length(target);
        if (!print_path(next, "%.*s%s", folder, target, link))
            return ENAMETOOLONG;
        memcpy(target, next, sizeof next);
    }
    return ELOOP;
}

/* The folder that holds `path`, opened, or -1. */
static int open_folder(const char *path)
{
    char *copy = strdup(path);
    const int folder = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(copy);
    return folder;
}

bool sl_file_same(const char *a, const char *b)
{
    char target[2][PATH_MAX];
    struct stat status[2];
    if (!a || !b || follow_links(a, target[0]) || follow_links(b, target[1]))
        return false;
    const bool there = stat(target[0], &status[0]) == 0;
    if (there != (stat(target[1], &status[1]) == 0))
        return false;
    if (!there) { /* then it is the folder and the name that count */
        if (strcmp(target[0] + folder_length(target[0]), target[1] + folder_length(target[1])) != 0)
            return false;
        for (int t = 0; t < 2; t++) {
            const int folder = open_folder(target[t]);
            const bool good = folder >= 0 && fstat(folder, &status[t]) == 0;
            if (folder >= 0)
                close(folder);
            if (!good)
                return false;
        }
    }
    return status[0].st_dev == status[1].st_dev && status[0].st_ino == status[1].st_ino;
}

/* ---- Temporary files ---- */

/* The process that `name` is the temporary file of, as a temporary file of `whole`; 0: it is none.
 */
static long owner_of(const char *name, const char *whole)
{
    const size_t length = strlen(whole);
    char *end;
    if (strncmp(name, whole, length) != 0 || name[length] != '.' || name[length + 1] < '1' ||
        name[length + 1] > '9')
        return 0;
    const long process = strtol(name + length + 1, &end, 10);
    return strcmp(end, ".tmp") == 0 && process <= INT_MAX ? process : 0;
}

/* Whether nobody writes to the file: its process ended, and no process of another machine or
 * container, where that number is somebody else's, holds its lock. */
static bool is_stale(int folder, const char *name, long process)
{
    if (kill((pid_t)process, 0) == 0 || errno != ESRCH)
        return false;
    const int file = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    const bool stale = file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0;
    if (file >= 0)
        close(file);
    return stale;
}

/* Removes temporary files of `target` that killed processes left. */
static void remove_stale(const char *target)
{
    const int folder = open_folder(target);
    DIR *all = folder >= 0 ? fdopendir(folder) : NULL;
    const char *whole = target + folder_length(target);
    if (!all) {
        if (folder >= 0)
            close(folder);
        return;
    }
    for (struct dirent *entry; (entry = readdir(all));) {
        const long process = owner_of(entry->d_name, whole);
        if (process && is_stale(folder, entry->d_name, process))
            unlinkat(folder, entry->d_name, 0);
    }
    closedir(all);
}

/* ---- New files ---- */

int sl_file_create(struct sl_new_file *out, const char *path)
{
    struct stat status;
    out->file = NULL;
    const int reason = follow_links(path, out->target);
    if (reason || !print_path(out->path, "%s", path) ||
        !print_path(out->temporary, "%s.%ld.tmp", out->target, (long)getpid()))
        return refuse(path, reason ? reason : ENAMETOOLONG);
    if (stat(out->target, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return refuse(path, EISDIR);
        if (!S_ISREG(status.st_mode))
            return sl_error(SL_ERR_SYSTEM, "%s: is no regular file (expected one, or a new name)",
                            path);
    }
    remove_stale(out->target);
    out->file = fopen(out->temporary, "wbe");
    if (!out->file)
        return refuse(path, errno);
    flock(fileno(out->file), LOCK_EX | LOCK_NB); /* where there are no locks, nobody asks */
    return 0;
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
    if (good && rename(out->temporary, out->target)) {
        good = false;
        reason = errno;
    }
    if (!good) {
        unlink(out->temporary);
        return refuse(out->path, reason ? reason : ENOSPC);
    }
    sl_file_sync_directory(out->target);
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
    const int folder = open_folder(path);
    if (folder >= 0) {
        fsync(folder);
        close(folder);
    }
}
