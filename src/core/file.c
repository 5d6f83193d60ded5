#include "core/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

static int refuse(const char *path, int reason)
{
    return sl_error(SL_ERR_SYSTEM, "%s: cannot write: %s", path, strerror(reason));
}

/* ---- Names ---- */

/* Print into `to`, of PATH_MAX bytes; return false without room. */
static bool print_path(char *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool print_path(char *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(to, PATH_MAX, format, arguments);
    va_end(arguments);
    return length < PATH_MAX;
}

/* Return the length of the folder's part of `path`, where the last name begins. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}

/* Write `path` without symbolic links at its end to `target`, also where the last link points to
 * nothing. Return 0 or an errno. */
static int follow_links(const char *path, char target[PATH_MAX])
{
    enum { MOST_LINKS = 40 };
    char link[PATH_MAX], next[PATH_MAX];
    if (!print_path(target, "%s", path))
        return ENAMETOOLONG;
    for (int links = 0; links <= MOST_LINKS; links++) {
        const ssize_t length = readlink(target, link, sizeof link - 1);
        if (length < 0)
            return 0; /* opening the file will report what is wrong with it */
        link[length] = '\0';
        const int folder = link[0] == '/' ? 0 : (int)folder_length(target);
        if (!print_path(next, "%.*s%s", folder, target, link))
            return ENAMETOOLONG;
        memcpy(target, next, sizeof next);
    }
    return ELOOP;
}

/* Return a descriptor of the folder that holds `path`, or -1. */
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
    if (!there) { /* a name without a file: compare folders and names */
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

/* ---- Temporary names ---- */

/* A temporary name is TARGET.XXXXXXXX.tmp, with hexadecimal digits. The lock of an open temporary
 * file says that somebody writes to it: process numbers mean nothing in another container. */

enum { DIGITS = 8 };

static bool is_temporary_of(const char *name, const char *whole)
{
    const size_t length = strlen(whole);
    if (strncmp(name, whole, length) != 0 || name[length] != '.')
        return false;
    const char *digits = name + length + 1;
    return strspn(digits, "0123456789abcdef") == DIGITS && strcmp(digits + DIGITS, ".tmp") == 0;
}

/* Lock an opened file or folder for as long as it is open. Return false where somebody else holds
 * it, or took it for a stale one and removed it meanwhile. On disks without locks, nothing counts
 * as stale. */
static bool keep(int file, const char *path)
{
    struct stat opened, there;
    if (flock(file, LOCK_EX | LOCK_NB))
        return errno != EWOULDBLOCK;
    return fstat(file, &opened) == 0 && stat(path, &there) == 0 && opened.st_ino == there.st_ino &&
           opened.st_dev == there.st_dev;
}

/* Return whether a name is of a kind that we write into temporary folders: an array, a document or
 * an archive, finished or not. */
static bool is_ours(const char *name)
{
    return strstr(name, ".npy") || strstr(name, ".json") || strncmp(name, "archive", 7) == 0 ||
           strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Remove a folder that holds only files of ours; leave any other folder. */
static void remove_folder(int parent, const char *name)
{
    const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *all = folder >= 0 ? fdopendir(folder) : NULL;
    bool ours = true;
    if (!all) {
        if (folder >= 0)
            close(folder);
        return;
    }
    for (struct dirent *entry; (entry = readdir(all));)
        ours = ours && is_ours(entry->d_name);
    rewinddir(all);
    for (struct dirent *entry; ours && (entry = readdir(all));)
        unlinkat(folder, entry->d_name, 0); /* fails on "." and "..", as it should */
    closedir(all);
    unlinkat(parent, name, AT_REMOVEDIR);
}

static void remove_if_stale(int parent, const char *name)
{
    struct stat status;
    if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW))
        return;
    const bool folder = S_ISDIR(status.st_mode);
    const int file =
        openat(parent, name,
               (folder ? O_RDONLY | O_DIRECTORY : O_RDWR) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) {
        if (folder)
            remove_folder(parent, name);
        else
            unlinkat(parent, name, 0);
    }
    close(file);
}

/* Remove temporary files and folders of `target` that killed processes left. */
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
    for (struct dirent *entry; (entry = readdir(all));)
        if (is_temporary_of(entry->d_name, whole))
            remove_if_stale(folder, entry->d_name);
    closedir(all);
}

/* Create and open a new temporary file or folder whose name is unused: do not follow a link at this
 * name. Return a descriptor, or -1 and set errno. */
