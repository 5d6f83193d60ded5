/* Cuts of rows, and blocks of columns. Compare cuts on odd sizes and weights with the rule in one
 * loop over all rows. Measure how even shares are on degrees of an R-MAT graph, and tiles on an
 * R-MAT graph. Run alone, and by tests/parts.sh on several ranks, which must cut alike. */
#include "assembly/partition.h"
#include "core/error.h"
#include "core/rng.h"
#include "data/generate/generate_rmat.h"
#include "data/partition/scotch.h"
#include "predict/tile_counts.h"
#include "tests/running.h"
#include "tests/unit.h"

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
    a->indices.data = NULL;
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

/* Return the weight of row r of the order. */
static int64_t weight_of(const struct graph *g, int64_t r)
{
    const int64_t v = sl_source_vertex(&g->source, r);
    return 1 + g->indptr[v + 1] - g->indptr[v] +
           (g->features ? g->features[v + 1] - g->features[v] : 0);
}

static struct sl_partition cut(const struct graph *g, enum sl_balance balance, int64_t tiles)
{
    struct sl_partition partition;
    const struct sl_partition_options options = {
        .balance = balance, .tiles = tiles, .cores = 4, .workers = 1, .width = 16};
    if (sl_partition_create(&sl_running, &partition, &g->source, &options))
        fail_msg("%s", sl_error_message());
    return partition;
}

/* ---- The rule ---- */

/* Rows come in turn. A tile takes rows as long as the middles of the rows lie in the tile's part of
 * the whole weight. A tile takes at least one row, and leaves one row for each tile after it. */
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

SL_TEST(test_by_nnz)
{
    static const int64_t sizes[] = {1, 2, 3, 7, 61, 500};
    static const char *const orders[] = {"none", "random"};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            for (int variant = 0; variant < 4; variant++) {
                struct graph g = make_graph(sizes[k], shapes[s].degree, variant % 2);
                assert_int_equal(sl_source_order(&sl_running, &g.source, orders[variant / 2], 3),
                                 0);
                for (int64_t tiles = 1; tiles <= sizes[k] + 1; tiles += 1 + tiles / 4) {
                    struct sl_partition p = cut(&g, SL_BALANCE_NNZ, tiles);
                    assert_int_equal(p.tiles, tiles < sizes[k] ? tiles : sizes[k]);
                    check_cuts(&g, &p, shapes[s].name);
                    sl_partition_destroy(&p);
                }
                free_graph(&g);
            }
}

