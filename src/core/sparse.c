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

static int64_t blocks_of(const struct sl_sparse_shape *shape)
{
    return shape->cols ? (shape->cols + shape->block_cols - 1) / shape->block_cols : 0;
}

static size_t number_bytes(int64_t nnz, int64_t below)
{
    return part((size_t)nnz * (below <= SL_NARROW_COLS ? sizeof(uint16_t) : sizeof(uint32_t)));
}

static size_t row_ptr_bytes(const struct sl_sparse_shape *shape)
{
    return part((size_t)(blocks_of(shape) * shape->rows + 1) * sizeof(uint32_t));
}

static size_t col_bytes(const struct sl_sparse_shape *shape)
{
    return number_bytes(shape->nnz, shape->block_cols);
}

static size_t value_bytes(const struct sl_sparse_shape *shape)
{
    return shape->has_values ? part((size_t)shape->nnz * sizeof(float)) : 0;
}

static size_t edge_bytes(const struct sl_sparse_shape *shape)
{
    return part((size_t)shape->nnz * (size_t)shape->edge_features * sizeof(float));
}

/* Rows of a block of the stored transpose: as many as a block of the tile has columns. */
static int64_t mirror_rows(const struct sl_sparse_shape *shape)
{
    const int64_t most = shape->block_cols > 1 ? shape->block_cols : 1; /* 0 without columns */
    return most < shape->rows ? most : shape->rows;
}

static int64_t mirror_blocks(const struct sl_sparse_shape *shape)
{
    return shape->rows ? (shape->rows + mirror_rows(shape) - 1) / mirror_rows(shape) : 0;
}

static size_t column_ptr_bytes(const struct sl_sparse_shape *shape)
{
    return part((size_t)(mirror_blocks(shape) * shape->cols + 1) * sizeof(uint32_t));
}

size_t sl_sparse_bytes(const struct sl_sparse_shape *shape)
{
    const size_t tile = row_ptr_bytes(shape) + col_bytes(shape) + value_bytes(shape) +
                        edge_bytes(shape),
                 mirror = column_ptr_bytes(shape) + number_bytes(shape->nnz, mirror_rows(shape)) +
                          value_bytes(shape);
    return tile + (shape->mirrored ? mirror : 0);
}

struct sl_sparse sl_sparse_view(const void *base, const struct sl_sparse_shape *shape)
{
    const char *row_ptr = base, *col = row_ptr + row_ptr_bytes(shape),
               *value = col + col_bytes(shape), *column_ptr = value + value_bytes(shape),
               *row = column_ptr + column_ptr_bytes(shape);
    struct sl_sparse view = {
        .rows = shape->rows,
        .cols = shape->cols,
        .block_cols = shape->block_cols,
        .blocks = blocks_of(shape),
        .narrow = shape->block_cols <= SL_NARROW_COLS,
        .row_ptr = (const uint32_t *)row_ptr,
        .col = col,
        .value = shape->has_values ? (const float *)value : NULL,
        .edge_features = shape->edge_features,
        .edge = shape->edge_features > 0 ? (const float *)value : NULL,
    };
    if (shape->mirrored) {
        view.mirror.block_rows = mirror_rows(shape);
        view.mirror.blocks = mirror_blocks(shape);
        view.mirror.narrow = mirror_rows(shape) <= SL_NARROW_COLS;
        view.mirror.row_ptr = (const uint32_t *)column_ptr;
        view.mirror.col = row;
        view.mirror.value =
            shape->has_values ? (const float *)(row + number_bytes(shape->nnz, mirror_rows(shape)))
                              : NULL;
    }
    return view;
}

struct sl_sparse_tile *sl_sparse_matrix_tile(const struct sl_sparse_matrix *matrix, int i, int k)
{
    return &matrix->tiles[(int64_t)i * matrix->tile_cols + k];
}