static int open_temporary(const char *target, bool folder, mode_t mode, char temporary[PATH_MAX])
{
    enum { TRIES = 100 };
    for (int t = 0; t < TRIES; t++) {
        uint32_t number;
        if (getrandom(&number, sizeof number, 0) != sizeof number)
            return -1;
        if (!print_path(temporary, "%s.%08" PRIx32 ".tmp", target, number)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        const int file = !folder ? open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode)
                         : mkdir(temporary, mode) == 0
                             ? open(temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                             : -1;
        if (file < 0 && errno != EEXIST) {
            const int reason = errno;
            if (folder)
                rmdir(temporary);
            errno = reason;
            return -1;
        }
        if (file >= 0 && keep(file, temporary))
            return file;
        if (file >= 0)
            close(file);
    }
    errno = EEXIST;
    return -1;
}

/* ---- New files ---- */

int sl_file_create(struct sl_new_file *out, const char *path)
{
    struct stat status;
    out->file = NULL;
    const int reason = follow_links(path, out->target);
    if (reason || !print_path(out->path, "%s", path))
        return refuse(path, reason ? reason : ENAMETOOLONG);
    const bool replaces = stat(out->target, &status) == 0;
    if (replaces && S_ISDIR(status.st_mode))
        return refuse(path, EISDIR);
    if (replaces && !S_ISREG(status.st_mode))
        return sl_error(SL_ERR_SYSTEM, "%s: is no regular file (expected one, or a new name)",
                        path);
    remove_stale(out->target);
    const int file = open_temporary(out->target, false, replaces ? 0600 : 0666, out->temporary);
    if (file >= 0 && replaces)
        (void)fchmod(file, status.st_mode & 0777); /* before a byte is in it */
    out->file = file >= 0 ? fdopen(file, "wb") : NULL;
    if (out->file)
        return 0;
    const int cause = errno;
    if (file >= 0) {
        close(file);
        unlink(out->temporary);
    }
    return refuse(path, cause);
}

int sl_file_probe(const char *path)
{
    struct sl_new_file probe;
    if (!path)
        return 0;
    if (sl_file_create(&probe, path))
        return SL_ERR_SYSTEM; /* the sentence names the file */
    sl_file_discard(&probe);
    return 0;
}

/* Bring all bytes to the disk and close the stream. *held keeps the lock until the file has its
 * name. Return 0 or an errno, which the caller has set if not `good`. */
static int finish(struct sl_new_file *out, bool good, int *held)
{
    int reason = good ? 0 : errno ? errno : ENOSPC;
    errno = 0;
    if (good && (ferror(out->file) || fflush(out->file) || fsync(fileno(out->file))))
        reason = errno ? errno : ENOSPC;
    *held = dup(fileno(out->file));
    if (fclose(out->file) && !reason)
        reason = errno ? errno : ENOSPC;
    out->file = NULL;
    return reason;
}

/* Remove the temporary file if there is a reason, and give its lock up. */
static void let_go(struct sl_new_file *out, int reason, int held)
{
    if (reason)
        unlink(out->temporary);
    if (held >= 0)
        close(held);
}

int sl_file_commit(struct sl_new_file *out, bool good)
{
    int held, reason = finish(out, good, &held);
    if (!reason && rename(out->temporary, out->target))
        reason = errno;
    let_go(out, reason, held);
    if (reason)
        return refuse(out->path, reason);
    sl_file_sync_directory(out->target);
    return 0;
}

/* Give the file at `path` a second, temporary name; where the disk knows no second names, rename
 * it. Return false where it gets none. */
static bool keep_old(const char *path, char old[PATH_MAX])
{
    uint32_t number;
    return getrandom(&number, sizeof number, 0) == sizeof number &&
           print_path(old, "%s.%08" PRIx32 ".tmp", path, number) &&
           (link(path, old) == 0 || rename(path, old) == 0);
}

/* Give `path` its old file back, or remove the new file if no file was there. */
static void restore(const char *path, const char *old, bool kept, bool replaces)
{
    if (kept && rename(old, path) && access(old, F_OK) == 0 && unlink(path) == 0)
        link(old, path); /* some disks refuse to rename over a file */
    if (!kept && !replaces)
        unlink(path);
}

/* Rename both finished files or none. Set *failed to the file that cannot be renamed. Return 0 or
 * an errno. */
static int rename_both(struct sl_new_file *first, struct sl_new_file *second,
                       struct sl_new_file **failed)
{
    struct stat status;
    char old[PATH_MAX];
    const bool replaces = stat(first->target, &status) == 0,
               kept = replaces && keep_old(first->target, old);
    int reason = 0;
    *failed = first;
    if (rename(first->temporary, first->target)) {
        reason = errno;
    } else if (rename(second->temporary, second->target)) {
        reason = errno;
        *failed = second;
    }
    if (reason)
        restore(first->target, old, kept, replaces || *failed == first);
    if (kept && access(first->target, F_OK) == 0)
        unlink(old); /* a second name of the old file; gone where it was restored */
    return reason;
}

int sl_file_create_both(struct sl_new_file *first, const char *path, struct sl_new_file *second,
                        const char *other)
{
    int code = sl_file_create(first, path);
    if (code)
        return code;
    code = sl_file_create(second, other);
    if (code)
        sl_file_discard(first);
    return code;
}

int sl_file_commit_both(struct sl_new_file *first, bool first_good, struct sl_new_file *second,
                        bool second_good)
{
    const int error = errno; /* of the file that is not good */
    int held[2];
    struct sl_new_file *failed = first;
    int reason = finish(first, first_good, &held[0]);
    errno = error;
    const int other = finish(second, second_good, &held[1]);
    if (!reason && other) {
        reason = other;
        failed = second;
    }
    if (!reason)
        reason = rename_both(first, second, &failed);
    let_go(first, reason, held[0]);
    let_go(second, reason, held[1]);
    if (reason)
        return refuse(failed->path, reason);
    sl_file_sync_directory(first->target);
    sl_file_sync_directory(second->target);
    return 0;
}

void sl_file_discard(struct sl_new_file *out)
{
    fclose(out->file);
    unlink(out->temporary);
    out->file = NULL;
}

/* ---- New folders ---- */

int sl_folder_create(struct sl_new_folder *out, const char *path)
{
    const int reason = follow_links(path, out->target);
    out->file = -1;
    if (reason || !print_path(out->path, "%s", path))
        return refuse(path, reason ? reason : ENAMETOOLONG);
    remove_stale(out->target);
    out->file = open_temporary(out->target, true, 0777, out->temporary);
    return out->file >= 0 ? 0 : refuse(path, errno);
}

int sl_folder_commit(struct sl_new_folder *out)
{
    const bool good = fsync(out->file) == 0 && rename(out->temporary, out->target) == 0;
    const int reason = errno;
    if (!good) {
        sl_folder_discard(out);
        return refuse(out->path, reason);
    }
    close(out->file);
    sl_file_sync_directory(out->target);
    return 0;
}

int sl_folder_commit_file(struct sl_new_folder *out, const char *name)
{
    struct stat status;
    char inner[PATH_MAX];
    const bool replaces = stat(out->target, &status) == 0;
    bool good = print_path(inner, "%s/%s", out->temporary, name);
    const int file = good ? open(inner, O_RDWR | O_CLOEXEC) : -1;
    good = file >= 0 && (!replaces || fchmod(file, status.st_mode & 0777) == 0) &&
           fsync(file) == 0 && rename(inner, out->target) == 0;
    const int reason = errno;
    if (file >= 0)
        close(file);
    sl_folder_discard(out);
    if (!good)
        return refuse(out->path, reason);
    sl_file_sync_directory(out->target);
    return 0;
}

void sl_folder_discard(struct sl_new_folder *out)
{
    remove_folder(AT_FDCWD, out->temporary);
    close(out->file);
}

/* ---- Files to read ---- */

/* Return "cannot open: " and what an errno means, until the thread's next call. */
static const char *name_failure(int reason)
{
    static _Thread_local char text[128];
    snprintf(text, sizeof text, "cannot open: %s", strerror(reason));
    return text;
}

int sl_file_open(const char *path, const char **why)
{
    struct stat status;
    const int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* waits for no pipe */
    if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode))
        return file;
    *why = file < 0 ? name_failure(errno) : "is no regular file";
    if (file >= 0)
        close(file);
    return -1;
}

