/* Cutting a sparse matrix into tiles (core/sparse.h): all entries of all tiles, read back, are the
 * matrix, row by row and in the order of its columns.
 *
 * The tests vary:
 *
 *     cuts      ragged, with empty row and column tiles
 *     blocks    all sizes
 *     columns   16 and 32 bits
 *     tiles     neighbours are one tile, except in heavy rows; some tiles are another rank's
 *     values    with, without, and stored values for rows that have none
 *     mirrored  tiles with their transposes, and tiles alone
 *
 * Rows have duplicates, and every fifth row is empty. */
#include "core/error.h"
#include "core/sparse.h"
#include "core/spread.h"
#include "tests/kernels.h"
#include "tests/running.h"
#include "tests/unit.h"

/* ---- The matrix ---- */

struct matrix {
    int64_t rows, cols;
    int64_t *indptr;  // (rows + 1)
    int32_t *indices; // (nnz)
    float *values;    // (nnz)
    bool valued;      /* the rows have values */
};

static int ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static struct matrix make_matrix(int64_t rows, int64_t cols, int64_t degree, bool valued)
{
    struct matrix m = {rows,
                       cols,
                       calloc((size_t)rows + 1, sizeof *m.indptr),
                       calloc((size_t)(rows * degree) + 1, sizeof *m.indices),
                       calloc((size_t)(rows * degree) + 1, sizeof *m.values),
                       valued};
    assert_true(m.indptr && m.indices && m.values);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t count = r % 5 == 3 ? 0 : sl_random_below(degree + 1);
        int32_t *row = m.indices + m.indptr[r];
        for (int64_t e = 0; e < count; e++) {
            row[e] = (int32_t)(e && sl_random_below(6) == 0 ? row[e - 1] : sl_random_below(cols));
            m.values[m.indptr[r] + e] = sl_random_value(SL_REALS);
        }
        qsort(row, (size_t)count, sizeof *row, ascending);
        m.indptr[r + 1] = m.indptr[r] + count;
    }
    return m;
}

static void free_matrix(struct matrix *m)
{
    free(m->indptr);
    free(m->indices);
    free(m->values);
}

static void read_row(const void *context, int64_t r, int64_t *count, const int32_t **columns,
                     const float **values)
{
    const struct matrix *m = context;
    *count = m->indptr[r + 1] - m->indptr[r];
    *columns = m->indices + m->indptr[r];
    *values = m->valued ? m->values + m->indptr[r] : NULL;
}

/* ---- How it is cut ---- */

/* The context of the functions owner and span. */
struct plan {
    const char *name;
    bool joined, shared;
};

/* Shared: every third tile row belongs to another rank. */
static int owner(const void *context, int i, int k)
{
    const struct plan *plan = context;
    (void)k;
    return plan->shared && i % 3 == 1 ? 1 : 0;
}

/* Joined: {0}, {1, 2, 3}, {4}, {5, 6, 7}, …, one tile later in each row. */
static int span(const void *context, int i, int k)
{
    const struct plan *plan = context;
    const int place = (k + i) % 4;
    if (!plan->joined || place == 0)
        return k;
    return k >= place - 1 ? k - (place - 1) : 0;
}

static int64_t *random_cuts(int tiles, int64_t size)
{
    int64_t *cut = calloc((size_t)tiles + 1, sizeof *cut);
    assert_non_null(cut);
    for (int t = 1; t < tiles; t++)
        cut[t] = sl_random_below(4) ? size * t / tiles : cut[t - 1];
    cut[tiles] = size;
    return cut;
}

/* ---- Reading it back ---- */

/* The entry up to which each row was read. */
struct reader {
    const struct matrix *matrix;
    bool has_values;
    int64_t *next; // (rows)
};

static void read_entry(struct reader *reader, int64_t r, int64_t column, const float *value)
{
    const struct matrix *m = reader->matrix;
    const int64_t e = reader->next[r]++;
    assert_true(e < m->indptr[r + 1]);
    assert_int_equal(column, m->indices[e]);
    if (value)
        assert_true(*value == (m->valued ? m->values[e] : 1.0f));
}

/* Row r of all blocks of a tile. */
static void read_tile_row(struct reader *reader, const struct sl_sparse *a, int64_t r, int64_t row,
                          int64_t first_col)
{
    for (int64_t b = 0; b < a->blocks; b++) {
        const uint32_t *range = a->row_ptr + b * a->rows + r;
        const int64_t first = b * a->block_cols;
        assert_true(range[0] <= range[1]);
        for (uint32_t e = range[0]; e < range[1]; e++) {
            const int64_t column = first + sl_sparse_col(a, e);
            assert_true(column < first + a->block_cols && column < a->cols);
            read_entry(reader, row, first_col + column, a->value ? &a->value[e] : NULL);
        }
    }
}

