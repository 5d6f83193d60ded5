/* Files and folders that appear whole or not at all: written under a temporary name, synced,
 * renamed. */
#ifndef SL_CORE_FILE_H
#define SL_CORE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

struct sl_new_file {
    FILE *file;          /* to write to; errors are looked at by sl_file_commit */
    char path[PATH_MAX]; /* as it was given */
    char target[PATH_MAX], temporary[PATH_MAX];
};

/* Opens a temporary file beside `path`, or, where `path` is a symbolic link, beside what it points
 * to: the link stays. It gets the mode of the file that it replaces. Removes the ones that killed
 * processes left there. SL_ERR_SYSTEM names `path` and the reason, also where `path` is a device or
 * anything else but a regular file. */
int sl_file_create(struct sl_new_file *out, const char *path);

/* Whether `path` can be written, which is better known before the work than after; NULL can.
 * SL_ERR_SYSTEM names `path` and the reason. */
int sl_file_probe(const char *path);

/* Makes it `path`, if `good` and if the disk took every byte; otherwise removes it and leaves
 * `path` as it was. SL_ERR_SYSTEM names `path` and the reason, which is in errno if not `good`. */
int sl_file_commit(struct sl_new_file *out, bool good);

/* Removes it and leaves `path` as it was. */
void sl_file_discard(struct sl_new_file *out);

struct sl_new_folder {
    int file; /* the folder, opened */
    char path[PATH_MAX], target[PATH_MAX], temporary[PATH_MAX];
};

/* Makes a temporary folder beside `path`, for files whose names the caller writes into
 * `temporary`. Removes the ones that killed processes left there. SL_ERR_SYSTEM names `path`. */
int sl_folder_create(struct sl_new_folder *out, const char *path);

/* Makes it `path`, which is a new name or an empty folder. SL_ERR_SYSTEM names `path`; the
 * temporary folder is gone then. */
int sl_folder_commit(struct sl_new_folder *out);

/* Makes its file `name`, which is closed, `path`, a file. SL_ERR_SYSTEM names `path`. The folder is
 * gone then. */
int sl_folder_commit_file(struct sl_new_folder *out, const char *name);

/* Removes it and its files. */
void sl_folder_discard(struct sl_new_folder *out);

struct sl_file_lock {
    bool held; /* or nothing is locked */
    int file;
    char path[PATH_MAX];
};

/* Keeps other runs from writing `path`, by a lock of .NAME.starling-lock beside it, which says who
 * holds it. NULL, devices, and disks without locks are not locked. SL_ERR_USAGE names `path` and
 * the process that writes it. */
int sl_file_lock(struct sl_file_lock *lock, const char *path);

/* Removes the lock; does nothing where the lock is not held. */
void sl_file_unlock(struct sl_file_lock *lock);

/* Maps a whole regular file, to read: its pages are no memory of the process. *bytes is NULL where
 * the file is empty. `expected` says what it should be. `status` may be NULL. SL_ERR_DATA and
 * SL_ERR_SYSTEM name `path`. The caller unmaps. */
int sl_file_map(const char *path, const char *expected, void **bytes, size_t *size,
                struct stat *status);

/* Whether both names are of one file, now or once it is there. NULL is no name. */
bool sl_file_same(const char *a, const char *b);

/* Makes the entries of the directory that holds `path` survive a crash. */
void sl_file_sync_directory(const char *path);

#endif