/* The state of a cut of a matrix into tiles, which all passes over the matrix's rows share. */
struct cutting {
    struct sl_runtime *rt;
    struct sl_sparse_matrix *matrix;
    sl_row_function *row;
    const void *context;
    sl_owner_function *owner;
    sl_span_function *span;
    const void *owner_context;
    int64_t block_cols;
    bool has_values, mirrored, all;
    struct sl_edge_source edges;
    int *end;  // (tile_cols): first tile after the span of tile k, in the current tile row
    bool *own; // (tile_cols): this rank owns tile k of the current tile row
    int64_t block_count;  /* blocks of one tile row, over all its tiles */
    int64_t *block_first; // (tile_cols + 1): number of tile k's first block, room for a whole span
    uint32_t *block_nnz;  // (tile_rows, block_count): entries, then place of the next entry
    int64_t *row_nnz;     // (tile_rows): entries on all ranks
};

/* A run of entries of row r that falls into one block of a tile. */
struct run {
    int i, k;
    int64_t r, block, count;
    const int32_t *columns;
    const float *values;
    int64_t first_col; /* first column of the block */
};

/* Set end[k] for each tile k of row i: the first tile after its span if k begins the span, else k,
 * since such a tile gets no entries. */
static void find_spans(const struct cutting *c, int i)
{
    const int count = c->matrix->tile_cols;
    for (int k = 0, next; k < count; k = next) {
        next = k + 1;
        while (c->span && !c->matrix->heavy[i] && next < count &&
               c->span(c->owner_context, i, next) == k) {
            c->end[next] = next;
            next++;
        }
        c->end[k] = next;
    }
}

/* Call visit for each run of row r in tile (i, k), which ends before column tile `end`, from entry
 * `start` of the row on. Return the first entry after the tile. */
static int64_t split_tile(const struct cutting *c, struct run run, int end, int64_t start,
                          int64_t count, const int32_t *columns, const float *values,
                          void (*visit)(const struct cutting *, const struct run *))
{
    const int64_t first = c->matrix->col_cut[run.k], last = c->matrix->col_cut[end];
    const bool own = c->own[run.k];
    while (start < count && columns[start] < last) {
        run.block = (columns[start] - first) / c->block_cols;
        run.first_col = first + run.block * c->block_cols;
        const int64_t beyond =
            run.first_col + c->block_cols < last ? run.first_col + c->block_cols : last;
        run.columns = columns + start;
        run.values = values ? values + start : NULL;
        run.count = 0;
        while (start < count && columns[start] < beyond)
            start++, run.count++;
        if (own)
            visit(c, &run);
    }
    return start;
}

/* Call visit for each run of row r in a tile of this rank. */
static void split_row(const struct cutting *c, int i, int64_t r,
                      void (*visit)(const struct cutting *, const struct run *))
{
    int64_t count, start = 0;
    const int32_t *columns;
    const float *values;
    c->row(c->context, r, &count, &columns, &values);
    for (int k = 0; k < c->matrix->tile_cols && start < count; k = c->end[k])
        start = split_tile(c, (struct run){.i = i, .k = k, .r = r}, c->end[k], start, count,
                           columns, values, visit);
}

static uint32_t *block_of(const struct cutting *c, int i, int k, int64_t block)
{
    return &c->block_nnz[i * c->block_count + c->block_first[k] + block];
}

static void count_run(const struct cutting *c, const struct run *run)
{
    sl_sparse_matrix_tile(c->matrix, run->i, run->k)->shape.nnz += run->count;
    *block_of(c, run->i, run->k, run->block) += (uint32_t)run->count;
}

/* Write the features of entry `at` of a tile. */
static void pack_features(const struct cutting *c, const struct sl_sparse *view, int64_t at,
                          float bits)
{
    uint32_t number;
    memcpy(&number, &bits, sizeof number);
    c->edges.read(c->edges.context, number, (float *)view->edge + at * view->edge_features);
}

