/* Entries of a sparse block that dropout keeps. */
#ifndef SL_CODELETS_KEPT_H
#define SL_CODELETS_KEPT_H

#include "codelets/operation.h"

enum {
    SL_KEPT_ENTRIES = 512,
    SL_KEPT_ROOM = 16
}; /* room: a vector may be written behind the last entry */

/* A batch: the kept entries of some rows, or of a piece of a row that alone does not fit. */
struct sl_kept {
    int64_t row, rows; /* the first row, and number of rows */
    bool continued;    /* an earlier batch has the beginning of the batch's only row */
    uint32_t count;    /* kept entries */
    uint32_t row_ptr[SL_KEPT_ENTRIES + 1];
    uint32_t col[SL_KEPT_ENTRIES + SL_KEPT_ROOM]; /* columns from the start of the block */
    float value[SL_KEPT_ENTRIES + SL_KEPT_ROOM];  /* values, scaled by dropout */
};

/* A walk over rows of block `block` of `x`. */
struct sl_kept_walk {
    const struct sl_sparse *x;
    const struct sl_dropout *drop;
    const uint32_t *vertex; // (rows)
    int64_t block;
    int64_t row;    /* first row of the next batch */
    int64_t end;    /* row after the last batch */
    uint32_t entry; /* first entry of the next batch in the block */
};

/* Return a walk over rows from … to - 1. */
struct sl_kept_walk sl_kept_walk(const struct sl_sparse *x, int64_t block,
                                 const struct sl_dropout *drop, const uint32_t *vertex,
                                 int64_t from, int64_t to);

/* Fill the next batch; return false after the last batch. Every row is in a batch, even an empty
 * row. */
bool sl_kept_next(struct sl_kept_walk *walk, struct sl_kept *batch);

#endif