FILE *sl_file_stream(const char *path, const char **why)
{
    const int file = sl_file_open(path, why);
    FILE *stream = file >= 0 ? fdopen(file, "rb") : NULL;
    if (file >= 0 && !stream) {
        *why = name_failure(errno);
        close(file);
    }
    return stream;
}

int sl_file_map(const char *path, const char *expected, void **bytes, size_t *size,
                struct stat *status)
{
    struct stat own;
    const char *why;
    status = status ? status : &own;
    const int file = sl_file_open(path, &why);
    if (file < 0)
        return sl_error(SL_ERR_DATA, "%s: %s (expected %s)", path, why, expected);
    if (fstat(file, status)) {
        const int reason = errno;
        close(file);
        return sl_error(SL_ERR_SYSTEM, "%s: cannot read its size: %s", path, strerror(reason));
    }
    *size = (size_t)status->st_size;
    *bytes = *size ? mmap(NULL, *size, PROT_READ, MAP_PRIVATE, file, 0) : NULL;
    const int reason = errno;
    close(file);
    return *bytes != MAP_FAILED
               ? 0
               : sl_error(SL_ERR_SYSTEM, "%s: cannot map: %s", path, strerror(reason));
}

/* ---- Files and pipes to write to ---- */

FILE *sl_file_append(const char *path, bool append)
{
    const int flags = O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC);
    const int file = open(path, flags | O_NONBLOCK | O_CLOEXEC, 0666);
    const bool waits = file >= 0 && fcntl(file, F_SETFL, append ? O_APPEND : 0) == 0;
    FILE *stream = waits ? fdopen(file, append ? "a" : "w") : NULL;
    const int reason = errno;
    if (file >= 0 && !stream)
        close(file);
    errno = reason;
    return stream;
}

