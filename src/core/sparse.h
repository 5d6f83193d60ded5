/* A sparse tile is one tile of bytes: row pointers, then columns, then values or features of its
 * entries. Each array is aligned to 64 bytes. So the tile is one handle for the runtime, one
 * transfer to a device, one message to a rank.
 *
 * Its columns are cut into blocks. Entries are stored block after block, and row after row within a
 * block. A product walks over the dense rows of one block at a time. The dense rows of a small
 * enough block stay in the cache (DistGNN, section IV-A). Columns count from the start of their
 * block, in 16 bits where they fit. */
#ifndef SL_CORE_SPARSE_H
#define SL_CORE_SPARSE_H

#include "core/tile.h"

enum { SL_EDGE_FEATURES = 256 }; /* Most features of an entry. */

/* Features of an entry whose edge has a relation: its number, and a factor. Most relations. */
enum { SL_RELATION, SL_RELATION_FACTOR, SL_RELATION_FEATURES };
enum { SL_RELATIONS = 65536 };

enum { SL_NARROW_COLS = 65536 }; /* Most columns of a block whose column numbers fit 16 bits. */

/* The facts of a sparse tile that all ranks know, also without its entries. */
struct sl_sparse_shape {
    int64_t rows, cols, nnz;
    int64_t block_cols; /* columns of a block: 1 … cols; the last block may have fewer */
    bool has_values;
    bool mirrored;         /* the transpose is stored behind the tile: twice the bytes */
    int64_t edge_features; /* float32 features of each entry; 0: none. A tile has values or features
                              of entries, and with features no transpose */
};

/* A sparse tile as kernels see it: entries of block b and row r are row_ptr[b·rows + r] …
 * row_ptr[b·rows + r + 1] - 1. The stored transpose has blocks of the tile's rows: entries of block
 * b and column c are mirror.row_ptr[b·cols + c] … mirror.row_ptr[b·cols + c + 1] - 1, by ascending
 * row. */
struct sl_sparse {
    int64_t rows, cols, block_cols;
    int64_t blocks;
    bool narrow;             /* columns are uint16_t, else uint32_t */
    const uint32_t *row_ptr; // (blocks · rows + 1)
    const void *col;         // (nnz): column number from the start of the block
    const float *value;      // (nnz), or NULL: all 1
    int64_t edge_features;   /* 0: none */
    const float *edge;       // (nnz, edge_features), or NULL
    struct {
        int64_t block_rows, blocks;
        bool narrow;             /* rows are uint16_t, else uint32_t */
        const uint32_t *row_ptr; // (blocks · cols + 1); NULL: the transpose is not stored
        const void *col;         // (nnz): row number from the start of the block
        const float *value;      // (nnz), or NULL: all 1
    } mirror;
};

/* Return the column of entry e, from the start of its block. */
static inline uint32_t sl_sparse_col(const struct sl_sparse *a, uint32_t e)
{
    return a->narrow ? ((const uint16_t *)a->col)[e] : ((const uint32_t *)a->col)[e];
}

/* A sparse tile as every rank knows it; only its owner has the entries. */
struct sl_sparse_tile {
    struct sl_tile tile; /* the packed tile, as a tile of bytes */
    struct sl_sparse_shape shape;
    int span; /* grid columns that the tile covers; the tiles after it in the span have no entries
                 and span 0 */
};

/* A grid of sparse tiles, in which neighbours of one row may be one tile. A tile without entries
 * has no memory and no tasks. */
struct sl_sparse_matrix {
    int64_t rows, cols, nnz;
    int tile_rows, tile_cols;
    int64_t *row_cut, *col_cut;   // (tile_rows + 1), (tile_cols + 1)
    struct sl_sparse_tile *tiles; // (tile_rows, tile_cols)
    void *slab;                   /* memory of all tiles that this rank owns */
    size_t slab_bytes;
    size_t apart_bytes; /* bytes of this rank's tiles stored outside the slab (graphs/cover.h) */
    int64_t piece;      /* entries worth a task: the mean of a row of tiles, or more */
    bool *heavy; // (tile_rows): the tile row has over twice `piece` entries; its tiles stand alone,
                 // so that several tasks can have them
};

/* Return the bytes of the packed form. */
size_t sl_sparse_bytes(const struct sl_sparse_shape *shape);

/* Return the view of packed bytes that start at `base`. */
struct sl_sparse sl_sparse_view(const void *base, const struct sl_sparse_shape *shape);

/* Read row r of the whole matrix: `count` columns (ascending, global) and values (NULL: all 1). */
typedef void sl_row_function(const void *context, int64_t r, int64_t *count,
                             const int32_t **columns, const float **values);

/* Return the first tile of the span that tile (i, k) would join. Neighbouring tiles of row i in a
 * span have one owner and may become one tile, unless the row is heavy. `context` is the owner
 * function's. */
typedef int sl_span_function(const void *context, int i, int k);

/* Write the features (features) of the entry with that number. `context` is the function's own. */
typedef void sl_edge_function(const void *context, uint32_t number, float *features);

/* Features of the entries of a matrix. The entries have their numbers, as bits, in the place of
 * values. */
struct sl_edge_source {
    int64_t features; /* of an entry; 0: entries have none */
    sl_edge_function *read;
    const void *context; /* first argument of `read` */
};

/* A matrix as its rows. */
struct sl_sparse_rows {
    bool has_values;
    sl_row_function *row;
    const void *context; /* first argument of `row` */
    bool mirrored;       /* tiles also store their transposes, unless a tile would be too large */
    bool all;            /* each rank has all rows, and counts the entries of all tiles itself */
    struct sl_edge_source edges;
};

/* Cut a matrix into tiles, with blocks of at most `block_cols` columns. Each rank reads its rows
 * twice, heavy ones three times, and packs the tiles it owns. Ranks share nnz of all tiles, unless
 * each rank has all rows. `span` NULL: every tile stands alone. Return 0 or SL_ERR_SYSTEM.
 * Collective. */
int sl_sparse_matrix_create(struct sl_runtime *rt, struct sl_sparse_matrix *matrix,
                            const struct sl_cuts *cuts, sl_span_function *span, int64_t block_cols,
                            const struct sl_sparse_rows *rows);
void sl_sparse_matrix_destroy(struct sl_sparse_matrix *matrix);

struct sl_sparse_tile *sl_sparse_matrix_tile(const struct sl_sparse_matrix *matrix, int i, int k);

#endif
