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
 * gzipped, with a source and a target in each line, between blanks, commas or tabs: ids where
 * vertices have ids, else numbers from 0 on, and then lines that begin with # or % are
 * skipped. Call
 * sl_pairs_free in either case. SL_ERR_DATA names file and row or line; SL_ERR_SYSTEM. */
int sl_pairs_read(const char *path, const struct sl_identities *identities, struct sl_pairs *out);
void sl_pairs_free(struct sl_pairs *pairs);

#endif
