/* A sparse tile is one tile of bytes: row pointers, then columns, then values, each part aligned to
 * 64 bytes, so that it is one handle for the runtime, one transfer to a device and one message to a
 * rank. */
#ifndef SL_CORE_SPARSE_H
#define SL_CORE_SPARSE_H

#include "core/tile.h"

/* A sparse tile as kernels see it: local rows and columns. */
struct sl_sparse {
    int64_t rows, cols;
    const uint32_t *row_ptr; // (rows + 1)
    const uint32_t *col;     // (nnz)
    const float *value;      // (nnz), or NULL: all 1
};

/* What every rank knows of a sparse tile; the entries are on its owner only. */
struct sl_sparse_tile {
    struct sl_tile tile; /* of bytes */
    int64_t rows, cols, nnz;
    bool has_values;
};

/* A grid of sparse tiles. A tile without entries has no memory and no tasks. */
struct sl_sparse_matrix {
    int64_t rows, cols, nnz;
    int tile_rows, tile_cols;
    const int64_t *row_cut, *col_cut; // borrowed
    struct sl_sparse_tile *tiles;     // (tile_rows, tile_cols)
};

/* Bytes of the packed form. */
size_t sl_sparse_bytes(int64_t rows, int64_t nnz, bool has_values);

/* The view of packed bytes that start at `base`. */
struct sl_sparse sl_sparse_view(const void *base, int64_t rows, int64_t cols, int64_t nnz,
                                bool has_values);

/* Reads row r of the whole matrix: `count` columns (ascending, global) and values (NULL: all 1). */
typedef void sl_row_function(const void *context, int64_t r, int64_t *count,
                             const int32_t **columns, const float **values);

/* Cuts a matrix into tiles. Each rank reads all its rows once and packs the tiles it owns; nnz of
 * the others is shared between ranks. Returns 0 or SL_ERR_SYSTEM. */
int sl_sparse_matrix_create(struct sl_runtime *rt, struct sl_sparse_matrix *matrix, int tile_rows,
                            const int64_t *row_cut, int tile_cols, const int64_t *col_cut,
                            bool has_values, sl_row_function *row, const void *row_context,
                            sl_owner_function *owner, const void *owner_context);
void sl_sparse_matrix_destroy(struct sl_sparse_matrix *matrix);

struct sl_sparse_tile *sl_sparse_matrix_tile(const struct sl_sparse_matrix *matrix, int i, int k);

#endif
