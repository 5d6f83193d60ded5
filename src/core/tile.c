#include "core/tile.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/handle.h"
#include "core/memory.h"
#include "core/runtime.h"

static const int64_t MOST_TILE_BYTES = INT32_MAX; /* limit of an MPI message */

void sl_tile_describe(struct sl_runtime *rt, struct sl_tile *tile, int64_t rows, int64_t cols,
                      int64_t ld, size_t element_size, int owner, void *memory)
{
    *tile = (struct sl_tile){
        .memory = memory,
        .rows = rows,
        .cols = cols,
        .ld = ld,
        .element_size = element_size,
        .tag = rt->next_tag++,
        .owner = owner,
        .place = -1.0f,
    };
}

int sl_tile_create(struct sl_runtime *rt, struct sl_tile *tile, int64_t rows, int64_t cols,
                   size_t element_size, int owner)
{
    void *memory = NULL;
    if (owner == rt->rank && !rt->plans) {
        memory = sl_memory_alloc((size_t)(rows * cols) * element_size);
        if (!memory)
            return SL_ERR_SYSTEM;
    }
    sl_tile_describe(rt, tile, rows, cols, cols, element_size, owner, memory);
    return 0;
}

int sl_tile_create_own(struct sl_tile *tile, int64_t rows, int64_t cols, size_t element_size,
                       int rank)
{
    *tile = (struct sl_tile){
        .memory = sl_memory_alloc((size_t)(rows * cols) * element_size),
        .rows = rows,
        .cols = cols,
        .ld = cols,
        .element_size = element_size,
        .tag = -1,
        .owner = rank,
        .place = -1.0f,
    };
    return tile->memory ? 0 : SL_ERR_SYSTEM;
}

void sl_tile_forget(struct sl_tile *tile)
{
    if (tile->handle)
        sl_handle_forget(tile->handle);
    tile->handle = NULL;
    tile->received = false;
}

void sl_tile_destroy(struct sl_tile *tile)
{
    sl_tile_forget(tile);
    sl_memory_free(tile->memory, (size_t)sl_tile_bytes(tile));
    *tile = (struct sl_tile){0};
}

size_t sl_matrix_own_bytes(const struct sl_runtime *rt, const struct sl_matrix *matrix)
{
    size_t bytes = 0;
    for (int t = 0; t < matrix->tile_rows * matrix->tile_cols; t++)
        if (matrix->tiles[t].owner == rt->rank)
            bytes += (size_t)sl_tile_bytes(&matrix->tiles[t]);
    return bytes;
}

static void place_tiles(const struct sl_runtime *rt, struct sl_matrix *matrix, void *memory)
{
    const int count = matrix->tile_rows * matrix->tile_cols;
    int mine = 0, at = 0;
    char *next = memory;
    for (int t = 0; t < count; t++)
        mine += matrix->tiles[t].owner == rt->rank;
    for (int t = 0; t < count; t++)
        if (matrix->tiles[t].owner == rt->rank) {
            matrix->tiles[t].place = mine > 1 ? (float)at++ / (float)mine : -1.0f;
            matrix->tiles[t].memory = next;
            next += sl_tile_bytes(&matrix->tiles[t]);
        }
}

void sl_matrix_lend(const struct sl_runtime *rt, struct sl_matrix *matrix, void *memory)
{
    matrix->lent = true;
    sl_matrix_wake(matrix);
    if (memory)
        place_tiles(rt, matrix, memory);
}

void sl_matrix_wake(const struct sl_matrix *matrix)
{
    for (int t = 0; t < matrix->tile_rows * matrix->tile_cols; t++)
        matrix->tiles[t].idle = false;
}