/* ---- One writer at a time ---- */

/* Refuse a second writer of `path`; name the first one if the lock's file does. Text that others
 * wrote may be anything. */
static int refuse_second(int file, const char *path)
{
    char text[256], host[128];
    long process;
    const ssize_t length = pread(file, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    close(file);
    if (sscanf(text, "process %ld on host %127[A-Za-z0-9._-]", &process, host) != 2)
        return sl_error(SL_ERR_USAGE,
                        "%s: another process writes it (expected one run at a time, or another "
                        "file)",
                        path);
    return sl_error(SL_ERR_USAGE,
                    "%s: process %ld on host %s writes it (expected one run at a time, or another "
                    "file)",
                    path, process, host);
}

int sl_file_open_lock(const char *path, mode_t mode)
{
    const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    struct stat status;
    int file = open(path, O_RDWR | O_CREAT | flags, mode);
    if (file < 0 && (errno == EACCES || errno == EROFS))
        file = open(path, O_RDONLY | flags);
    if (file < 0)
        return -1;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink <= 1)
        return file;
    close(file);
    return -1;
}

/* Refuse to write `path` where something else stands in the lock's place. Go on where nothing
 * stands there, and no lock can be made: the disk is read-only, or the folder is closed. */
static int refuse_planted(const char *path, const char *lock)
{
    struct stat status;
    if (lstat(lock, &status))
        return 0;
    if (S_ISREG(status.st_mode) && status.st_nlink <= 1)
        return sl_error(SL_ERR_USAGE,
                        "%s: its lock %s cannot be read: another user's run may hold it (expected "
                        "another file, or this lock gone)",
                        path, lock);
    return sl_error(SL_ERR_USAGE,
                    "%s: its lock %s is no file of its own (expected no link or folder there: "
                    "remove it)",
                    path, lock);
}

int sl_file_lock(struct sl_file_lock *lock, const char *path)
{
    struct stat status;
    char target[PATH_MAX], host[128] = "";
    int file;
    lock->held = false;
    if (!path || follow_links(path, target) ||
        !print_path(lock->path, "%.*s.%s.starling-lock", (int)folder_length(target), target,
                    target + folder_length(target)) ||
        (stat(target, &status) == 0 && !S_ISREG(status.st_mode)))
        return 0;
    while ((file = sl_file_open_lock(lock->path, 0666)) >= 0 && !keep(file, lock->path)) {
        if (flock(file, LOCK_SH | LOCK_NB)) /* somebody holds the lock; else its last holder has
                                               just removed it */
            return refuse_second(file, path);
        close(file);
    }
    if (file < 0)
        return refuse_planted(path, lock->path);
    gethostname(host, sizeof host - 1);
    if (ftruncate(file, 0) == 0)
        dprintf(file, "process %ld on host %s", (long)getpid(), host);
    lock->held = true;
    lock->file = file;
    return 0;
}

void sl_file_unlock(struct sl_file_lock *lock)
{
    if (!lock->held)
        return;
    unlink(lock->path);
    close(lock->file);
    lock->held = false;
}

void sl_file_sync_directory(const char *path)
{
    const int folder = open_folder(path);
    if (folder >= 0) {
        fsync(folder);
        close(folder);
    }
}
