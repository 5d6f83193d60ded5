/* Rows of products of a sparse block, or its transpose, with a dense matrix. */
#ifndef SL_CODELETS_GATHER_H
#define SL_CODELETS_GATHER_H

#include "codelets/operation.h"

/* A block of a sparse tile, and the dense rows that it meets. */
struct sl_gather {
    const uint32_t *row_ptr; // (rows + 1)
    const void *col;
    const float *value; /* NULL: all 1 */
    bool narrow;
    struct sl_rows h; /* rows of H, from the block's first column on */
    float *z;
    int64_t ldz;
    int64_t room; /* elements of a row of Z from `z` on, which may be written */
    int64_t width;
    bool accumulate;
    uint32_t last;  /* the last entry whose row may be prefetched */
    uint32_t ahead; /* entries between prefetching a row and using it; 0: no prefetching */
};

enum { SL_GATHER_MOST_AHEAD = 48, SL_GATHER_SLICE_BYTES = 256 };

/* Return how many rows lie between prefetching a row and using it: enough bytes to hide the
 * memory's latency. LEAST and SL_GATHER_MOST_AHEAD bound the number for long and short rows. */
int64_t sl_gather_ahead(int64_t row_bytes);

/* Return the operands for block b of `a` and the rows of `h`. Z is float32. */
struct sl_gather sl_gather_make(const struct sl_sparse *a, int64_t b, int64_t width,
                                const struct sl_rows *h, bool accumulate, const struct sl_rows *z);

/* Return G with columns [first, first + width) of its operands. */
struct sl_gather sl_gather_columns(const struct sl_gather *g, int64_t first, int64_t width);

/* Multiply the first `rows` rows of the block, in slices of columns. */
void sl_gather_slices(const struct sl_gather *g, int64_t rows);

/* Return how many columns to multiply at a time, for all rows of a block: SL_GATHER_SLICE_BYTES of
 * wide rows of H, which stay in the second-level cache. Without AVX-512, slices of bfloat16 are
 * half as wide: fewer registers hold their sums. */
int64_t sl_gather_slice(enum sl_type type, int64_t width);

/* Z(r, :) = [Z +] Σ_e value(e) · H(col(e), :) for rows [from, to) of the block. Terms are added one
 * after the other to what Z has, so that the result does not depend on where a row is cut into
 * tiles or blocks. */
void sl_gather_rows(const struct sl_gather *g, int64_t from, int64_t to);

/* Z(col(e), :) += value(e) · H(r, :) for all entries e of rows r < `rows` of the block: the product
 * with its transpose. H is float32. */
void sl_scatter_rows(const struct sl_gather *g, int64_t rows);

#endif
