/* Where rows are cut: against the rule in one loop over all rows, on odd sizes and weights; and how
 * even the shares are on degrees like those of an R-MAT graph, and tiles on such a graph. Run alone
 * and by tests/parts.sh on several ranks, which must cut alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/error.h"
#include "core/rng.h"
#include "data/generate_rmat.h"
#include "tests/running.h"
#include "train/partition.h"

/* A dataset of which only the row pointers count. */
struct graph {
    struct sl_source source;
    int64_t *indptr, *features; // (n + 1); features NULL: none
};

static struct graph make_graph(int64_t n, int64_t (*degree)(int64_t n, int64_t v), bool features)
{
    struct graph g = {.indptr = calloc((size_t)n + 1, sizeof *g.indptr)};
    g.features = features ? calloc((size_t)n + 1, sizeof *g.features) : NULL;
    for (int64_t v = 0; v < n; v++) {
        g.indptr[v + 1] = g.indptr[v] + degree(n, v);
        if (features)
            g.features[v + 1] = g.features[v] + degree(n, n - 1 - v) / 2;
    }
    g.source = (struct sl_source){.path = (char *)"graph", .vertices = n, .features = 7};
    struct sl_stored_csr *a = &g.source.adjacency, *x = &g.source.features_csr;
    a->indptr = sl_npy_view("indptr", SL_NPY_INT64, 1, n + 1, 0, g.indptr);
    a->indices = sl_npy_view("indices", SL_NPY_INT32, 1, g.indptr[n], 0, NULL);
    if (features) {
        g.source.feature_form = SL_FEATURES_CSR;
        x->indptr = sl_npy_view("features_indptr", SL_NPY_INT64, 1, n + 1, 0, g.features);
        x->indices = sl_npy_view("features_indices", SL_NPY_INT32, 1, g.features[n], 0, NULL);
    }
    return g;
}

static void free_graph(struct graph *g)
{
    free(g->indptr);
    free(g->features);
    sl_source_release(&g->source);
}

/* What row r of the order weighs. */
static int64_t weight_of(const struct graph *g, int64_t r)
{
    const int64_t v = sl_source_vertex(&g->source, r);
    return 1 + g->indptr[v + 1] - g->indptr[v] +
           (g->features ? g->features[v + 1] - g->features[v] : 0);
}

static struct sl_partition cut(const struct graph *g, const char *balance, int64_t tiles)
{
    struct sl_partition partition;
    const struct sl_partition_options options = {
        .balance = balance, .tiles = tiles, .cores = 4, .workers = 1, .width = 16};
    if (sl_partition_create(&sl_running, &partition, &g->source, &options))
        fail_msg("%s", sl_error_message());
    return partition;
}

/* ---- The rule ---- */

/* Rows in turn: a tile takes rows as long as their middles lie in its part of the whole weight, at
 * least one, and leaves one for each tile after it. */
static void check_cuts(const struct graph *g, const struct sl_partition *p, const char *what)
{
    const int64_t n = g->source.vertices, tiles = p->tiles;
    int64_t total = 0, sum = 0, r = 0;
    for (int64_t v = 0; v < n; v++)
        total += weight_of(g, v);
    assert_int_equal(p->row_cut[0], 0);
    for (int64_t t = 1; t <= tiles; t++) {
        const double goal = (double)total * (double)t / (double)tiles;
        do
            sum += weight_of(g, r++);
        while (r < n - (tiles - t) && (double)sum + 0.5 * (double)weight_of(g, r) <= goal);
        if (p->row_cut[t] != (t == tiles ? n : r))
            fail_msg("%s, %d vertices, %d tiles: cut %d is %d, expected %d", what, (int)n,
                     (int)tiles, (int)t, (int)p->row_cut[t], (int)r);
    }
}

static int64_t no_degree(int64_t n, int64_t v)
{
    (void)n, (void)v;
    return 0;
}

static int64_t any_degree(int64_t n, int64_t v)
{
    return (int64_t)(sl_rng_uniform(5, (uint32_t)n, (uint32_t)v) * 9.0);
}