SL_TEST(test_by_rows)
{
    struct graph g = make_graph(101, first_heavy, false);
    struct sl_partition p = cut(&g, SL_BALANCE_ROWS, 7);
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
SL_TEST(test_damaged)
{
    struct graph g = make_graph(61, any_degree, false);
    g.indptr[20] = INT64_MAX;
    g.indptr[40] = INT64_MIN;
    struct sl_partition p = cut(&g, SL_BALANCE_NNZ, 9);
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
SL_TEST(test_workers)
{
    struct graph g = make_graph(500, any_degree, false);
    const int64_t ranks = sl_running.ranks, all = ranks * (ranks + 1) / 2;
    for (int64_t tiles = 1; tiles < 40; tiles++) {
        struct sl_partition_options options = {
            .balance = SL_BALANCE_NNZ, .tiles = tiles, .cores = 4, .workers = 3, .width = 16};
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

/* ---- Hops ---- */

static int64_t two(int64_t n, int64_t v)
{
    (void)n, (void)v;
    return 2;
}

/* Row tiles of a selection: each rank has its share of every hop, nearest first, and a tile has
 * rows of one hop, unless hops are small. */
static void check_hops(const struct graph *g, const struct sl_partition *p, int64_t tiles)
{
    const struct sl_source *source = &g->source;
    const int64_t usual = source->vertices / tiles;
    assert_runs(p);
    assert_int_equal(p->row_cut[0], 0);
    assert_int_equal(p->row_cut[p->tiles], source->vertices);
    for (int r = 0; r < p->ranks; r++)
        for (int t = p->rank_cut[r]; t < p->rank_cut[r + 1]; t++) {
            const int64_t from = p->row_cut[t], to = p->row_cut[t + 1];
            const int first = sl_source_hop(source, from), last = sl_source_hop(source, to - 1);
            assert_true(from < to);
            assert_int_equal(p->hop[t], t == 0 ? 0 : first);
            assert_true(first == last || to - from < 2 * usual);
            for (int64_t k = from + 1; k < to; k++)
                assert_true(sl_source_hop(source, k - 1) <= sl_source_hop(source, k));
            assert_true(t == p->rank_cut[r] || p->hop[t - 1] <= p->hop[t]);
        }
}

static void check_shares(const struct graph *g)
{
    const struct sl_source *source = &g->source;
    const int64_t ranks = sl_running.ranks;
    for (int h = 0; ranks > 1 && h <= source->selection.hops; h++)
        for (int64_t p = 0; p < ranks; p++) {
            const int64_t all = source->selection.hop_cut[h + 1] - source->selection.hop_cut[h];
            int64_t share = 0;
            for (int64_t r = source->order.part_cut[p]; r < source->order.part_cut[p + 1]; r++)
                share += sl_source_hop(source, r) == h;
            assert_true(share >= all / ranks && share <= all / ranks + 1);
        }
}

SL_TEST(test_hops)
{
    static const int64_t hop_cut[] = {0, 400, 640, 1180, 1195, 1200};
    const enum sl_balance balance[] = {SL_BALANCE_NNZ, SL_BALANCE_ROWS};
    for (int64_t tiles = 1; tiles < 40; tiles += 3)
        for (int b = 0; b < 2; b++) {
            struct graph g = make_graph(1200, two, false);
            g.source.selection.hops = 4;
            g.source.selection.hop_cut = hop_cut;
            if (sl_running.ranks > 1)
                assert_int_equal(sl_source_order_by_hop_shares(&g.source, sl_running.ranks), 0);
            check_shares(&g);
            struct sl_partition p = cut(&g, balance[b], tiles);
            check_hops(&g, &p, tiles);
            sl_partition_destroy(&p);
            free_graph(&g);
        }
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
    const struct sl_partition_options options = {.balance = SL_BALANCE_NNZ,
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
SL_TEST(test_devices)
{
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
    assert_in_range(cores, 12, 128);
    free_graph(&small);
    free_graph(&large);
}

static int64_t tiles_on_link(struct graph *g, int64_t features, int cores, int ranks, int64_t width,
                             int64_t link)
{
    struct sl_partition p;
    const struct sl_partition_options options = {.balance = SL_BALANCE_NNZ,
                                                 .cores = cores,
                                                 .workers = 1,
                                                 .ranks = ranks,
                                                 .width = width,
                                                 .link = link};
    g->source.features = features;
    assert_int_equal(sl_partition_create(&sl_running, &p, &g->source, &options), 0);
    const int64_t tiles = p.tiles;
    sl_partition_destroy(&p);
    return tiles;
}

static int64_t tiles_on(struct graph *g, int64_t features, int cores, int ranks, int64_t width)
{
    return tiles_on_link(g, features, cores, ranks, width, 0);
}

/* Messages of a slow link hide behind more tiles; a quick link is as good as the usual one. */
SL_TEST(test_links)
{
    enum { MB = 1000000 };
    struct graph g = make_graph(40000, any_degree, true);
    const int64_t usual = tiles_on(&g, 10, 2, 2, 64),
                  slow = tiles_on_link(&g, 10, 2, 2, 64, 50 * MB);
    assert_int_equal(tiles_on_link(&g, 10, 2, 2, 64, INT64_C(20000) * MB), usual);
    assert_int_equal(tiles_on_link(&g, 10, 2, 2, 64, INT64_C(2000) * MB), usual);
    assert_in_range(slow, usual + 2, 16);
    assert_int_equal(tiles_on_link(&g, 10, 2, 1, 64, 50 * MB), tiles_on(&g, 10, 2, 1, 64));
    free_graph(&g);
}

/* Each tile has a gradient of the first layer's weights, so that many features make few tiles; and
 * the more there is to send, the sooner it must begin. */
SL_TEST(test_costs_of_tiles)
{
    struct graph g = make_graph(40000, any_degree, true);
    const int64_t few = tiles_on(&g, 100, 4, 1, 1024), many = tiles_on(&g, 100000, 4, 1, 1024);
    assert_true(few > many);
    assert_int_equal(many, 4);
    const int64_t narrow = tiles_on(&g, 10, 2, 2, 1), wide = tiles_on(&g, 10, 2, 2, 256);
    assert_int_equal(narrow, 2);
    assert_in_range(wide, 4, 16);
    assert_int_equal(wide % 2, 0);
    free_graph(&g);
}

/* Workers that share the work of a tiny graph would wait for each other longer than they compute.
 */
SL_TEST(test_tiny)
{
    struct graph tiny = make_graph(300, two, true), small = make_graph(20000, two, true);
    assert_int_equal(tiles_on(&tiny, 10, 2, 1, 16), 1);
    assert_int_equal(tiles_on(&small, 10, 2, 1, 16), 2);
    free_graph(&tiny);
    free_graph(&small);
}

/* Give every vertex the neighbours that are `near` and 2 `near` places before it in the vertices'
 * first or second half, or, with near = 0, neighbours at random. */
static int32_t *make_neighbours(struct graph *g, int64_t near)
{
    const int64_t n = g->source.vertices, half = n / 2;
    int32_t *neighbour = calloc((size_t)g->indptr[n], sizeof *neighbour);
    for (int64_t v = 0; v < n; v++)
        for (int64_t e = g->indptr[v]; e < g->indptr[v + 1]; e++) {
            const int64_t step = (e - g->indptr[v] + 1) * near, first = v < half ? 0 : half;
            neighbour[e] = near ? (int32_t)(first + (v - first + half - step) % half)
                                : (int32_t)(sl_rng_bits(7, 0, (uint32_t)e) % (uint64_t)n);
        }
    g->source.adjacency.indices =
        sl_npy_view("indices", SL_NPY_INT32, 1, g->indptr[n], 0, neighbour);
    return neighbour;
}

/* Tiles that have no entry in common visit nothing: more of them only hide messages. */
SL_TEST(test_visits)
{
    struct graph g = make_graph(400000, two, true);
    int32_t *neighbour = make_neighbours(&g, 0);
    assert_int_equal(tiles_on(&g, 10, 2, 2, 64), 2);
    free(neighbour);
    neighbour = make_neighbours(&g, 100);
    assert_in_range(tiles_on(&g, 10, 2, 2, 64), 4, 16);
    free(neighbour);
    free_graph(&g);
}

/* A plan on one process takes the tiles that its run takes, also where ranks have unequal rows. */
SL_TEST(test_visits_of_plans)
{
    struct sl_runtime alone = {.ranks = 1};
    const int ranks = sl_running.ranks;
    struct graph g = make_graph(100003, any_degree, true);
    for (int64_t near = 0; near < 20000; near = near * 3 + 1) {
        int32_t *neighbour = make_neighbours(&g, near);
        for (int64_t width = 16; width <= 256; width *= 4) {
            const struct sl_partition_options options = {
                .balance = SL_BALANCE_NNZ, .cores = 4 * ranks, .workers = 1, .width = width};
            struct sl_partition_options planned = options;
            planned.ranks = ranks;
            struct sl_partition run, plan;
            assert_int_equal(sl_partition_create(&sl_running, &run, &g.source, &options), 0);
            assert_int_equal(sl_partition_create(&alone, &plan, &g.source, &planned), 0);
            assert_int_equal(run.tiles, plan.tiles);
            sl_partition_destroy(&run);
            sl_partition_destroy(&plan);
        }
        free(neighbour);
    }
    free_graph(&g);
}

/* Neighbours that are no vertices are refused when they are read, later; rows may be longer than
 * the sample of them. */
SL_TEST(test_visits_of_damaged)
{
    struct graph g = make_graph(2000, five_hundred, true);
    int32_t *neighbour = make_neighbours(&g, 0);
    for (int64_t e = 0; e < g.indptr[2000]; e += 3)
        neighbour[e] = e % 2 ? -5 : 2000 + (int32_t)e;
    assert_in_range(tiles_on(&g, 10, 4, 2, 64), 2, 32);
    g.indptr[7] = INT64_C(1) << 40;
    g.indptr[2000 - 7] = -3;
    assert_in_range(tiles_on(&g, 10, 4, 2, 64), 2, 32);
    free(neighbour);
    free_graph(&g);
}

/* ---- How even ---- */

enum { RANKS = 8 };

/* The part of the cut that each vertex is in (n). */
static int32_t *parts_of(const struct sl_partition *p, const struct sl_source *source)
{
    int32_t *part = calloc((size_t)source->vertices, sizeof *part);
    for (int t = 0; t < p->tiles; t++)
        for (int64_t r = p->row_cut[t]; r < p->row_cut[t + 1]; r++)
            part[sl_source_vertex(source, r)] = t;
    return part;
}

/* Entries of A + I in blocks (RANKS, RANKS), of rows in the first order and columns in the other,
 * which ranks share in 1D. */
static void count_blocks(const struct sl_csr *a, const struct sl_source *source,
                         enum sl_balance balance, int64_t *blocks)
{
    int32_t *part[2];
    for (int o = 0; o < 2; o++) {
        const struct graph g = {
            .source = sl_source_in_order(source, source->order.second_vertex ? o : 0)};
        struct sl_partition p = cut(&g, balance, RANKS);
        part[o] = parts_of(&p, &g.source);
        sl_partition_destroy(&p);
    }
    memset(blocks, 0, RANKS * RANKS * sizeof *blocks);
    for (int64_t v = 0; v < a->rows; v++) {
        blocks[part[0][v] * RANKS + part[1][v]]++;
        for (int64_t e = a->indptr[v]; e < a->indptr[v + 1]; e++)
            blocks[part[0][v] * RANKS + part[1][a->indices[e]]]++;
    }
    free(part[0]);
    free(part[1]);
}

/* Largest over mean of sums of `width` neighbours. */
static double unevenness(const int64_t *blocks, int width)
{
    double most = 0.0, all = 0.0;
    for (int b = 0; b < RANKS * RANKS; b += width) {
        double sum = 0.0;
        for (int k = 0; k < width; k++)
            sum += (double)blocks[b + k];
        most = sum > most ? sum : most;
        all += sum;
    }
    return most * RANKS * RANKS / width / all;
}

/* How even an R-MAT graph is in 1D: ranks, tiles and stages (sl_tile_counts_stages). */
static const struct {
    const char *order;
    enum sl_balance balance;
    double ranks, tiles, stages, worst; /* expected at most: largest over mean */
    double least_tiles, least_stages;   /* without this, the bounds would say nothing */
} shares[] = {
    {"none", SL_BALANCE_NNZ, 1.01, 1.7, 1.2, 1.5, 1.3, 1.05}, /* the default */
    {"none", SL_BALANCE_ROWS, 4.0, 12.0, 4.6, 6.0, 5.0, 3.0},
    {"random", SL_BALANCE_NNZ, 1.01, 1.3, 1.01, 1.02, 1.1, 1.0},
    {"random", SL_BALANCE_ROWS, 1.1, 1.4, 1.1, 1.15, 1.1, 1.01}, /* MG-GCN's */
    {"double", SL_BALANCE_NNZ, 1.01, 1.01, 1.01, 1.01, 1.0, 1.0},
    {"double", SL_BALANCE_ROWS, 1.1, 1.15, 1.1, 1.15, 1.02, 1.01},
};

static void order_rmat(struct sl_source *source, const struct sl_dataset *data, const char *order)
{
    const bool twice = strcmp(order, "double") == 0;
    assert_int_equal(sl_source_of(data, source), 0);
    assert_int_equal(twice ? sl_source_order_double(&sl_running, source, 1)
                           : sl_source_order(&sl_running, source, order, 1),
                     0);
}

SL_TEST(test_rmat)
{
    static const int rank_cut[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    struct sl_rmat_options options = SL_RMAT_DEFAULTS;
    struct sl_dataset data = {0};
    int64_t blocks[RANKS * RANKS];
    options.scale = 18;
    options.features = options.classes = 1;
    options.permute = false;
    assert_int_equal(sl_generate_rmat(&options, &data), 0);
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        struct sl_source source;
        const struct sl_tile_counts counts = {.tiles = RANKS, .nnz = blocks};
        order_rmat(&source, &data, shares[s].order);
        count_blocks(&data.adjacency, &source, shares[s].balance, blocks);
        const struct sl_stage_balance stages = sl_tile_counts_stages(&counts, rank_cut, RANKS, 1);
        const double ranks = unevenness(blocks, RANKS), tiles = unevenness(blocks, 1);
        if (sl_running.rank == 0)
            printf("R-MAT, order %s, balance %s, 8 ranks: nonzeros, largest / mean %.4f, of 8 x 8 "
                   "tiles %.4f; stage by stage %.4f, in the worst one %.4f\n",
                   shares[s].order,
                   sl_choice_word(SL_CHOICES(SL_BALANCES), (int)shares[s].balance).text, ranks,
                   tiles, stages.all, stages.worst);
        assert_true(ranks <= shares[s].ranks && tiles <= shares[s].tiles);
        assert_true(stages.all <= shares[s].stages && stages.worst <= shares[s].worst);
        assert_true(tiles >= shares[s].least_tiles && stages.all >= shares[s].least_stages);
        assert_true(stages.worst >= stages.all && stages.all >= ranks * (1.0 - 1e-9));
        sl_source_close(&source);
    }
    sl_dataset_close(&data);
}

/* Two ranks, of three tiles: one stage with 12 and 4 entries, one with 0 and 2. */
SL_TEST(test_stages)
{
    int64_t nnz[] = {5, 1, 0, 2, 4, 0, 2, 0, 4};
    const int rank_cut[] = {0, 2, 3};
    const struct sl_tile_counts counts = {.tiles = 3, .nnz = nnz};
    const struct sl_stage_balance balance = sl_tile_counts_stages(&counts, rank_cut, 2, 1),
                                  window = sl_tile_counts_stages(&counts, rank_cut, 2, 2);
    assert_true(balance.worst == 2.0);
    assert_true(balance.all == 2.0 * (12.0 + 2.0) / 18.0);
    assert_true(window.worst == 2.0 * 12.0 / 18.0 && window.all == window.worst); /* 12 and 6 */
}

/* ---- Blocks of columns ---- */

/* Rows with `degree` entries each: at random, one in each of `degree` equal parts of all columns;
 * or `near`, side by side. */
static struct sl_csr make_rows(int64_t rows, int64_t cols, int64_t degree, bool near)
{
    int64_t *indptr = calloc((size_t)rows + 1, sizeof *indptr);
    int32_t *indices = calloc((size_t)(rows * degree) + 1, sizeof *indices);
    assert_true(indptr && indices);
    for (int64_t r = 0; r < rows; r++) {
        indptr[r + 1] = indptr[r] + degree;
        for (int64_t d = 0; d < degree; d++)
            indices[r * degree + d] =
                (int32_t)(near ? (cols - degree) * r / rows + d
                               : (d * cols + (int64_t)(sl_rng_uniform(9, (uint32_t)r, (uint32_t)d) *
                                                       (double)cols)) /
                                     degree);
    }
    return (struct sl_csr){rows, cols, indptr, indices, NULL};
}

static void free_rows(struct sl_csr *rows)
{
    free((void *)rows->indptr);
    free((void *)rows->indices);
}

/* All ranks have the same number of columns, which is one of a block. */
static int64_t find_block(const struct sl_csr *rows, int64_t width, const struct sl_caches *caches)
{
    const int64_t cols = sl_partition_block_cols(&sl_running, rows, width, caches);
    assert_in_range(cols, 1, rows->cols);
    assert_int_equal(sl_runtime_least(&sl_running, cols), cols);
    assert_int_equal(-sl_runtime_least(&sl_running, -cols), cols);
    return cols;
}

/* The dense rows of a block, `row` bytes each, fill a large part of the cache. */
static void expect_fit(int64_t block, int64_t all, int64_t row, int64_t cache_bytes)
{
    if (block >= all || block * row > cache_bytes || 2 * block * row < cache_bytes)
        fail_msg("blocks of %d of %d columns, %d bytes each, for a cache of %d bytes", (int)block,
                 (int)all, (int)row, (int)cache_bytes);
}

SL_TEST(test_blocks)
{
    enum { MIB = 1 << 20, COLS = 40000, DEGREE = 100 };
    const int ranks = sl_running.ranks;
    const int64_t share = sl_running.rank == ranks - 1 && ranks > 1 ? 0 : COLS / ranks;
    struct sl_csr rows = make_rows(share, COLS, DEGREE, false),
                  near = make_rows(share, COLS, DEGREE, true);
    const struct sl_caches usual = {
        .last_bytes = 64 * MIB, .own_bytes = 2 * MIB, .sharers = 2, .cores = 2 * ranks, .tiles = 8};
    /* The last level has all dense rows, and a core's own cache those of a block. */
    expect_fit(find_block(&rows, 64, &usual), COLS, 256, 2 * MIB);
    struct sl_caches caches = usual;
    caches.own_bytes = 16 * MIB; /* all of them */
    assert_int_equal(find_block(&rows, 64, &caches), COLS);
    caches.own_bytes = 0; /* unknown */
    assert_int_equal(find_block(&rows, 64, &caches), COLS);
    /* Each tile walks over all blocks. */
    caches = usual;
    caches.tiles = 100;
    assert_int_equal(find_block(&rows, 64, &caches), COLS);
    assert_int_equal(find_block(&near, 64, &usual), COLS);
    /* Products take slices of 256 bytes of a wide row. */
    caches = usual;
    caches.last_bytes = 1024 * MIB;
    expect_fit(find_block(&rows, 1024, &caches), COLS, 256, 2 * MIB);
    /* The last level has the rows of a block alone. Three waves of tiles walk over all blocks. */
    caches = usual;
    caches.last_bytes = 2 * MIB;
    caches.own_bytes = 0;
    caches.tiles = 99;
    caches.cores = 33;
    expect_fit(find_block(&rows, 64, &caches), COLS, 256, 2 * MIB);
    expect_fit(find_block(&rows, 32, &caches), COLS, 128, 2 * MIB);
    assert_int_equal(find_block(&near, 64, &caches), COLS);
    free_rows(&rows);
    free_rows(&near);
}

/* Any caches, also unknown and tiny ones, give a number of columns; nothing to multiply does. */
SL_TEST(test_blocks_of_any_cache)
{
    enum { COLS = 500, MOST = 22 };
    static const int64_t widths[] = {0, 1, 7, 64, 1000};
    for (int64_t degree = 0; degree <= 40; degree += 20) {
        struct sl_csr rows = make_rows(sl_running.rank == 0 ? COLS : 0, COLS, degree, false);
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (int last = 0; last <= MOST; last += 2)
                for (int own = 0; own <= last; own += 2)
                    find_block(&rows, widths[w],
                               &(struct sl_caches){.last_bytes = (INT64_C(1) << last) - 1,
                                                   .own_bytes = (INT64_C(1) << own) - 1,
                                                   .sharers = 1 + last,
                                                   .cores = 4,
                                                   .tiles = 1});
        free_rows(&rows);
    }
}

/* ---- PT-Scotch ---- */

/* A ring whose weights add up to more than 32 bits count. The first half weighs three times as much
 * as the other half. Parts have equal weights all the same. */
SL_TEST(test_heavy_rows)
{
    enum { EACH = 120, LIGHT = 1 << 28 };
    const int ranks = sl_running.ranks;
    const int64_t n = (int64_t)EACH * ranks, first = (int64_t)EACH * sl_running.rank;
    int64_t start[EACH + 1] = {0}, column[2 * EACH], weight[EACH], *sums;
    int32_t part[EACH];
    if (!sl_scotch_exists() || !sl_runtime_launched() || ranks == 1)
        skip();
    sums = calloc((size_t)ranks + 1, sizeof *sums);
    assert_non_null(sums);
    for (int64_t r = 0; r < EACH; r++) {
        start[r + 1] = 2 * (r + 1);
        column[2 * r] = (first + r + n - 1) % n;
        column[2 * r + 1] = (first + r + 1) % n;
        weight[r] = first + r < n / 2 ? 3 * (int64_t)LIGHT : LIGHT;
    }
    const struct sl_scotch_rows rows = {EACH, start, column, weight};
    assert_int_equal(sl_scotch_partition(&sl_running, &rows, ranks, 1, part), 0);
    for (int r = 0; r < EACH; r++) {
        assert_in_range(part[r], 0, ranks - 1);
        sums[part[r]] += weight[r];
        sums[ranks] += weight[r];
    }
    sl_runtime_sum(&sl_running, sums, ranks + 1);
    for (int p = 0; p < ranks; p++) {
        const double even = (double)sums[p] * ranks / (double)sums[ranks];
        if (even < 0.8 || even > 1.2)
            fail_msg("part %d weighs %.3f of the mean", p, even);
    }
    free(sums);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_by_nnz),
        cmocka_unit_test(test_by_rows),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_workers),
        cmocka_unit_test(test_hops),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_costs_of_tiles),
        cmocka_unit_test(test_tiny),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_visits),
        cmocka_unit_test(test_visits_of_plans),
        cmocka_unit_test(test_visits_of_damaged),
        cmocka_unit_test(test_rmat),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_blocks_of_any_cache),
        cmocka_unit_test(test_heavy_rows),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
