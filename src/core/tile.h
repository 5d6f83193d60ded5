/* Tiles: pieces of matrices, each one data handle of the runtime, owned by one rank. */
#ifndef SL_CORE_TILE_H
#define SL_CORE_TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_runtime;
struct sl_place;

/* The types that elements of a dense matrix can have in memory. */
enum sl_type { SL_FLOAT32, SL_BFLOAT16 };

static inline size_t sl_type_size(enum sl_type type)
{
    return type == SL_BFLOAT16 ? 2 : 4;
}

enum { SL_ROW_UNIT = 16 }; /* elements: a vector of the kernels */

/* Return the columns of a row in memory: `cols`, rounded up to whole vectors. */
static inline int64_t sl_padded(int64_t cols)
{
    return (cols + SL_ROW_UNIT - 1) / SL_ROW_UNIT * SL_ROW_UNIT;
}

/* Return the elements from row to row of a dense matrix in memory. Rows of a multiple of 512 bytes
 * have a cache line behind them. Without this line, pieces of 256 bytes at one place of many rows
 * would share half of a cache's sets, or fewer. */
static inline int64_t sl_leading(int64_t cols, enum sl_type type)
{
    enum { LINE = 64, SHARED = 512 };
    const int64_t size = (int64_t)sl_type_size(type), padded = sl_padded(cols);
    return padded > 0 && padded * size % SHARED == 0 ? padded + LINE / size : padded;
}

/* A piece of a matrix, known to every rank, present on its owner and wherever it was sent.
 * Row-major. */
struct sl_tile {
    void *handle; /* the runtime's handle on this rank; NULL until the tile is first used here */
    void *memory; // (rows, ld) on the owner; NULL elsewhere, where the runtime allocates as much
    int64_t rows, cols;
    int64_t ld;          /* elements between rows, in each memory where it is */
    size_t element_size; /* bytes; of a dense tile: 4 float32, 2 bfloat16 */
    int64_t tag;         /* the same on every rank, unique */
    int owner;           /* rank */
    float place;         /* among the rank's tiles of its matrix, 0 … 1; -1: it is alone */
    bool received;       /* not the owner, but the last write was sent here */
    bool on_cores;       /* its tasks are for the cores: GPUs have no room for such tiles */
    bool idle;           /* tasks whose output it is are left out; the same on every rank */
};

static inline int64_t sl_tile_bytes(const struct sl_tile *tile)
{
    return tile->rows * tile->ld * (int64_t)tile->element_size;
}

/* A dense matrix cut into a grid of tiles. */
struct sl_matrix {
    enum sl_type type;
    int row_order; /* of the orders of vertices, which its rows are in: 0 where there is one */
    int64_t rows, cols;
    int tile_rows, tile_cols;
    int64_t *row_cut;      // (tile_rows + 1)
    int64_t *col_cut;      // (tile_cols + 1)
    struct sl_tile *tiles; // (tile_rows, tile_cols)
    void *slab;            /* memory of all tiles that this rank owns; NULL: the memory is lent */
    size_t slab_bytes;
    bool lent;
    struct sl_place *place; /* that lends the memory (graphs/place.h); NULL: none */
};

/* A copy of the cut points (count + 1) of `count` tiles, or NULL. */
int64_t *sl_cut_copy(int count, const int64_t *cut);

/* Return the last of `count` tiles that begins at or before `row`: cut[tile] <= row. The tile has
 * rows if the row is one of theirs. */
int sl_cut_find(int count, const int64_t *cut, int64_t row);

/* Which rank owns tile (i, j); `context` is the distribution's. */
typedef int sl_owner_function(const void *context, int i, int j);

/* Where a matrix is cut into tiles, and who has them. */
struct sl_cuts {
    int tile_rows, tile_cols;
    const int64_t *row_cut; // (tile_rows + 1)
    const int64_t *col_cut; // (tile_cols + 1)
    sl_owner_function *owner;
    const void *context; /* of `owner` */
};

/* A matrix with the given cuts, which are copied, rows padded to 16 elements, zeroed. Every rank
 * calls it in the same order, because tags are counted. Returns 0 or SL_ERR_SYSTEM. */
int sl_matrix_create(struct sl_runtime *rt, struct sl_matrix *matrix, enum sl_type type,
                     const struct sl_cuts *cuts);

/* sl_matrix_create in two steps: the matrix without memory, and the memory. */
int sl_matrix_describe(struct sl_runtime *rt, struct sl_matrix *matrix, enum sl_type type,
                       const struct sl_cuts *cuts);
int sl_matrix_allocate(struct sl_runtime *rt, struct sl_matrix *matrix);

/* Instead of sl_matrix_allocate: return the bytes of the matrix's tiles on this rank; lend the
 * matrix so much memory, which stays the caller's (NULL: a plan). No tile is idle then. */
size_t sl_matrix_own_bytes(const struct sl_runtime *rt, const struct sl_matrix *matrix);
void sl_matrix_lend(const struct sl_runtime *rt, struct sl_matrix *matrix, void *memory);

/* Waits for its tasks and messages, then frees. Safe on a zeroed struct. */
void sl_matrix_destroy(struct sl_matrix *matrix);

struct sl_tile *sl_matrix_tile(const struct sl_matrix *matrix, int i, int j);

/* Other values took the memory of the matrix: none of its tiles is idle. */
void sl_matrix_wake(const struct sl_matrix *matrix);

/* A tile that stands alone: `rows` x `cols` elements of `element_size` bytes, zeroed on its owner.
 */
int sl_tile_create(struct sl_runtime *rt, struct sl_tile *tile, int64_t rows, int64_t cols,
                   size_t element_size, int owner);
void sl_tile_destroy(struct sl_tile *tile);

/* Describes a tile without giving it memory; `memory` (or NULL where this rank is not the owner)
 * stays the caller's. */
void sl_tile_describe(struct sl_runtime *rt, struct sl_tile *tile, int64_t rows, int64_t cols,
                      int64_t ld, size_t element_size, int owner, void *memory);

/* Give the handle away, waiting for its tasks; the owner's memory then holds the last value. */
void sl_tile_forget(struct sl_tile *tile);

/* Waits for the tasks on an owned tile and returns its memory for reading or writing until
 * sl_tile_release. Between runs and for checkpoints. */
void *sl_tile_acquire(struct sl_runtime *rt, struct sl_tile *tile, bool write);
void sl_tile_release(struct sl_tile *tile);

#endif