static void pack_run(const struct cutting *c, const struct run *run)
{
    const struct sl_sparse_tile *tile = sl_sparse_matrix_tile(c->matrix, run->i, run->k);
    const struct sl_sparse view = sl_sparse_view(tile->tile.memory, &tile->shape);
    uint32_t *next = block_of(c, run->i, run->k, run->block);
    uint32_t *row_end =
        (uint32_t *)view.row_ptr + run->block * view.rows + run->r - c->matrix->row_cut[run->i] + 1;
    for (int64_t e = 0; e < run->count; e++) {
        const uint32_t col = (uint32_t)(run->columns[e] - run->first_col);
        if (view.narrow)
            ((uint16_t *)view.col)[*next + e] = (uint16_t)col;
        else
            ((uint32_t *)view.col)[*next + e] = col;
        if (view.value)
            ((float *)view.value)[*next + e] = run->values ? run->values[e] : 1.0f;
        if (view.edge)
            pack_features(c, &view, *next + e, run->values[e]);
    }
    *next += (uint32_t)run->count;
    *row_end = *next;
}

/* Visit the runs of tile row i in tiles of this rank; `all`: in all tiles. Read no row where there
 * is no such tile. */
static void each_row(const struct cutting *c, int i, bool all,
                     void (*visit)(const struct cutting *, const struct run *))
{
    const struct sl_sparse_matrix *matrix = c->matrix;
    bool any = false;
    find_spans(c, i);
    for (int k = 0; k < matrix->tile_cols; k++)
        any |= c->own[k] = all || c->owner(c->owner_context, i, k) == c->rt->rank;
    for (int64_t r = matrix->row_cut[i]; any && r < matrix->row_cut[i + 1]; r++)
        split_row(c, i, r, visit);
}

/* Turn the number of entries of each block into the place of its first entry. */
static void start_blocks(const struct cutting *c)
{
    for (int i = 0; i < c->matrix->tile_rows; i++)
        for (int k = 0; k < c->matrix->tile_cols; k++) {
            const struct sl_sparse_tile *tile = sl_sparse_matrix_tile(c->matrix, i, k);
            uint32_t next = 0;
            for (int64_t b = 0; tile->span && b < blocks_of(&tile->shape); b++) {
                uint32_t *block = block_of(c, i, k, b);
                const uint32_t count = *block;
                *block = next;
                next += count;
            }
        }
}

/* Fill gaps in row pointers: a row without entries in a block ends where the row before ended. */
static void fill_row_ptr(const struct sl_sparse_tile *tile)
{
    const struct sl_sparse view = sl_sparse_view(tile->tile.memory, &tile->shape);
    uint32_t *row_ptr = (uint32_t *)view.row_ptr;
    for (int64_t r = 1; r <= view.blocks * view.rows; r++)
        if (row_ptr[r] < row_ptr[r - 1])
            row_ptr[r] = row_ptr[r - 1];
}

/* Visit the entries of a tile block by block: those of a column come by ascending row. Each entry
 * adds 1 to the number of its column in its block of rows, next (blocks of rows · cols); `fills`:
 * the entry goes to where the number was. */
static void walk_columns(const struct sl_sparse *view, uint32_t *next, bool fills)
{
    for (int64_t b = 0; b < view->blocks; b++)
        for (int64_t r = 0; r < view->rows; r++) {
            const int64_t first = r / view->mirror.block_rows * view->mirror.block_rows;
            uint32_t *of_block = next + first / view->mirror.block_rows * view->cols;
            for (uint32_t e = view->row_ptr[b * view->rows + r];
                 e < view->row_ptr[b * view->rows + r + 1]; e++) {
                const uint32_t at = of_block[b * view->block_cols + sl_sparse_col(view, e)]++;
                if (!fills)
                    continue;
                if (view->mirror.narrow)
                    ((uint16_t *)view->mirror.col)[at] = (uint16_t)(r - first);
                else
                    ((uint32_t *)view->mirror.col)[at] = (uint32_t)(r - first);
                if (view->value)
                    ((float *)view->mirror.value)[at] = view->value[e];
            }
        }
}

