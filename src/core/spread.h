/* Move the rows of a sparse matrix from the ranks that read them to the ranks that own the
 * tiles. */
#ifndef SL_CORE_SPREAD_H
#define SL_CORE_SPREAD_H

#include "core/runtime.h"
#include "core/sparse.h"

/* The rows of a rank, and the tiles that they go to. */
struct sl_spread_source {
    int64_t first, end; /* rows that this rank reads, and no other rank */
    sl_row_function *row;
    const void *context;
    bool transposed; /* the rows are columns of the matrix that is spread */
    int tile_rows, tile_cols;
    const int64_t *row_cut, *col_cut; /* cuts of the matrix that is spread */
    sl_owner_function *owner;
    const void *owner_context;
};

/* The rows of a rank's tiles, with all entries in these tiles. */
struct sl_spread {
    int64_t first, rows;
    int64_t *indptr;  // (rows + 1)
    int32_t *columns; // (indptr[rows]): column numbers, ascending in each row
    float *values;    // (indptr[rows])
};

/* Send the rows to the owners of their tiles. Ranks read rows in ascending order. Return 0 or
 * SL_ERR_SYSTEM, the same on all ranks; call sl_spread_free in either case. Collective. */
int sl_spread_create(struct sl_runtime *rt, const struct sl_spread_source *source,
                     struct sl_spread *spread);
void sl_spread_free(struct sl_spread *spread);

/* Read row r of a struct sl_spread, as far as this rank has it: a sl_row_function. */
void sl_spread_row(const void *spread, int64_t r, int64_t *count, const int32_t **columns,
                   const float **values);

#endif
