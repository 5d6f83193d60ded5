#include "core/sparse.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/runtime.h"

enum { PART_ALIGNMENT = 64 };

static size_t part(size_t bytes)
{
    return (bytes + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
}

size_t sl_sparse_bytes(int64_t rows, int64_t nnz, bool has_values)
{
    return part((size_t)(rows + 1) * sizeof(uint32_t)) + part((size_t)nnz * sizeof(uint32_t)) +
           (has_values ? part((size_t)nnz * sizeof(float)) : 0);
}

struct sl_sparse sl_sparse_view(const void *base, int64_t rows, int64_t cols, int64_t nnz,
                                bool has_values)
{
    const char *row_ptr = base, *col = row_ptr + part((size_t)(rows + 1) * sizeof(uint32_t));
    const char *value = col + part((size_t)nnz * sizeof(uint32_t));
    return (struct sl_sparse){
        .rows = rows,
        .cols = cols,
        .row_ptr = (const uint32_t *)row_ptr,
        .col = (const uint32_t *)col,
        .value = has_values ? (const float *)value : NULL,
    };
}

struct sl_sparse_tile *sl_sparse_matrix_tile(const struct sl_sparse_matrix *matrix, int i, int k)
{
    return &matrix->tiles[(int64_t)i * matrix->tile_cols + k];
}

/* What the passes over the rows of a matrix share. */
struct cutting {
    struct sl_runtime *rt;
    struct sl_sparse_matrix *matrix;
    sl_row_function *row;
    const void *context;
    sl_owner_function *owner;
    const void *owner_context;
    bool has_values;
};

static bool owns_row(const struct cutting *c, int i)
{
    for (int k = 0; k < c->matrix->tile_cols; k++)
        if (c->owner(c->owner_context, i, k) == c->rt->rank)
            return true;
    return false;
}

/* Calls visit for each run of entries of row r that falls into one tile column. */
static void split_row(const struct cutting *c, int i, int64_t r,
                      void (*visit)(const struct cutting *, int i, int k, int64_t r, int64_t count,
                                    const int32_t *columns, const float *values))
{
    const int64_t *cut = c->matrix->col_cut;
    int64_t count;
    const int32_t *columns;
    const float *values;
    c->row(c->context, r, &count, &columns, &values);
    int64_t start = 0;
    for (int k = 0; k < c->matrix->tile_cols && start < count; k++) {
        int64_t end = start;
        while (end < count && columns[end] < cut[k + 1])
            end++;
        if (end > start && c->owner(c->owner_context, i, k) == c->rt->rank)
            visit(c, i, k, r, end - start, columns + start, values ? values + start : NULL);
        start = end;
    }
}

static void count_run(const struct cutting *c, int i, int k, int64_t r, int64_t count,
                      const int32_t *columns, const float *values)
{
    (void)r, (void)columns, (void)values;
    sl_sparse_matrix_tile(c->matrix, i, k)->nnz += count;
}

static void pack_run(const struct cutting *c, int i, int k, int64_t r, int64_t count,
                     const int32_t *columns, const float *values)
{
    const struct sl_sparse_tile *tile = sl_sparse_matrix_tile(c->matrix, i, k);
    struct sl_sparse view =
        sl_sparse_view(tile->tile.memory, tile->rows, tile->cols, tile->nnz, tile->has_values);
    const int64_t local = r - c->matrix->row_cut[i], base = c->matrix->col_cut[k];
    uint32_t *row_ptr = (uint32_t *)view.row_ptr;
    uint32_t *col =
        (uint32_t *)view.col + row_ptr[local]; /* the end so far: pack_tiles keeps it current */
    for (int64_t e = 0; e < count; e++)
        col[e] = (uint32_t)(columns[e] - base);
    if (tile->has_values)
        for (int64_t e = 0; e < count; e++)
            ((float *)view.value)[row_ptr[local] + e] = values ? values[e] : 1.0f;
    row_ptr[local + 1] = row_ptr[local] + (uint32_t)count;
}

static void each_own_row(const struct cutting *c,
                         void (*visit)(const struct cutting *, int, int, int64_t, int64_t,
                                       const int32_t *, const float *),
                         bool packing)
{
    for (int i = 0; i < c->matrix->tile_rows; i++) {
        if (!owns_row(c, i))
            continue;
        for (int64_t r = c->matrix->row_cut[i]; r < c->matrix->row_cut[i + 1]; r++) {
            for (int k = 0; packing && k < c->matrix->tile_cols; k++) {
                /* A row without entries in this tile ends where the row before ended. */
                struct sl_sparse_tile *tile = sl_sparse_matrix_tile(c->matrix, i, k);
                uint32_t *row_ptr = tile->tile.memory;
                if (row_ptr)
                    row_ptr[r - c->matrix->row_cut[i] + 1] = row_ptr[r - c->matrix->row_cut[i]];
            }
            split_row(c, i, r, visit);
        }
    }
}

/* Every rank learns nnz of every tile: it decides who submits and who receives what. */
static int share_counts(const struct cutting *c)
{
    struct sl_sparse_matrix *matrix = c->matrix;
    const int64_t count = (int64_t)matrix->tile_rows * matrix->tile_cols;
    int64_t *nnz = calloc((size_t)count, sizeof *nnz);
    const int code = sl_runtime_agree(
        c->rt,
        nnz ? 0
            : sl_error(SL_ERR_SYSTEM, "no memory for the counts of %lld tiles", (long long)count));
    if (code) {
        free(nnz);
        return code;
    }
    for (int64_t t = 0; t < count; t++)
        nnz[t] = matrix->tiles[t].nnz;
    sl_runtime_sum(c->rt, nnz, count);
    for (int64_t t = 0; t < count; t++) {
        matrix->tiles[t].nnz = nnz[t];
        matrix->nnz += nnz[t];
    }
    free(nnz);
    return 0;
}

static int allocate_tiles(const struct cutting *c)
{
    struct sl_sparse_matrix *matrix = c->matrix;
    for (int i = 0; i < matrix->tile_rows; i++)
        for (int k = 0; k < matrix->tile_cols; k++) {
            struct sl_sparse_tile *tile = sl_sparse_matrix_tile(matrix, i, k);
            tile->rows = matrix->row_cut[i + 1] - matrix->row_cut[i];
            tile->cols = matrix->col_cut[k + 1] - matrix->col_cut[k];
            tile->has_values = c->has_values;
            const size_t bytes =
                tile->nnz ? sl_sparse_bytes(tile->rows, tile->nnz, tile->has_values) : 0;
            if (bytes >= (size_t)2 << 30)
                return sl_error(SL_ERR_USAGE,
                                "tile (%d, %d) has %lld nonzeros, over the 2 GiB that a tile may "
                                "take: ask for more tiles with --tiles",
                                i, k, (long long)tile->nnz);
            const int owner = c->owner(c->owner_context, i, k);
            if (sl_tile_create(c->rt, &tile->tile, 1, bytes ? (int64_t)bytes : 1, 1, owner))
                return SL_ERR_SYSTEM;
            if (!bytes) {
                sl_memory_free(tile->tile.memory, 1);
                tile->tile.memory = NULL;
            }
        }
    return 0;
}

int sl_sparse_matrix_create(struct sl_runtime *rt, struct sl_sparse_matrix *matrix, int tile_rows,
                            const int64_t *row_cut, int tile_cols, const int64_t *col_cut,
                            bool has_values, sl_row_function *row, const void *row_context,
                            sl_owner_function *owner, const void *owner_context)
{
    *matrix = (struct sl_sparse_matrix){
        .rows = row_cut[tile_rows],
        .cols = col_cut[tile_cols],
        .tile_rows = tile_rows,
        .tile_cols = tile_cols,
        .row_cut = row_cut,
        .col_cut = col_cut,
        .tiles = calloc((size_t)tile_rows * (size_t)tile_cols, sizeof *matrix->tiles),
    };
    int code = sl_runtime_agree(
        rt, matrix->tiles ? 0
                          : sl_error(SL_ERR_SYSTEM, "no memory for a grid of %d x %d tiles",
                                     tile_rows, tile_cols));
    if (code)
        return code;
    const struct cutting c = {rt, matrix, row, row_context, owner, owner_context, has_values};
    each_own_row(&c, count_run, false);
    code = share_counts(&c);
    if (!code)
        code = allocate_tiles(&c);
    code = sl_runtime_agree(rt, code);
    if (code) {
        sl_sparse_matrix_destroy(matrix);
        return code;
    }
    each_own_row(&c, pack_run, true);
    return 0;
}

void sl_sparse_matrix_destroy(struct sl_sparse_matrix *matrix)
{
    for (int64_t t = 0; matrix->tiles && t < (int64_t)matrix->tile_rows * matrix->tile_cols; t++)
        sl_tile_destroy(&matrix->tiles[t].tile);
    free(matrix->tiles);
    *matrix = (struct sl_sparse_matrix){0};
}