static void check_shape(const struct sl_sparse_matrix *matrix, const struct sl_sparse_tile *tile,
                        int i, int k, int64_t block_cols, bool has_values)
{
    const struct sl_sparse_shape *shape = &tile->shape;
    const int64_t cols = matrix->col_cut[k + tile->span] - matrix->col_cut[k];
    assert_int_equal(shape->rows, matrix->row_cut[i + 1] - matrix->row_cut[i]);
    assert_int_equal(shape->cols, cols);
    assert_int_equal(shape->block_cols, block_cols < cols ? block_cols : cols);
    assert_int_equal(shape->has_values, has_values);
    if (!tile->span)
        assert_int_equal(shape->nnz, 0);
    if (!shape->nnz)
        assert_null(tile->tile.memory);
}

/* Everything that is packed lies in the tile, each part at a multiple of 64 bytes. */
static void check_view(const struct sl_sparse_tile *tile, const struct sl_sparse *a)
{
    const struct sl_sparse_shape *shape = &tile->shape;
    const char *base = tile->tile.memory, *end = base + sl_sparse_bytes(shape);
    const size_t width = a->narrow ? sizeof(uint16_t) : sizeof(uint32_t);
    assert_int_equal(tile->tile.cols, end - base);
    assert_int_equal(a->blocks, (shape->cols + shape->block_cols - 1) / shape->block_cols);
    assert_int_equal(a->narrow, shape->block_cols <= 65536);
    assert_int_equal(a->value != NULL, shape->has_values);
    assert_true((const char *)(a->row_ptr + a->blocks * a->rows + 1) <= (const char *)a->col);
    assert_true((const char *)a->col + (size_t)shape->nnz * width <=
                (a->value ? (const char *)a->value : end));
    assert_true(!a->value || (const char *)(a->value + shape->nnz) <= end);
    assert_int_equal(((uintptr_t)a->col - (uintptr_t)base) % 64, 0);
    assert_int_equal((a->value ? (uintptr_t)a->value - (uintptr_t)base : 0) % 64, 0);
    assert_int_equal(a->row_ptr[0], 0);
    assert_int_equal(a->row_ptr[a->blocks * a->rows], shape->nnz);
}

/* The stored transpose has the tile's entries, in each block of rows and column by ascending row.
 */
static void check_mirror(const struct sl_sparse_tile *tile, const struct sl_sparse *a)
{
    const struct sl_sparse_shape *shape = &tile->shape;
    const int64_t most = shape->block_cols > 1 ? shape->block_cols : 1,
                  block_rows = most < a->rows ? most : a->rows,
                  blocks = (a->rows + block_rows - 1) / block_rows, count = blocks * a->cols;
    uint32_t *next = calloc((size_t)count + 1, sizeof *next);
    assert_non_null(next);
    assert_int_equal(a->mirror.block_rows, block_rows);
    assert_int_equal(a->mirror.blocks, blocks);
    memcpy(next, a->mirror.row_ptr, (size_t)count * sizeof *next);
    for (int64_t b = 0; b < a->blocks; b++)
        for (int64_t r = 0; r < a->rows; r++)
            for (uint32_t e = a->row_ptr[b * a->rows + r]; e < a->row_ptr[b * a->rows + r + 1];
                 e++) {
                const uint32_t at =
                    next[r / block_rows * a->cols + b * a->block_cols + sl_sparse_col(a, e)]++;
                assert_int_equal(a->mirror.narrow ? ((const uint16_t *)a->mirror.col)[at]
                                                  : ((const uint32_t *)a->mirror.col)[at],
                                 r % block_rows);
                if (a->value)
                    assert_float_equal(a->mirror.value[at], a->value[e], 0.0f);
            }
    for (int64_t c = 0; c < count; c++)
        assert_int_equal(next[c], a->mirror.row_ptr[c + 1]);
    assert_int_equal(a->mirror.row_ptr[0], 0);
    assert_int_equal(a->mirror.row_ptr[count], shape->nnz);
    const char *last = a->value ? (const char *)(a->mirror.value + shape->nnz)
                                : (const char *)a->mirror.col + (size_t)shape->nnz * 2;
    assert_true(last <= (const char *)tile->tile.memory + tile->tile.cols);
    free(next);
}

