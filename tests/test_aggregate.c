/* Aggregation over the tiles of a distribution (graphs/block.c), against a plain loop. Entries and
 * operands are small integers, so that sums are exact in any order and must be equal.
 *
 * The tests vary the number and place of hubs: rows with an entry in most columns. Where the grid
 * is fine enough, hubs are cut along their columns. The tests also vary the grid, with empty tiles,
 * values, blocks and epilogues. tests/mpi.sh tests that ranks do not change a bit. */
#include "codelets/epilogue.h"
#include "core/error.h"
#include "core/handle.h"
#include "graphs/distribution.h"
#include "tests/kernels.h"
#include "tests/running.h"
#include "tests/unit.h"

/* ---- The matrix ---- */

enum { ROWS = 20011, MOST_TILES = 20, FINE = 15, MOST_HUBS = 2 };

struct matrix {
    int hubs;
    int64_t hub[MOST_HUBS];
    int64_t degree; /* of the other rows, at most */
    bool valued;
    int64_t indptr[ROWS + 1];
    int32_t *columns; // (indptr[ROWS])
    float *values;    // (indptr[ROWS])
};

static bool is_hub(const struct matrix *m, int64_t r)
{
    return (m->hubs > 0 && r == m->hub[0]) || (m->hubs > 1 && r == m->hub[1]);
}

static void add_entry(struct matrix *m, int64_t r, int64_t column)
{
    m->columns[m->indptr[r + 1]] = (int32_t)column;
    m->values[m->indptr[r + 1]++] = sl_random_value(SL_INTEGERS);
}

/* A hub has every column of the first half and every third of the others. */
static void make_matrix(struct matrix *m)
{
    m->columns = calloc((size_t)(ROWS * (m->hubs + m->degree) + 1), sizeof *m->columns);
    m->values = calloc((size_t)(ROWS * (m->hubs + m->degree) + 1), sizeof *m->values);
    assert_true(m->columns && m->values);
    m->indptr[0] = 0;
    for (int64_t r = 0; r < ROWS; r++) {
        m->indptr[r + 1] = m->indptr[r];
        for (int64_t c = 0; is_hub(m, r) && c < ROWS; c++)
            if (c < ROWS / 2 || c % 3 == 0)
                add_entry(m, r, c);
        for (int64_t part = 0; !is_hub(m, r) && part < m->degree; part++)
            if (sl_random_below(4)) /* one in each part of the columns */
                add_entry(m, r, ROWS * part / m->degree + sl_random_below(ROWS / m->degree));
    }
}

static void free_matrix(struct matrix *m)
{
    free(m->columns);
    free(m->values);
}

static void read_row(const void *context, int64_t r, int64_t *count, const int32_t **columns,
                     const float **values)
{
    const struct matrix *m = context;
    *count = m->indptr[r + 1] - m->indptr[r];
    *columns = m->columns + m->indptr[r];
    *values = m->valued ? m->values + m->indptr[r] : NULL;
}

/* ---- The grid ---- */

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* About `tiles` row tiles, in which hubs stand alone; how many there are. */
static int cut_rows(const struct matrix *m, int tiles, int64_t *cut)
{
    int count = 0;
    for (int t = 0; t <= tiles; t++)
        cut[count++] = (int64_t)ROWS * t / tiles;
    for (int h = 0; tiles > 1 && h < m->hubs; h++) {
        cut[count++] = m->hub[h];
        cut[count++] = m->hub[h] + 1;
    }
    qsort(cut, (size_t)count, sizeof *cut, compare);
    return count - 1;
}

/* Heavy are the hubs' rows alone, and they are in a fine grid. */
static void check_heavy(const struct matrix *m, const struct sl_sparse_matrix *a, bool fine)
{
    for (int i = 0; i < a->tile_rows; i++) {
        const bool hub = a->row_cut[i + 1] == a->row_cut[i] + 1 && is_hub(m, a->row_cut[i]);
        assert_true(a->heavy[i] ? hub : !(hub && fine));
        for (int k = 0; a->heavy[i] && k < a->tile_cols; k++)
            assert_int_equal(sl_sparse_matrix_tile(a, i, k)->span, 1);
    }
}

/* ---- One product ---- */

struct product {
    struct sl_distribution distribution;
    struct sl_temporaries temporaries;
    struct sl_sparse_matrix a;
    struct sl_matrix h, z;
    int64_t cut[MOST_TILES + 1], width[2];
    int rank_cut[2];
};

static void make_product(struct product *p, const struct matrix *m, int tiles, int64_t block_cols,
                         int64_t width)
{
    const int count = cut_rows(m, tiles, p->cut);
    p->temporaries = (struct sl_temporaries){0};
    p->rank_cut[0] = 0;
    p->rank_cut[1] = count;
    p->distribution = (struct sl_distribution){
        .kind = &sl_distribution_block,
        .ranks = 1,
        .grid = {1, 1, 1},
        .temporaries = &p->temporaries,
        .tiles = count,
        .rank_cut = p->rank_cut,
        .row_cut = p->cut,
    };
    p->width[0] = 0;
    p->width[1] = width;
    const struct sl_cuts
        sparse = {count, count, p->cut, p->cut, sl_distribution_sparse_owner, &p->distribution},
        dense = {count, 1, p->cut, p->width, sl_distribution_dense_owner, &p->distribution};
    if (sl_sparse_matrix_create(&sl_running, &p->a, &sparse, sl_distribution_span, block_cols,
                                &(struct sl_sparse_rows){m->valued, read_row, m, false, false}) ||
        sl_matrix_create(&sl_running, &p->h, SL_FLOAT32, &dense) ||
        sl_matrix_create(&sl_running, &p->z, SL_FLOAT32, &dense))
        fail_msg("%s", sl_error_message());
    float *h = p->h.slab, *z = p->z.slab;
    for (size_t i = 0; i < p->h.slab_bytes / sizeof *h; i++) {
        h[i] = sl_random_value(SL_INTEGERS);
        z[i] = NAN; /* nothing is added to what was there */
    }
}

