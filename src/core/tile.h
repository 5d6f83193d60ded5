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

enum { SL_ROW_UNIT = 16 }; /* Elements of a vector of the kernels. */

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

/* A piece of a matrix, row-major. Every rank knows it; its owner and the ranks it was sent to have
 * its values. */
struct sl_tile {
    void *handle; /* the runtime's handle on this rank; NULL until the tile is first used here */
    void *memory; // (rows, ld) on the owner; NULL elsewhere: the runtime allocates memory
    int64_t rows, cols;
    int64_t ld;          /* elements from row to row, in every memory */
    size_t element_size; /* bytes of an element; dense tiles: 4 float32, 2 bfloat16 */
    int64_t tag;         /* unique number, equal on every rank */
    int owner;           /* rank that owns the tile */
    float place;         /* position among the rank's tiles of the matrix, 0 … 1; -1: alone */
    bool received;       /* this rank is not the owner, and has received the last value */
    bool on_cores;       /* the tile's tasks run on the cores: GPUs have no room for it */
    bool idle;           /* tasks with this output are left out; equal on every rank */
};

static inline int64_t sl_tile_bytes(const struct sl_tile *tile)
{
    return tile->rows * tile->ld * (int64_t)tile->element_size;
}

/* A dense matrix cut into a grid of tiles. */
struct sl_matrix {
    enum sl_type type;
    int row_order; /* number of the vertex order of its rows; 0 where there is only one order */
    int64_t rows, cols;
    int tile_rows, tile_cols;
    int64_t *row_cut;      // (tile_rows + 1)
    int64_t *col_cut;      // (tile_cols + 1)
    struct sl_tile *tiles; // (tile_rows, tile_cols)
    void *slab;            /* memory of all tiles that this rank owns; NULL: the memory is lent */
    size_t slab_bytes;
    bool lent;
    struct sl_place *place; /* place that lends the memory (graphs/place.h); NULL: none */
};

/* Return a copy of the cut points (count + 1) of `count` tiles, or NULL without memory. */
int64_t *sl_cut_copy(int count, const int64_t *cut);

/* Return the last of `count` tiles that begins at or before `row`: cut[tile] <= row. If the row is
 * in any tile, the result is a tile with rows. */
int sl_cut_find(int count, const int64_t *cut, int64_t row);

/* Return the rank that owns tile (i, j); `context` is the distribution's. */
typedef int sl_owner_function(const void *context, int i, int j);

/* The cuts of a matrix into tiles, and the tiles' owners. */
struct sl_cuts {
    int tile_rows, tile_cols;
    const int64_t *row_cut; // (tile_rows + 1)
    const int64_t *col_cut; // (tile_cols + 1)
    sl_owner_function *owner;
    const void *context; /* first argument of `owner` */
};

/* Make a zeroed matrix with the given cuts, which are copied; rows are padded to 16 elements. Every
 * rank calls it in the same order, because tags are counted. Return 0 or SL_ERR_SYSTEM. */
int sl_matrix_create(struct sl_runtime *rt, struct sl_matrix *matrix, enum sl_type type,
                     const struct sl_cuts *cuts);

/* Make a matrix in two steps: describe it without memory, then allocate its memory. */
int sl_matrix_describe(struct sl_runtime *rt, struct sl_matrix *matrix, enum sl_type type,
                       const struct sl_cuts *cuts);
int sl_matrix_allocate(struct sl_runtime *rt, struct sl_matrix *matrix);

/* Lend the matrix memory instead of sl_matrix_allocate. sl_matrix_own_bytes returns the bytes of
 * the matrix's tiles on this rank. The lent memory of so many bytes stays the caller's (NULL: a
 * plan). No tile is idle then. */
size_t sl_matrix_own_bytes(const struct sl_runtime *rt, const struct sl_matrix *matrix);
void sl_matrix_lend(const struct sl_runtime *rt, struct sl_matrix *matrix, void *memory);

/* Wait for the matrix's tasks and messages, then free it. Safe on a zeroed struct. */
void sl_matrix_destroy(struct sl_matrix *matrix);

struct sl_tile *sl_matrix_tile(const struct sl_matrix *matrix, int i, int j);

/* Mark no tile of the matrix as idle, after other values took its memory. */
void sl_matrix_wake(const struct sl_matrix *matrix);

/* Make a tile that stands alone: `rows` x `cols` elements of `element_size` bytes, zeroed on its
 * owner. */
int sl_tile_create(struct sl_runtime *rt, struct sl_tile *tile, int64_t rows, int64_t cols,
                   size_t element_size, int owner);
void sl_tile_destroy(struct sl_tile *tile);

/* Make such a tile of this rank, `rank`, alone: it never travels and has no tag. Plans have its
 * memory, too. */
int sl_tile_create_own(struct sl_tile *tile, int64_t rows, int64_t cols, size_t element_size,
                       int rank);

/* Describe a tile without allocating memory. `memory` stays the caller's; NULL where this rank is
 * not the owner. */
void sl_tile_describe(struct sl_runtime *rt, struct sl_tile *tile, int64_t rows, int64_t cols,
                      int64_t ld, size_t element_size, int owner, void *memory);

/* Wait for the tile's tasks and give its handle away; the owner's memory then has the last value.
 */
void sl_tile_forget(struct sl_tile *tile);

/* Wait for the tasks on an owned tile and return its memory for reading or writing until
 * sl_tile_release. Call it between runs and for checkpoints. */
void *sl_tile_acquire(struct sl_runtime *rt, struct sl_tile *tile, bool write);
void sl_tile_release(struct sl_tile *tile);

#endif