/* All tiles of tile row i, those of this rank. */
static int64_t read_tiles(struct reader *reader, const struct sl_sparse_matrix *matrix, int i,
                          int64_t block_cols, const struct plan *plan)
{
    int64_t nnz = 0;
    for (int k = 0; k < matrix->tile_cols; k++) {
        const struct sl_sparse_tile *tile = sl_sparse_matrix_tile(matrix, i, k);
        const int first = matrix->heavy[i] ? k : span(plan, i, k);
        assert_int_equal(tile->span > 0, first == k);
        if (matrix->heavy[i])
            assert_int_equal(tile->span, 1);
        for (int next = k + 1; next < k + tile->span; next++)
            assert_int_equal(span(plan, i, next), k);
        assert_int_equal(tile->tile.owner, owner(plan, i, k));
        check_shape(matrix, tile, i, k, block_cols, reader->has_values);
        assert_int_equal(tile->shape.mirrored, block_cols % 2);
        nnz += tile->shape.nnz;
        if (!tile->shape.nnz)
            continue;
        const struct sl_sparse a = sl_sparse_view(tile->tile.memory, &tile->shape);
        check_view(tile, &a);
        assert_int_equal(a.mirror.row_ptr != NULL, tile->shape.mirrored);
        if (a.mirror.row_ptr)
            check_mirror(tile, &a);
        for (int64_t r = 0; r < a.rows; r++)
            read_tile_row(reader, &a, r, matrix->row_cut[i] + r, matrix->col_cut[k]);
    }
    return nnz;
}

/* A piece is the mean entries of a row of tiles, at least 4096; heavy are over two pieces in rows
 * that are fewer than an eighth of the entries of one. */
static void check_heavy(const struct matrix *m, const struct sl_sparse_matrix *matrix,
                        const struct plan *plan)
{
    const int64_t mean = matrix->nnz / matrix->tile_rows, piece = mean > 4096 ? mean : 4096;
    assert_int_equal(matrix->piece, piece);
    for (int i = 0; i < matrix->tile_rows; i++) {
        const int64_t first = matrix->row_cut[i], last = matrix->row_cut[i + 1];
        const int64_t entries = owner(plan, i, 0) ? 0 : m->indptr[last] - m->indptr[first];
        assert_int_equal(matrix->heavy[i], entries > 2 * piece && 8 * (last - first) < piece);
    }
}

/* Rows in tiles of this rank have been read to their ends, others not at all. */
static void check_matrix(const struct matrix *m, const struct sl_sparse_matrix *matrix,
                         int64_t block_cols, bool has_values, const struct plan *plan)
{
    struct reader reader = {m, has_values, calloc((size_t)m->rows + 1, sizeof *reader.next)};
    assert_non_null(reader.next);
    memcpy(reader.next, m->indptr, (size_t)m->rows * sizeof *reader.next);
    int64_t nnz = 0;
    for (int i = 0; i < matrix->tile_rows; i++) {
        nnz += read_tiles(&reader, matrix, i, block_cols, plan);
        for (int64_t r = matrix->row_cut[i]; r < matrix->row_cut[i + 1]; r++)
            assert_int_equal(reader.next[r], m->indptr[r + (owner(plan, i, 0) == 0)]);
    }
    assert_int_equal(matrix->nnz, nnz);
    assert_int_equal(matrix->rows, m->rows);
    assert_int_equal(matrix->cols, m->cols);
    check_heavy(m, matrix, plan);
    free(reader.next);
}

/* ---- All of them ---- */

static void check_cut(const struct matrix *m, int tile_rows, int tile_cols, int64_t block_cols,
                      bool has_values, const struct plan *plan)
{
    const bool mirrored = (block_cols > 1 ? block_cols : 1) % 2;
    struct sl_sparse_matrix matrix;
    int64_t *row_cut = random_cuts(tile_rows, m->rows), *col_cut = random_cuts(tile_cols, m->cols);
    const struct sl_cuts cuts = {tile_rows, tile_cols, row_cut, col_cut, owner, plan};
    if (sl_sparse_matrix_create(&sl_running, &matrix, &cuts, plan->joined ? span : NULL, block_cols,
                                &(struct sl_sparse_rows){has_values, read_row, m, mirrored, false}))
        fail_msg("%s: %s", plan->name, sl_error_message());
    check_matrix(m, &matrix, block_cols > 1 ? block_cols : 1, has_values, plan);
    sl_sparse_matrix_destroy(&matrix);
    free(row_cut);
    free(col_cut);
}

static struct plan plans[] = {
    {"tile by tile", false, false},
    {"joined", true, false},
    {"of two ranks", false, true},
    {"joined, of two ranks", true, true},
};

