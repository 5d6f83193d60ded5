/* Files and folders that appear whole or not at all: written under a temporary name, synced,
 * renamed. */
#ifndef SL_CORE_FILE_H
#define SL_CORE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

struct sl_new_file {
    FILE *file;          /* stream to write to; sl_file_commit checks its errors */
    char path[PATH_MAX]; /* the path as the caller gave it */
    char target[PATH_MAX], temporary[PATH_MAX];
};

/* Open a temporary file beside `path`. Where `path` is a symbolic link, the file is made beside the
 * link's target, and the link stays. The new file gets the mode of the file that it replaces.
 * Remove temporary files that killed processes left there. SL_ERR_SYSTEM names `path` and the
 * reason, also where `path` is a device or anything else but a regular file. */
int sl_file_create(struct sl_new_file *out, const char *path);

/* Return 0 if `path` can be written, so that errors come before the work; NULL counts as writable.
 * SL_ERR_SYSTEM names `path` and the reason. */
int sl_file_probe(const char *path);

/* Rename the temporary file to `path` if `good` and if the disk took every byte. Otherwise remove
 * the file and leave `path` as it was. SL_ERR_SYSTEM names `path` and the reason, which is in errno
 * if not `good`. */
int sl_file_commit(struct sl_new_file *out, bool good);

/* Open temporary files beside two paths, or neither, as sl_file_create does. */
int sl_file_create_both(struct sl_new_file *first, const char *path, struct sl_new_file *second,
                        const char *other);

/* Rename both temporary files to their paths, or neither. If one is not good, both are removed, and
 * the caller has set errno to the reason. Where the second cannot be renamed, the first path gets
 * its old file back. SL_ERR_SYSTEM names the path that failed. Both files are closed in any case.
 */
int sl_file_commit_both(struct sl_new_file *first, bool first_good, struct sl_new_file *second,
                        bool second_good);

/* Remove the temporary file and leave `path` as it was. */
void sl_file_discard(struct sl_new_file *out);

struct sl_new_folder {
    int file; /* the folder, opened */
    char path[PATH_MAX], target[PATH_MAX], temporary[PATH_MAX];
};

/* Make a temporary folder beside `path`; the caller writes files into the folder `temporary`.
 * Remove temporary folders that killed processes left there. SL_ERR_SYSTEM names `path`. */
int sl_folder_create(struct sl_new_folder *out, const char *path);

/* Rename the temporary folder to `path`, which is a new name or an empty folder. On SL_ERR_SYSTEM,
 * which names `path`, the temporary folder is removed. */
int sl_folder_commit(struct sl_new_folder *out);

/* Rename the folder's closed file `name` to `path`, a file, and remove the folder. SL_ERR_SYSTEM
 * names `path`; the folder is removed in any case. */
int sl_folder_commit_file(struct sl_new_folder *out, const char *name);

/* Remove the temporary folder and its files. */
void sl_folder_discard(struct sl_new_folder *out);

/* Open or make a file for locks, empty if new. Open no link, no pipe and no second name of another
 * file: whoever planted it would have the other file emptied. Return a descriptor, which may be for
 * reading alone where the file is another user's; -1: none. */
int sl_file_open_lock(const char *path, mode_t mode);

struct sl_file_lock {
    bool held; /* this process holds the lock */
    int file;
    char path[PATH_MAX];
};

/* Keep other runs from writing `path` by a lock on .NAME.starling-lock beside it. The lock file
 * says who holds it. NULL, devices, and disks without locks are not locked; nor are files beside
 * which no file can be made. SL_ERR_USAGE names `path` and the process that writes it, or what
 * stands in the place of the lock. */
int sl_file_lock(struct sl_file_lock *lock, const char *path);

/* Remove the lock; do nothing where it is not held. */
void sl_file_unlock(struct sl_file_lock *lock);

/* Open a regular file for reading, and wait for no pipe. Return a descriptor; or -1, and set *why
 * to the end of a sentence that begins with the file's name. */
int sl_file_open(const char *path, const char **why);

/* Open a regular file for reading as a stream, as sl_file_open does; NULL: *why says why. */
FILE *sl_file_stream(const char *path, const char **why);

/* Open a file or pipe for writing line by line: at its end if `append`, else emptied. Return NULL
 * and set errno: to ENXIO where nobody reads the pipe. */
FILE *sl_file_append(const char *path, bool append);

/* Map a whole regular file for reading: its pages do not count as memory of the process. Set *bytes
 * to NULL where the file is empty. `expected` tells the user what kind of file is wanted; `status`
 * may be NULL. SL_ERR_DATA and SL_ERR_SYSTEM name `path`. The caller unmaps. */
int sl_file_map(const char *path, const char *expected, void **bytes, size_t *size,
                struct stat *status);

/* Return whether both names mean one file, now or once the file exists. NULL is no name. */
bool sl_file_same(const char *a, const char *b);

/* Sync the directory that holds `path`, so that its entries survive a crash. */
void sl_file_sync_directory(const char *path);

#endif