/* Store the transpose of a tile. Each row pointer starts as the end of the column before; the walk
 * moves it to the end of its own column. */
static void fill_mirror(const struct sl_sparse_tile *tile)
{
    const struct sl_sparse view = sl_sparse_view(tile->tile.memory, &tile->shape);
    const int64_t count = view.mirror.blocks * view.cols;
    uint32_t *ptr = (uint32_t *)view.mirror.row_ptr, sum = 0;
    memset(ptr, 0, (size_t)(count + 1) * sizeof *ptr);
    walk_columns(&view, ptr + 1, false);
    for (int64_t c = 0; c < count; c++) {
        const uint32_t entries = ptr[c + 1];
        ptr[c + 1] = sum;
        sum += entries;
    }
    walk_columns(&view, ptr + 1, true);
}

static void pack_tiles(const struct cutting *c)
{
    start_blocks(c);
    for (int i = 0; i < c->matrix->tile_rows; i++)
        each_row(c, i, false, pack_run);
    for (int i = 0; i < c->matrix->tile_rows; i++)
        for (int k = 0; k < c->matrix->tile_cols; k++) {
            const struct sl_sparse_tile *tile = sl_sparse_matrix_tile(c->matrix, i, k);
            if (tile->tile.memory)
                fill_row_ptr(tile);
            if (tile->tile.memory && tile->shape.mirrored)
                fill_mirror(tile);
        }
}

/* A row of tiles is heavy with over HEAVY_PIECES pieces. A piece has LEAST_PIECE entries at least,
 * to be worth a task. It has over LEAST_PIECE_PER_ROW entries per row, so that its sum is cheap to
 * add. */
static const int64_t HEAVY_PIECES = 2, LEAST_PIECE = 4096, LEAST_PIECE_PER_ROW = 8;

/* Find the heavy tile rows; all ranks find the same. */
static void find_heavy(const struct cutting *c)
{
    struct sl_sparse_matrix *matrix = c->matrix;
    int64_t total = 0;
    for (int i = 0; i < matrix->tile_rows; i++)
        for (int k = 0; k < matrix->tile_cols; k++)
            c->row_nnz[i] += sl_sparse_matrix_tile(matrix, i, k)->shape.nnz;
    if (!c->all)
        sl_runtime_sum(c->rt, c->row_nnz, matrix->tile_rows);
    for (int i = 0; i < matrix->tile_rows; i++)
        total += c->row_nnz[i];
    matrix->piece = matrix->tile_rows ? total / matrix->tile_rows : 0;
    matrix->piece = matrix->piece < LEAST_PIECE ? LEAST_PIECE : matrix->piece;
    for (int i = 0; i < matrix->tile_rows; i++) {
        const int64_t rows = matrix->row_cut[i + 1] - matrix->row_cut[i];
        matrix->heavy[i] = c->row_nnz[i] > HEAVY_PIECES * matrix->piece &&
                           matrix->piece > LEAST_PIECE_PER_ROW * rows;
    }
}

/* Count the entries of tile row i again, after its tiles have changed. */
static void recount(const struct cutting *c, int i)
{
    for (int k = 0; k < c->matrix->tile_cols; k++)
        sl_sparse_matrix_tile(c->matrix, i, k)->shape.nnz = 0;
    for (int64_t b = 0; b < c->block_count; b++)
        c->block_nnz[i * c->block_count + b] = 0;
    each_row(c, i, c->all, count_run);
}

static void count_entries(const struct cutting *c)
{
    for (int i = 0; i < c->matrix->tile_rows; i++)
        each_row(c, i, c->all, count_run);
    find_heavy(c);
    for (int i = 0; c->span && i < c->matrix->tile_rows; i++)
        if (c->matrix->heavy[i])
            recount(c, i);
}