static void free_product(struct product *p)
{
    sl_temporaries_free(&p->temporaries);
    sl_sparse_matrix_destroy(&p->a);
    sl_matrix_destroy(&p->h);
    sl_matrix_destroy(&p->z);
}

static double element(const struct matrix *m, const struct product *p, int64_t r, int64_t j)
{
    const float *h = p->h.slab;
    const int64_t ld = p->h.tiles[0].ld;
    double sum = 0.0;
    for (int64_t e = m->indptr[r]; e < m->indptr[r + 1]; e++)
        sum += (m->valued ? (double)m->values[e] : 1.0) * (double)h[m->columns[e] * ld + j];
    return sum;
}

static void aggregate(const struct product *p, const struct sl_row_epilogue *epilogue)
{
    const struct sl_walk_step step = {.number = -1};
    sl_distribution_block.walk(&sl_running, &p->distribution, &step,
                               &(struct sl_reduction){.reducer = &sl_reduce_sum,
                                                      .a = &p->a,
                                                      .moved = {&p->h},
                                                      .out = {&p->z},
                                                      .epilogue = epilogue});
}

static void check_product(const struct matrix *m, int tiles, int64_t block_cols, int64_t width,
                          bool finished)
{
    struct product p;
    struct sl_tile scales[MOST_TILES] = {0};
    struct sl_row_epilogue epilogue = {.common = SL_EPILOGUE_NONE, .scales = scales};
    epilogue.common.relu = true;
    epilogue.common.scale = 0.5f;
    make_product(&p, m, tiles, block_cols, width);
    check_heavy(m, &p.a, tiles == FINE);
    for (int again = 0; again < 2; again++)
        aggregate(&p, finished ? &epilogue : NULL);
    sl_runtime_wait(&sl_running);
    const float *z = p.z.slab;
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t j = 0; j < width; j++) {
            const double sum = element(m, &p, r, j), half = sum > 0.0 ? 0.5 * sum : 0.0,
                         want = finished ? half : sum, got = (double)z[r * p.z.tiles[0].ld + j];
            if (got != want)
                fail_msg("%d tiles, width %d: row %d, column %d is %g, not %g", tiles, (int)width,
                         (int)r, (int)j, got, want);
        }
    free_product(&p);
}

/* ---- All of them ---- */

SL_TEST(test_products)
{
    static struct matrix matrices[] = {
        {.hubs = 1, .hub = {0}, .degree = 1},
        {.hubs = 1, .hub = {ROWS - 1}, .degree = 1, .valued = true},
        {.hubs = 2, .hub = {10000, 10001}, .degree = 0},
        {.hubs = 2, .hub = {300, 17000}, .degree = 2, .valued = true},
        {.hubs = 0, .degree = 9},
        {.hubs = 0, .degree = 0},
    };
    static const int tiles[] = {1, 4, FINE};
    static const int64_t widths[] = {1, 16, 41}, blocks[] = {700, ROWS};
    sl_random_seed(3);
    for (size_t m = 0; m < SL_COUNT(matrices); m++) {
        make_matrix(&matrices[m]);
        for (size_t t = 0; t < SL_COUNT(tiles); t++)
            for (size_t w = 0; w < SL_COUNT(widths); w++)
                for (int option = 0; option < 4; option++)
                    check_product(&matrices[m], tiles[t], blocks[option & 1], widths[w],
                                  option & 2);
        free_matrix(&matrices[m]);
    }
}

/* Pieces of hubs have handles in turns: after a few walks, no walk registers one. The handles then
 * serve other tiles. */
SL_TEST(test_pieces_take_handles_in_turns)
{
    enum { FIRST = 2 * SL_TEMPORARY_REST, LAST = 50 };
    static struct matrix m = {.hubs = 1, .hub = {300}, .degree = 1};
    struct product p;
    int64_t handles = 0;
    make_matrix(&m);
    for (int again = 0; again < 2; again++) {
        make_product(&p, &m, FINE, ROWS, 16);
        check_heavy(&m, &p.a, true);
        const int first = again ? 0 : FIRST;
        for (int walk = 0; walk < LAST; walk++) {
            handles = walk == first ? sl_handles_registered() : handles;
            aggregate(&p, NULL);
            assert_true(walk < first || sl_handles_registered() == handles);
        }
        sl_runtime_wait(&sl_running);
        free_product(&p);
    }
    free_matrix(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products),
                                       cmocka_unit_test(test_pieces_take_handles_in_turns)};
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
