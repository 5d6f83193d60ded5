/* Move the rows of a sparse matrix from the ranks that read them to the ranks that own the
 * tiles. */
#ifndef SL_CORE_SPREAD_H
#define SL_CORE_SPREAD_H

#include "core/runtime.h"
#include "core/sparse.h"

/* What a rank has, and where it goes. */
struct sl_spread_source {
    int64_t first, end; /* rows that this rank reads: no other rank does */
    sl_row_function *row;
    const void *context;
    bool transposed; /* they are columns of the matrix that is spread */
    int tile_rows, tile_cols;
    const int64_t *row_cut, *col_cut; /* of that matrix */
    sl_owner_function *owner;
    const void *owner_context;
};

/* What it gets: of the rows of its tiles all entries in them. */
struct sl_spread {
    int64_t first, rows;
    int64_t *indptr;  // (rows + 1)
    int32_t *columns; // (indptr[rows]), ascending in each row
    float *values;    // (indptr[rows])
};

/* Every rank calls it. Ranks read rows in ascending order. Returns 0 or SL_ERR_SYSTEM, the same on
 * all ranks; sl_spread_free in either case. */
int sl_spread_create(struct sl_runtime *rt, const struct sl_spread_source *source,
                     struct sl_spread *spread);
void sl_spread_free(struct sl_spread *spread);

/* Row r of the matrix, as far as it is here: a sl_row_function. */
void sl_spread_row(const void *spread, int64_t r, int64_t *count, const int32_t **columns,
                   const float **values);

#endif