static void test_cuts(void **state)
{
    static const int64_t sizes[][2] = {{1, 1}, {3, 90}, {61, 47}, {200, 131}, {0, 5}};
    static const int tiles[] = {1, 2, 5, 11};
    static const int64_t blocks[] = {0, 1, 3, 7, 50, 1000000};
    sl_random_seed(1);
    for (size_t s = 0; s < SL_COUNT(sizes); s++)
        for (size_t t = 0; t < SL_COUNT(tiles) * SL_COUNT(tiles); t++)
            for (size_t b = 0; b < SL_COUNT(blocks); b++)
                for (int option = 0; option < 4; option++) {
                    struct matrix m = make_matrix(sizes[s][0], sizes[s][1], 17, option & 1);
                    check_cut(&m, tiles[t % SL_COUNT(tiles)], tiles[t / SL_COUNT(tiles)], blocks[b],
                              option & 2, *state);
                    free_matrix(&m);
                }
}

/* Around the number of columns that 16 bits can say. */
static void test_many_columns(void **state)
{
    static const int64_t blocks[] = {1000, 65535, 65536, 65537, 1000000};
    for (size_t b = 0; b < SL_COUNT(blocks); b++)
        for (int option = 0; option < 4; option++)
            for (int tiles = 1; tiles <= 3; tiles++) {
                struct matrix m = make_matrix(40, 150000, 60, option & 1);
                check_cut(&m, 3, tiles, blocks[b], option & 2, *state);
                free_matrix(&m);
            }
}

/* Rows with so many entries that some are heavy. */
static void test_heavy(void **state)
{
    static const int64_t blocks[] = {1000, 20000};
    for (size_t b = 0; b < SL_COUNT(blocks); b++)
        for (int option = 0; option < 4; option++) {
            struct matrix m = make_matrix(60, 20000, 15000, option & 1);
            check_cut(&m, 2 + option, 7, blocks[b], option & 2, *state);
            check_cut(&m, 59, 5, blocks[b], option & 2, *state);
            free_matrix(&m);
        }
}

/* Without entries a tile has no memory, and the matrix can be destroyed. */
static void test_no_entries(void **state)
{
    struct matrix m = make_matrix(30, 20, 0, true);
    check_cut(&m, 4, 3, 5, true, *state);
    free_matrix(&m);
}

/* ---- The transpose on one rank ---- */

static int first_rank(const void *context, int i, int j)
{
    (void)context, (void)i, (void)j;
    return 0;
}

/* Each column of the matrix, row by row, beside the row of the transpose. */
static void check_transpose(const struct matrix *m, const struct sl_spread *spread)
{
    int64_t *next = calloc((size_t)m->cols + 1, sizeof *next), entries = 0;
    assert_non_null(next);
    assert_true(spread->first == 0 && spread->rows == m->cols);
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t e = m->indptr[r]; e < m->indptr[r + 1]; e++, entries++) {
            int64_t count;
            const int32_t *columns;
            const float *values;
            const int32_t c = m->indices[e];
            sl_spread_row(spread, c, &count, &columns, &values);
            assert_true(next[c] < count);
            assert_int_equal(columns[next[c]], r);
            assert_float_equal(values[next[c]], (m->valued ? m->values[e] : 1.0f), 0.0f);
            next[c]++;
        }
    assert_int_equal(spread->indptr[m->cols], entries);
    free(next);
}

SL_TEST(test_transpose)
{
    struct sl_runtime alone = {.ranks = 1};
    static const int64_t columns[] = {1, 41, 16383, 16384, 16385, 50000};
    for (int k = 0; k < 6; k++)
        for (int valued = 0; valued < 2; valued++) {
            struct matrix m = make_matrix(300, columns[k], 40, valued);
            const int64_t row_cut[] = {0, m.cols / 2, m.cols}, col_cut[] = {0, 100, 300};
            struct sl_spread spread;
            assert_int_equal(sl_spread_create(&alone,
                                              &(struct sl_spread_source){.end = m.rows,
                                                                         .row = read_row,
                                                                         .context = &m,
                                                                         .transposed = true,
                                                                         .tile_rows = 2,
                                                                         .tile_cols = 2,
                                                                         .row_cut = row_cut,
                                                                         .col_cut = col_cut,
                                                                         .owner = first_rank},
                                              &spread),
                             0);
            check_transpose(&m, &spread);
            sl_spread_free(&spread);
            free_matrix(&m);
        }
}

int main(void)
{
    static const char *const names[] = {"cuts", "many columns", "heavy rows", "no entries",
                                        "transpose"};
    static void (*const functions[])(void **) = {test_cuts, test_many_columns, test_heavy,
                                                 test_no_entries, test_transpose};
    struct CMUnitTest tests[SL_COUNT(plans) * SL_COUNT(names)];
    for (size_t i = 0; i < SL_COUNT(tests); i++)
        tests[i] = (struct CMUnitTest){.name = names[i % SL_COUNT(names)],
                                       .test_func = functions[i % SL_COUNT(names)],
                                       .initial_state = &plans[i / SL_COUNT(names)]};
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