/* Allocate one slab for all tiles of this rank, so that small tiles share huge pages, too. */
int sl_matrix_allocate(struct sl_runtime *rt, struct sl_matrix *matrix)
{
    const size_t bytes = sl_matrix_own_bytes(rt, matrix);
    if (bytes == 0 || rt->plans)
        return 0;
    matrix->slab = sl_memory_alloc(bytes);
    if (!matrix->slab)
        return SL_ERR_SYSTEM;
    matrix->slab_bytes = bytes;
    place_tiles(rt, matrix, matrix->slab);
    return 0;
}

int64_t *sl_cut_copy(int count, const int64_t *cut)
{
    int64_t *copy = malloc((size_t)(count + 1) * sizeof *copy);
    if (copy)
        memcpy(copy, cut, (size_t)(count + 1) * sizeof *copy);
    else
        sl_error(SL_ERR_SYSTEM, "no memory for %d cut points", count);
    return copy;
}

int sl_cut_find(int count, const int64_t *cut, int64_t row)
{
    int low = 0, high = count - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (cut[middle] <= row)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

int sl_matrix_describe(struct sl_runtime *rt, struct sl_matrix *matrix, enum sl_type type,
                       const struct sl_cuts *cuts)
{
    const int tile_rows = cuts->tile_rows, tile_cols = cuts->tile_cols;
    const int64_t *row_cut = cuts->row_cut, *col_cut = cuts->col_cut;
    *matrix = (struct sl_matrix){
        .type = type,
        .rows = row_cut[tile_rows],
        .cols = col_cut[tile_cols],
        .tile_rows = tile_rows,
        .tile_cols = tile_cols,
        .row_cut = sl_cut_copy(tile_rows, row_cut),
        .col_cut = sl_cut_copy(tile_cols, col_cut),
        .tiles = calloc((size_t)tile_rows * (size_t)tile_cols, sizeof *matrix->tiles),
    };
    if (!matrix->tiles || !matrix->row_cut || !matrix->col_cut) {
        sl_matrix_destroy(matrix);
        return sl_error(SL_ERR_SYSTEM, "no memory for a grid of %d x %d tiles", tile_rows,
                        tile_cols);
    }
    for (int i = 0; i < tile_rows; i++)
        for (int j = 0; j < tile_cols; j++) {
            const int64_t rows = row_cut[i + 1] - row_cut[i], cols = col_cut[j + 1] - col_cut[j];
            if (!rt->shapes_alone &&
                rows * sl_leading(cols, type) * (int64_t)sl_type_size(type) > MOST_TILE_BYTES) {
                sl_matrix_destroy(matrix);
                return sl_error(SL_ERR_USAGE,
                                "a tile of %lld x %lld numbers is over the 2 GiB that a tile may "
                                "take (expected more --tiles; of weights, a smaller --hidden or "
                                "--submodels)",
                                (long long)rows, (long long)cols);
            }
            sl_tile_describe(rt, sl_matrix_tile(matrix, i, j), rows, cols, sl_leading(cols, type),
                             sl_type_size(type), cuts->owner(cuts->context, i, j), NULL);
        }
    return 0;
}

int sl_matrix_create(struct sl_runtime *rt, struct sl_matrix *matrix, enum sl_type type,
                     const struct sl_cuts *cuts)
{
    int code = sl_matrix_describe(rt, matrix, type, cuts);
    if (code)
        return code;
    code = sl_matrix_allocate(rt, matrix);
    if (code)
        sl_matrix_destroy(matrix);
    return code;
}

void sl_matrix_destroy(struct sl_matrix *matrix)
{
    for (int t = 0; matrix->tiles && t < matrix->tile_rows * matrix->tile_cols; t++)
        sl_tile_forget(&matrix->tiles[t]);
    free(matrix->tiles);
    free(matrix->row_cut);
    free(matrix->col_cut);
    sl_memory_free(matrix->slab, matrix->slab_bytes);
    *matrix = (struct sl_matrix){0};
}

struct sl_tile *sl_matrix_tile(const struct sl_matrix *matrix, int i, int j)
{
    return &matrix->tiles[(int64_t)i * matrix->tile_cols + j];
}