/* One row that is heavier than all others together. */
static int64_t one_heavy(int64_t n, int64_t v)
{
    return v == n / 3 ? 20 * n : v % 3;
}

static int64_t first_heavy(int64_t n, int64_t v)
{
    return v == 0 ? 9 * n : 1;
}

static int64_t last_heavy(int64_t n, int64_t v)
{
    return v == n - 1 ? 9 * n : 1;
}

/* Half of the rows have no edges at all. */
static int64_t half_empty(int64_t n, int64_t v)
{
    return v < n / 2 ? 0 : 1 + v % 7;
}

static const struct {
    const char *name;
    int64_t (*degree)(int64_t n, int64_t v);
} shapes[] = {
    {"no edges", no_degree},        {"any", any_degree},
    {"one heavy row", one_heavy},   {"first row heavy", first_heavy},
    {"last row heavy", last_heavy}, {"half without edges", half_empty},
};

static void test_by_nnz(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 7, 61, 500};
    static const char *const orders[] = {"none", "random"};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            for (int variant = 0; variant < 4; variant++) {
                struct graph g = make_graph(sizes[k], shapes[s].degree, variant % 2);
                assert_int_equal(sl_source_order(&sl_running, &g.source, orders[variant / 2], 3),
                                 0);
                for (int64_t tiles = 1; tiles <= sizes[k] + 1; tiles += 1 + tiles / 4) {
                    struct sl_partition p = cut(&g, "nnz", tiles);
                    assert_int_equal(p.tiles, tiles < sizes[k] ? tiles : sizes[k]);
                    check_cuts(&g, &p, shapes[s].name);
                    sl_partition_destroy(&p);
                }
                free_graph(&g);
            }
}

static void test_by_rows(void **state)
{
    (void)state;
    struct graph g = make_graph(101, first_heavy, false);
    struct sl_partition p = cut(&g, "rows", 7);
    for (int t = 0; t < 7; t++) {
        const int64_t rows = p.row_cut[t + 1] - p.row_cut[t];
        assert_true(rows == 14 || rows == 15);
    }
    assert_int_equal(p.row_cut[0], 0);
    assert_int_equal(p.row_cut[7], 101);
    sl_partition_destroy(&p);
    free_graph(&g);
}

/* A damaged file must not lead out of it: what is cut is refused when it is read. */
static void test_damaged(void **state)
{
    (void)state;
    struct graph g = make_graph(61, any_degree, false);
    g.indptr[20] = INT64_MAX;
    g.indptr[40] = INT64_MIN;
    struct sl_partition p = cut(&g, "nnz", 9);
    for (int t = 0; t < 9; t++)
        assert_true(p.row_cut[t] < p.row_cut[t + 1]);
    assert_int_equal(p.row_cut[9], 61);
    sl_partition_destroy(&p);
    free_graph(&g);
}

/* ---- Ranks ---- */

static void assert_runs(const struct sl_partition *p)
{
    assert_int_equal(p->ranks, sl_running.ranks);
    assert_int_equal(p->rank_cut[0], 0);
    assert_int_equal(p->rank_cut[p->ranks], p->tiles);
    for (int r = 0; r < p->ranks; r++)
        assert_true(p->rank_cut[r] <= p->rank_cut[r + 1]);
}

/* The tiles of a rank are a share like that of its workers, to a tile; how rows are cut does not
 * depend on them. */
