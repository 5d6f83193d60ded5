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
    int64_t row, rows; /* the first row, and how many */
    bool continued;    /* an earlier batch has the beginning of the row, the only one here */
    uint32_t count;    /* kept entries */
    uint32_t row_ptr[SL_KEPT_ENTRIES + 1];
    uint32_t col[SL_KEPT_ENTRIES + SL_KEPT_ROOM]; /* from the start of the block */
    float value[SL_KEPT_ENTRIES + SL_KEPT_ROOM];  /* scaled by dropout */
};

/* A walk over rows of block `block` of `x`. */
struct sl_kept_walk {
    const struct sl_sparse *x;
    const struct sl_dropout *drop;
    const uint32_t *vertex; // (rows)
    int64_t block;
    int64_t row;    /* where the next batch begins */
    int64_t end;    /* where the last one ends */
    uint32_t entry; /* and with which entry of the block */
};

/* The walk over rows from … to - 1. */
struct sl_kept_walk sl_kept_walk(const struct sl_sparse *x, int64_t block,
                                 const struct sl_dropout *drop, const uint32_t *vertex,
                                 int64_t from, int64_t to);

/* Fills the next batch; false after the last. Every row is in a batch, an empty one too. */
bool sl_kept_next(struct sl_kept_walk *walk, struct sl_kept *batch);

#endif