/* Share nnz of every tile with every rank: it decides who submits and who receives which tiles. */
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
        nnz[t] = matrix->tiles[t].shape.nnz;
    if (!c->all)
        sl_runtime_sum(c->rt, nnz, count);
    for (int64_t t = 0; t < count; t++) {
        matrix->tiles[t].shape.nnz = nnz[t];
        matrix->nnz += nnz[t];
    }
    free(nnz);
    return 0;
}

/* Limit of a tile's bytes: messages count bytes in 31 bits. */
static const size_t MOST_BYTES = (size_t)2 << 30;

/* Describe tile (i, k), all but its memory. A tile that would be too large with its transpose
 * stores no transpose. */
static int describe_tile(const struct cutting *c, int i, int k)
{
    const struct sl_sparse_matrix *matrix = c->matrix;
    struct sl_sparse_tile *tile = sl_sparse_matrix_tile(matrix, i, k);
    struct sl_sparse_shape *shape = &tile->shape;
    const int end = c->end[k];
    tile->span = end - k;
    shape->rows = matrix->row_cut[i + 1] - matrix->row_cut[i];
    shape->cols = matrix->col_cut[end] - matrix->col_cut[k];
    shape->block_cols = c->block_cols < shape->cols ? c->block_cols : shape->cols;
    shape->has_values = c->has_values;
    shape->edge_features = c->edges.features;
    shape->mirrored = c->mirrored;
    shape->mirrored = c->mirrored && sl_sparse_bytes(shape) < MOST_BYTES;
    const size_t bytes = shape->nnz ? sl_sparse_bytes(shape) : 0;
    if (bytes >= MOST_BYTES)
        return sl_error(SL_ERR_USAGE,
                        "tile (%d, %d) has %lld nonzeros, over the 2 GiB that a tile may take: ask "
                        "for more tiles with --tiles",
                        i, k, (long long)shape->nnz);
    const int64_t length = bytes ? (int64_t)bytes : 1;
    sl_tile_describe(c->rt, &tile->tile, 1, length, length, 1, c->owner(c->owner_context, i, k),
                     NULL);
    return 0;
}

static bool has_memory(const struct cutting *c, const struct sl_sparse_tile *tile)
{
    return tile->shape.nnz && tile->tile.owner == c->rt->rank;
}

/* Allocate one slab for all tiles of this rank, so that small tiles are on huge pages, too. */
static int allocate_tiles(const struct cutting *c)
{
    struct sl_sparse_matrix *matrix = c->matrix;
    const int64_t count = (int64_t)matrix->tile_rows * matrix->tile_cols;
    for (int i = 0; i < matrix->tile_rows; i++) {
        find_spans(c, i);
        for (int k = 0; k < matrix->tile_cols; k++)
            if (describe_tile(c, i, k))
                return SL_ERR_USAGE;
    }
    for (int64_t t = 0; t < count; t++)
        if (has_memory(c, &matrix->tiles[t]))
            matrix->slab_bytes += (size_t)matrix->tiles[t].tile.cols;
    for (int64_t t = 0; !c->has_values && t < count; t++)
        if (matrix->tiles[t].shape.nnz > c->rt->spmm.most_ones)
            c->rt->spmm.most_ones = matrix->tiles[t].shape.nnz;
    if (c->rt->plans)
        return 0;
    char *memory = matrix->slab = sl_memory_alloc(matrix->slab_bytes);
    if (memory)
        sl_runtime_touch(memory, matrix->slab_bytes);
    for (int64_t t = 0; memory && t < count; t++)
        if (has_memory(c, &matrix->tiles[t])) {
            matrix->tiles[t].tile.memory = memory;
            memory += matrix->tiles[t].tile.cols;
        }
    return matrix->slab ? 0 : SL_ERR_SYSTEM;
}