static void test_workers(void **state)
{
    (void)state;
    struct graph g = make_graph(500, any_degree, false);
    const int64_t ranks = sl_running.ranks, all = ranks * (ranks + 1) / 2;
    for (int64_t tiles = 1; tiles < 40; tiles++) {
        struct sl_partition_options options = {
            .balance = "nnz", .tiles = tiles, .cores = 4, .workers = 3, .width = 16};
        struct sl_partition equal, unequal;
        assert_int_equal(sl_partition_create(&sl_running, &equal, &g.source, &options), 0);
        options.workers = sl_running.rank + 1;
        assert_int_equal(sl_partition_create(&sl_running, &unequal, &g.source, &options), 0);
        assert_runs(&equal);
        assert_runs(&unequal);
        assert_memory_equal(equal.row_cut, unequal.row_cut,
                            (size_t)(tiles + 1) * sizeof *equal.row_cut);
        for (int64_t r = 0; r < ranks; r++) {
            const double had = (double)(equal.rank_cut[r + 1] - equal.rank_cut[r]),
                         has = (double)(unequal.rank_cut[r + 1] - unequal.rank_cut[r]);
            const double should = (double)tiles * (double)(r + 1) / (double)all;
            assert_true(had - (double)tiles / (double)ranks < 1.0);
            assert_true(has - should < 1.0 && should - has < 1.0);
        }
        sl_partition_destroy(&equal);
        sl_partition_destroy(&unequal);
    }
    free_graph(&g);
}

/* ---- How many ---- */

static int64_t five_hundred(int64_t n, int64_t v)
{
    (void)n, (void)v;
    return 500;
}

static int64_t tiles_for(const struct graph *g, int gpus, bool shared, int64_t gpu_bytes)
{
    struct sl_partition p;
    const struct sl_partition_options options = {.balance = "nnz",
                                                 .cores = 16,
                                                 .gpus = gpus,
                                                 .shared = shared,
                                                 .gpu_bytes = gpu_bytes,
                                                 .workers = 1,
                                                 .width = 256};
    assert_int_equal(sl_partition_create(&sl_running, &p, &g->source, &options), 0);
    const int64_t tiles = p.tiles;
    sl_partition_destroy(&p);
    return tiles;
}

/* Cores want many tiles; GPUs few, and one alone a single one, unless cores take some or it is
 * small: a tile is less than a 16th of it. */
static void test_devices(void **state)
{
    (void)state;
    enum { MIB = 1 << 20 };
    const int64_t ranks = sl_running.ranks, usual = INT64_C(16) << 30;
    struct graph small = make_graph(500, any_degree, false),
                 large = make_graph(40000, five_hundred, false);
    assert_int_equal(tiles_for(&small, 1, false, usual), ranks);
    assert_int_equal(tiles_for(&small, 1, true, usual), ranks);
    const int64_t cores = tiles_for(&large, 0, false, 0);
    assert_int_equal(tiles_for(&large, 1, false, usual), ranks);
    assert_in_range(tiles_for(&large, 1, false, 64 * MIB), 10, 10 + ranks); /* of 40 MB */
    assert_in_range(tiles_for(&large, (int)(4 * ranks), false, usual), 4 * ranks, 16 * ranks);
    assert_in_range(tiles_for(&large, 1, true, usual), 4, cores - 1);
    assert_in_range(cores, 16, 128);
    free_graph(&small);
    free_graph(&large);
}

/* ---- How even ---- */

/* What an R-MAT graph with Graph500's parameters gives vertex v on average: a, b, c, d are 0.57,
 * 0.19, 0.19 and 0.05, and each of an edge's ends decides bit by bit; 16 edges per vertex, both
 * directions.
 */
static int64_t rmat_degree(int64_t n, int64_t v)
{
    double share = 1.0;
    for (int64_t bit = n / 2; bit > 0; bit /= 2)
        share *= v & bit ? 0.24 : 0.76;
    return (int64_t)(32.0 * (double)n * share + sl_rng_uniform(1, (uint32_t)v, 0));
}

/* The largest of 8 equal runs of tiles, in relation to their mean. */
static double imbalance(const struct graph *g, const struct sl_partition *p)
{
    enum { RANKS = 8 };
    double most = 0.0, all = 0.0;
    for (int k = 0; k < RANKS; k++) {
        double sum = 0.0;
        for (int64_t r = p->row_cut[p->tiles * k / RANKS];
             r < p->row_cut[p->tiles * (k + 1) / RANKS]; r++)
            sum += (double)weight_of(g, r);
        most = sum > most ? sum : most;
        all += sum;
    }
    return most * RANKS / all;
}

