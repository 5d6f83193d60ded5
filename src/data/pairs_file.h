/* Files of pairs of vertices, to be scored. */
#ifndef SL_DATA_PAIRS_FILE_H
#define SL_DATA_PAIRS_FILE_H

#include "data/identities.h"

/* Pairs in original numbers of vertices: source, target. */
struct sl_pairs {
    int64_t count, room;
    int32_t *vertex; // (count, 2)
};

/* Read a file. A .npy (k, 2) has whole numbers of vertices. Any other file is text, plain or
 * gzipped: each line has a source and a target, between blanks, commas or tabs. Where vertices have
 * ids, both are ids. Else both are numbers from 0 on, and lines that begin with # or % are skipped.
 * Call sl_pairs_free in either case. SL_ERR_DATA names file and row or line; SL_ERR_SYSTEM. */
int sl_pairs_read(const char *path, const struct sl_identities *identities, struct sl_pairs *out);
void sl_pairs_free(struct sl_pairs *pairs);

#endif