static int count_blocks(struct cutting *c)
{
    const struct sl_sparse_matrix *matrix = c->matrix;
    c->end = calloc((size_t)matrix->tile_cols + 1, sizeof *c->end);
    c->own = calloc((size_t)matrix->tile_cols + 1, sizeof *c->own);
    c->block_first = calloc((size_t)matrix->tile_cols + 1, sizeof *c->block_first);
    for (int k = 0; c->block_first && matrix->col_cut && k < matrix->tile_cols; k++) {
        const int64_t cols = matrix->col_cut[k + 1] - matrix->col_cut[k];
        c->block_first[k + 1] = c->block_first[k] + (cols + c->block_cols - 1) / c->block_cols;
    }
    c->block_count = c->block_first ? c->block_first[matrix->tile_cols] : 0;
    c->block_nnz = calloc((size_t)(matrix->tile_rows * c->block_count + 1), sizeof *c->block_nnz);
    c->row_nnz = calloc((size_t)matrix->tile_rows + 1, sizeof *c->row_nnz);
    const bool room = c->end && c->own && c->block_first && c->block_nnz && c->row_nnz &&
                      matrix->tiles && matrix->row_cut && matrix->col_cut && matrix->heavy;
    return room ? 0
                : sl_error(SL_ERR_SYSTEM, "no memory for a grid of %d x %d tiles",
                           matrix->tile_rows, matrix->tile_cols);
}

static int cut_matrix(struct cutting *c)
{
    int code = sl_runtime_agree(c->rt, count_blocks(c));
    if (code)
        return code;
    count_entries(c);
    code = share_counts(c);
    if (!code)
        code = allocate_tiles(c);
    code = sl_runtime_agree(c->rt, code);
    if (!code && !c->rt->plans)
        pack_tiles(c);
    return code;
}

int sl_sparse_matrix_create(struct sl_runtime *rt, struct sl_sparse_matrix *matrix,
                            const struct sl_cuts *cuts, sl_span_function *span, int64_t block_cols,
                            const struct sl_sparse_rows *rows)
{
    const size_t tiles = (size_t)cuts->tile_rows * (size_t)cuts->tile_cols;
    *matrix = (struct sl_sparse_matrix){
        .rows = cuts->row_cut[cuts->tile_rows],
        .cols = cuts->col_cut[cuts->tile_cols],
        .tile_rows = cuts->tile_rows,
        .tile_cols = cuts->tile_cols,
        .row_cut = sl_cut_copy(cuts->tile_rows, cuts->row_cut),
        .col_cut = sl_cut_copy(cuts->tile_cols, cuts->col_cut),
        .tiles = calloc(tiles, sizeof *matrix->tiles),
        .heavy = calloc((size_t)cuts->tile_rows, sizeof *matrix->heavy),
    };
    struct cutting c = {.rt = rt,
                        .matrix = matrix,
                        .row = rows->row,
                        .context = rows->context,
                        .owner = cuts->owner,
                        .span = span,
                        .owner_context = cuts->context,
                        .block_cols = block_cols > 1 ? block_cols : 1,
                        .has_values = rows->has_values,
                        .mirrored = rows->mirrored,
                        .all = rows->all,
                        .edges = rows->edges};
    const int code = cut_matrix(&c);
    free(c.end);
    free(c.own);
    free(c.block_first);
    free(c.block_nnz);
    free(c.row_nnz);
    if (code)
        sl_sparse_matrix_destroy(matrix);
    return code;
}

void sl_sparse_matrix_destroy(struct sl_sparse_matrix *matrix)
{
    for (int64_t t = 0; matrix->tiles && t < (int64_t)matrix->tile_rows * matrix->tile_cols; t++)
        sl_tile_forget(&matrix->tiles[t].tile);
    free(matrix->tiles);
    free(matrix->row_cut);
    free(matrix->col_cut);
    free(matrix->heavy);
    sl_memory_free(matrix->slab, matrix->slab_bytes);
    *matrix = (struct sl_sparse_matrix){0};
}
