/* Files that appear whole or not at all: written under a temporary name, synced, renamed. */
#ifndef SL_CORE_FILE_H
#define SL_CORE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

struct sl_new_file {
    FILE *file;          /* to write to; errors are looked at by sl_file_commit */
    char path[PATH_MAX]; /* as it was given */
    char target[PATH_MAX], temporary[PATH_MAX];
};

/* Opens a temporary file beside `path`, or, where `path` is a symbolic link, beside what it points
 * to: the link stays. Removes the ones that killed processes left there. SL_ERR_SYSTEM names `path`
 * and the reason, also where `path` is a device or anything else but a regular file. */
int sl_file_create(struct sl_new_file *out, const char *path);

/* Whether `path` can be written, which is better known before the work than after; NULL can.
 * SL_ERR_USAGE names `path` and the reason. */
int sl_file_probe(const char *path);

/* Makes it `path`, if `good` and if the disk took every byte; otherwise removes it and leaves
 * `path` as it was. SL_ERR_SYSTEM names `path` and the reason. */
int sl_file_commit(struct sl_new_file *out, bool good);

/* Removes it and leaves `path` as it was. */
void sl_file_discard(struct sl_new_file *out);

/* Whether both names are of one file, now or once it is there. NULL is no name. */
bool sl_file_same(const char *a, const char *b);

/* Makes the entries of the directory that holds `path` survive a crash. */
void sl_file_sync_directory(const char *path);

#endif