static void check_imbalance(const struct graph *g, const char *order, const char *balance,
                            double least, double most)
{
    for (int64_t tiles = 8; tiles <= 64; tiles *= 8) {
        struct sl_partition p = cut(g, balance, tiles);
        const double found = imbalance(g, &p);
        if (sl_running.rank == 0)
            printf("order %s, balance %s, %d tiles: nonzeros of 8 ranks, largest / mean %.4f\n",
                   order, balance, (int)tiles, found);
        assert_true(found >= least && found <= most);
        sl_partition_destroy(&p);
    }
}

static void test_rmat(void **state)
{
    (void)state;
    struct graph g = make_graph(1 << 20, rmat_degree, false);
    check_imbalance(&g, "none", "nnz", 1.0, 1.02); /* the default */
    check_imbalance(&g, "none", "rows", 2.0, 8.0);
    assert_int_equal(sl_source_order(&sl_running, &g.source, "random", 1), 0);
    check_imbalance(&g, "random", "nnz", 1.0, 1.02);
    check_imbalance(&g, "random", "rows", 1.0, 1.3); /* MG-GCN's */
    free_graph(&g);
}

/* The tile of the cut that each vertex is in (n). */
static int32_t *tiles_of(const struct sl_partition *p, const struct sl_source *source)
{
    int32_t *tile = calloc((size_t)source->vertices, sizeof *tile);
    for (int t = 0; t < p->tiles; t++)
        for (int64_t r = p->row_cut[t]; r < p->row_cut[t + 1]; r++)
            tile[sl_source_vertex(source, r)] = t;
    return tile;
}

/* Entries of A + I in the fullest of 8 x 8 tiles, in relation to the mean, of rows in the first
 * order and columns in the other. */
static double tile_imbalance(const struct sl_csr *a, const struct sl_source *source)
{
    enum { TILES = 8 };
    int32_t *tile[2];
    double entries[TILES][TILES] = {{0.0}}, most = 0.0, all = 0.0;
    for (int o = 0; o < 2; o++) {
        const struct graph g = {.source =
                                    sl_source_in_order(source, source->second_vertex ? o : 0)};
        struct sl_partition p = cut(&g, "nnz", TILES);
        tile[o] = tiles_of(&p, &g.source);
        sl_partition_destroy(&p);
    }
    for (int64_t v = 0; v < a->rows; v++) {
        entries[tile[0][v]][tile[1][v]]++;
        for (int64_t e = a->indptr[v]; e < a->indptr[v + 1]; e++)
            entries[tile[0][v]][tile[1][a->indices[e]]]++;
    }
    for (int t = 0; t < TILES * TILES; t++) {
        const double here = entries[t / TILES][t % TILES];
        most = here > most ? here : most;
        all += here;
    }
    free(tile[0]);
    free(tile[1]);
    return most * TILES * TILES / all;
}

/* Hubs in one order of rows and columns share tiles, and so does the diagonal. */
static void test_double_permutation(void **state)
{
    (void)state;
    struct sl_rmat_options options = SL_RMAT_DEFAULTS;
    struct sl_dataset data = {0};
    struct sl_source source;
    options.scale = 18;
    options.features = options.classes = 1;
    assert_int_equal(sl_generate_rmat(&options, &data), 0);
    assert_int_equal(sl_source_of(&data, &source), 0);
    assert_int_equal(sl_source_order(&sl_running, &source, "random", 1), 0);
    const double once = tile_imbalance(&data.adjacency, &source);
    assert_int_equal(sl_source_order_double(&sl_running, &source, 1), 0);
    const double twice = tile_imbalance(&data.adjacency, &source);
    if (sl_running.rank == 0)
        printf("R-MAT, 8 x 8 tiles: nonzeros, largest / mean %.4f, in two orders %.4f\n", once,
               twice);
    assert_true(once > 1.1);
    assert_true(twice <= 1.01);
    sl_source_close(&source);
    sl_dataset_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_nnz),
        cmocka_unit_test(test_by_rows),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_workers),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_rmat),
        cmocka_unit_test(test_double_permutation),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
