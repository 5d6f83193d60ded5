/* Rates of a machine, the seconds of operations by them, and the product that comes first. */
#include <unistd.h>

#include "batches/group_epoch.h"
#include "core/rates.h"
#include "core/remembered.h"
#include "graphs/cost.h"
#include "graphs/layer.h"
#include "predict/scenario.h"
#include "recipe/defaults.h"
#include "tests/unit.h"

static void assert_near(double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-9 * fabs(wanted)))
        fail_msg("%.12g, expected %.12g", got, wanted);
}

/* ---- Seconds ---- */

/* A larger table is never read faster, nor wider rows sooner. */
SL_TEST(test_gather_grows)
{
    const struct sl_rates *rates = &sl_rates_usual;
    double before = 0.0;
    for (double table = 1e4; table < 1e11; table *= 3.0) {
        const double seconds = sl_rates_gather_seconds(rates, 1e6, 256.0, table);
        assert_true(seconds >= before);
        before = seconds;
    }
    assert_true(fabs(before / (1e6 * 256.0) * 8.5e9 - 1.0) < 0.01); /* between 6 and 12 GB/s */
    for (double row = 64.0; row < 1e5; row *= 2.0)
        assert_true(sl_rates_gather_seconds(rates, 1e6, 2.0 * row, 1e9) >
                    sl_rates_gather_seconds(rates, 1e6, row, 1e9));
}

/* Formulas, by hand: a link of 1 ms and 1 MB/s, a core of 1 Gflop/s. A factor that changes is seen.
 */
SL_TEST(test_formulas)
{
    const struct sl_link link = {1e-3, 1e6};
    const struct sl_layer_shape shape = {.kind = &sl_layer_gcn, .in = 50, .out = 10};
    assert_near(sl_link_seconds(&link, 5000.0, 3.0), 8e-3);
    assert_near(sl_cost_trees(&shape, &link, 2.0), 2.0 * 3e-3);
    assert_near(sl_cost_trees(&shape, &link, 5.0), 6.0 * 3e-3);
    assert_near(sl_cost_trees(&shape, &link, 1.0), 0.0);
    assert_near(sl_rates_usual.task, 9e-6);
}

/* A layer of 100 vertices and 600 entries, 16 columns wide before and 32 after, two weights. */
SL_TEST(test_orders)
{
    struct sl_rates rates = {.gemm = 1e9, .features = 3e9, .draws = 1e8, .stream = 1e10};
    struct sl_layer_work work = {&rates, 100, 600, 0, 0, 16, 32, 2, 0.5, 4, {4, 8}, true};
    const double gemm = 2.0 * 51200.0 / 1e9, features = 200.0 / 1e8 + 6400.0 / 3e9;
    for (int level = 0; level < SL_LEVELS; level++)
        rates.gather[level][0] = rates.gather[level][1] = 2e10;
    const double wide = 76800.0 / 2e10 + (3600.0 + 12800.0) / 1e10,
                 narrow = 38400.0 / 2e10 + (3600.0 + 6400.0) / 1e10;
    assert_near(sl_cost_layer(&work, SL_GEMM_FIRST), 2.0 * wide);
    assert_near(sl_cost_layer(&work, SL_SPMM_FIRST), narrow);
    assert_near(sl_cost_layer(&work, SL_AGGREGATED), 0.0);
    assert_near(sl_cost_dense_layer(&work, SL_SPMM_FIRST),
                narrow + 4.0 * gemm + 1600.0 / 4e8 + 19200.0 / 1e10);
    assert_near(sl_cost_weight(&work, 1), 2.0 * gemm);
    work.first = false;
    assert_near(sl_cost_layer(&work, SL_SPMM_FIRST), narrow + wide);
    assert_near(sl_cost_weight(&work, 1), 3.0 * gemm);
    assert_near(sl_cost_weight(&work, 2), 4.0 * gemm);
    work.entries = 200.0;
    work.first = true;
    assert_near(sl_cost_layer(&work, SL_GEMM_FIRST), 2.0 * wide + 4.0 * features);
    assert_near(sl_cost_layer(&work, SL_SPMM_FIRST),
                narrow + 4.0 * gemm + 200.0 / 1e8 + (12800.0 + 4400.0) / 1e10);
    assert_near(sl_cost_layer(&work, SL_AGGREGATED), 2.0 * features + 2.0 * gemm);
    assert_near(sl_cost_weight(&work, 1), 2.0 * features);
    work.aggregated = 300.0;
    assert_near(sl_cost_layer(&work, SL_AGGREGATED), 2.0 * features + 4.0 * 9600.0 / 3e9);
}

/* An epoch of 1000 vertices and 5000 entries. On two workers of one rank, 3 tiles take as long as
 * 4. On two ranks, messages and visits are added, and each worker is alone. */
SL_TEST(test_tiles)
{
    struct sl_epoch_work work = {1000, 5000, 10, 2000, 50, false, 0, 2, 1, false};
    const double multiplied = 320000.0 * 0.04e-9 + 20000.0 * 0.5e-9, gradient = 2000.0 / 8e9,
                 two = 32.0 * 9e-6 + 32.0 * 0.5e-6, three = 48.0 * 9e-6 + 72.0 * 0.5e-6;
    assert_near(sl_cost_multiplications(&work), multiplied);
    assert_near(sl_cost_tasks(3.0), three);
    assert_near(sl_cost_epoch(&work, 3.0, 0.0),
                (multiplied * 4.0 / 3.0 * 1.02 + three + 9.0 * gradient) / 2.0 + 16.0 * 8e-6);
    work.ranks = 2;
    work.identity = true;
    work.link = 1e9;
    const double shared = (multiplied + two + 4.0 * gradient) / 2.0;
    assert_near(sl_cost_epoch(&work, 2.0, 1.0), shared + 24e-6 + 12000.0 / 1e9);
    work.link = 9e9;
    assert_near(sl_cost_epoch(&work, 2.0, 0.0), shared + 12000.0 / 2e9);
    work.gpus = true;
    work.ranks = 1;
    assert_near(sl_cost_epoch(&work, 2.0, 0.0), (320000.0 * 1e-12 * 1.1 + two) / 2.0);
}

/* Return the epoch of layers that all aggregate. Features are dense, of 4 bytes each. */
static struct sl_group_epoch epoch_of(int layers, struct sl_layer_shape *layer, int64_t *rows,
                                      int64_t *entries)
{
    struct sl_group_epoch e = {{.count = layers, .layer = layer}, layers, layers};
    e.size = 4.0;
    e.kept = 1.0;
    e.rows = rows;
    e.entries = entries;
    return e;
}

/* Two graph convolutions of 100 and 50 columns, all products dense, messages and passes free. Each
 * layer has a product forward and another one for its weights; the second has a third one, for the
 * gradient of its input. */
SL_TEST(test_step_of_a_group)
{
    struct sl_layer_shape layer[] = {
        {.kind = &sl_layer_gcn, .reducer = &sl_reduce_sum, .in = 200, .out = 100},
        {.kind = &sl_layer_gcn, .reducer = &sl_reduce_sum, .in = 100, .out = 50}};
    int64_t rows[] = {10, 20, 40}, entries[] = {0, 0, 0};
    const struct sl_group_epoch e = epoch_of(2, layer, rows, entries);
    struct sl_rates rates = sl_rates_usual;
    rates.gemm = 1e9;
    rates.stream = 1e30;
    for (int level = 0; level < SL_LEVELS; level++)
        rates.gather[level][0] = rates.gather[level][1] = 1e30;
    const double first = 2.0 * 2.0 * 40.0 * 200.0 * 100.0 / 1e9,
                 second = 3.0 * 2.0 * 20.0 * 100.0 * 50.0 / 1e9;
    assert_near(sl_group_epoch_computing(&e, &rates, 2, (struct sl_group_ranks){1.0, 1.0}),
                first + second);
    assert_near(sl_group_epoch_computing(&e, &rates, 2, (struct sl_group_ranks){2.0, 1.0}),
                0.5 * (first + second));
}

/* The largest of 3 inputs: 12 bytes forward and 16 back for each input and element, beside six
 * passes. Its product with weights is another layer's. */
SL_TEST(test_largest_of_inputs)
{
    struct sl_layer_shape layer[] = {
        {.kind = &sl_layer_jump_max, .reducer = &sl_reduce_sum, .in = 8, .inputs = 3, .out = 8}};
    int64_t rows[] = {10}, entries[] = {0};
    struct sl_group_epoch e = epoch_of(1, layer, rows, entries);
    struct sl_rates rates = sl_rates_usual;
    e.layers = 0; /* the layer does not aggregate */
    rates.stream = 1e9;
    assert_near(sl_group_epoch_computing(&e, &rates, 1, (struct sl_group_ranks){1.0, 1.0}),
                80.0 * (6.0 * 4.0 + 3.0 * 28.0) / 1e9);
    layer[0].kind = &sl_layer_jump_max_plain;
    assert_near(sl_group_epoch_computing(&e, &rates, 1, (struct sl_group_ranks){1.0, 1.0}),
                80.0 * (6.0 * 4.0 + 3.0 * 28.0) / 1e9);
}

/* ---- Walks ---- */

/* All rates differ, so that no formula can take one for another. */
static struct sl_rates walking_rates(void)
{
    return (struct sl_rates){
        .cores = 2,
        .gemm = 2e9,
        .features = 1e9,
        .draws = 5e8,
        .stream = 1e10,
        .gather = {{4e9, 3e9}, {5e9, 6e9}, {8e9, 7e9}},
    };
}

/* Return the seconds of a walk over 600 entries and 100 rows, on a column of so many. */
static double walked_among(int columns, const struct sl_layer_shape *shape, enum sl_walk_way way,
                           bool first)
{
    const struct sl_rates rates = walking_rates();
    return sl_cost_entries(shape, &(struct sl_walk_size){.rates = &rates,
                                                         .way = way,
                                                         .first = first,
                                                         .columns = columns,
                                                         .entries = 600.0,
                                                         .rows = 100.0});
}

static double walked(const struct sl_layer_shape *shape, enum sl_walk_way way, bool first)
{
    return walked_among(1, shape, way, first);
}

/* Three relations and 100 rows make 300 rows with a relation. Entries at random, 600 of them, meet
 * 300 (1 - e^-2) of these. An entry has two numbers of its relation. Bases are multiplied once,
 * before the walk. */
SL_TEST(test_walks_of_relations)
{
    struct sl_layer_shape shape = {.kind = &sl_layer_rgcn, .in = 6, .out = 4, .relations = 3};
    const double met = 300.0 * (1.0 - exp(-2.0)), product = 2.0 * 6.0 * 4.0 / 2e9,
                 copies = 3.0 * 4.0 * 10.0 / 4e9, read = 600.0 * 8.0 / 1e10;
    const double back = read + 600.0 * 16.0 / 8e9 + met * copies;
    for (shape.bases = 0; shape.bases <= 2; shape.bases += 2) {
        assert_near(walked(&shape, SL_WALK_FORWARD, false),
                    read + 600.0 * 24.0 / 8e9 + met * (product + copies));
        assert_near(walked(&shape, SL_WALK_FORWARD, true), walked(&shape, SL_WALK_FORWARD, false));
        assert_near(walked(&shape, SL_WALK_BACK, false), back + met * 2.0 * product);
        assert_near(walked(&shape, SL_WALK_BACK, true), back + met * product);
    }
}

/* An entry of attention waits, has a score and may be dropped for each of 2 heads. The mean of
 * heads has 2 * 8 columns, heads side by side have 8. */
SL_TEST(test_walks_of_attention)
{
    static const struct {
        const struct sl_layer_kind *kind;
        double column[3], number[3], row[3]; /* flops for a column, for a feature, for both */
    } kinds[] = {
        {&sl_layer_gat, {32, 32, 32}, {10, 20, 10}, {0}},
        {&sl_layer_gat_residual, {32, 32, 32}, {10, 20, 10}, {0}},
        {&sl_layer_gatv2, {48, 72, 64}, {12, 12, 24}, {2, 2, 4}},
        {&sl_layer_gatv2_residual, {48, 72, 64}, {12, 12, 24}, {2, 2, 4}},
        {&sl_layer_transformer, {48, 88, 80}, {20, 20, 30}, {0}},
        {&sl_layer_transformer_residual, {48, 88, 80}, {20, 20, 30}, {0}},
    };
    for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++)
        for (int way = 0; way < 3; way++)
            for (int k = 0; k <= 3; k += 3)
                for (int mean = 0; mean < 2; mean++) {
                    struct sl_layer_shape shape = {.kind = kinds[n].kind,
                                                   .out = 8,
                                                   .heads = 2,
                                                   .mean = mean,
                                                   .edge_features = k};
                    const double columns = mean ? 16.0 : 8.0,
                                 column = kinds[n].column[way] + kinds[n].row[way] * k;
                    const double all =
                        30e-9 / 2.0 + k * 4.0 / 1e10 +
                        (2.0 * 160.0 + columns * column + 2.0 * kinds[n].number[way] * k) / 1e9;
                    assert_near(walked(&shape, (enum sl_walk_way)way, false), 600.0 * all);
                    shape.attention_dropout = 0.1;
                    assert_near(walked(&shape, (enum sl_walk_way)way, true),
                                600.0 * (all + 2.0 / 5e8));
                }
}

/* On two columns of a grid, an entry waits as long, and its 3 features are read on both. Each
 * column has one of two heads, or, of their mean, both heads and half of the classes. */
SL_TEST(test_walks_of_columns)
{
    const double wait = 30e-9 / 2.0 + 3.0 * 4.0 / 1e10, draw = 1.0 / 5e8;
    struct sl_layer_shape shape = {
        .kind = &sl_layer_gat, .out = 8, .heads = 2, .edge_features = 3, .attention_dropout = 0.1};
    assert_near(walked_among(2, &shape, SL_WALK_FORWARD, false),
                600.0 * (wait + (160.0 + 4.0 * 32.0 + 30.0) / 1e9 + draw));
    shape.mean = true;
    assert_near(walked_among(2, &shape, SL_WALK_FORWARD, false),
                600.0 * (wait + (320.0 + 8.0 * 32.0 + 60.0) / 1e9 + 2.0 * draw));
    shape = (struct sl_layer_shape){.kind = &sl_layer_gine, .in = 6, .out = 6, .edge_features = 3};
    assert_near(walked_among(2, &shape, SL_WALK_FORWARD, false),
                600.0 * (3.0 * 4.0 / 1e10 + 3.0 * (8.0 / 1e9 + 6.0 / 2e9)));
}

SL_TEST(test_walks_of_gine)
{
    const struct sl_layer_shape shape = {
        .kind = &sl_layer_gine, .in = 5, .out = 5, .edge_features = 3};
    const double read = 3.0 * 4.0 / 1e10, column = 8.0 / 1e9, product = 2.0 * 3.0 / 2e9;
    assert_near(walked(&shape, SL_WALK_FORWARD, false), 600.0 * (read + 5.0 * (column + product)));
    assert_near(walked(&shape, SL_WALK_BACK, false),
                600.0 * (read + 5.0 * (column + 2.0 * product)));
}

/* A graph convolution has sums alone. */
SL_TEST(test_walks_of_sums)
{
    const struct sl_layer_shape shape = {.kind = &sl_layer_gcn, .in = 5, .out = 5};
    assert_near(walked(&shape, SL_WALK_FORWARD, false), 0.0);
}

/* A step of a group of two ranks has all walks of a first layer, whose input is narrower than its
 * output. A rank has 600 entries. It has 100 rows of the output, and a walk back makes 200 rows of
 * the input. Relations move 32 columns forward, and 64 back; attention moves 64 in three walks. A
 * weight has two products with 100 rows, and six passes follow. */
SL_TEST(test_walks_of_a_group)
{
    struct sl_layer_shape layer[] = {
        {.kind = &sl_layer_rgcn, .reducer = &sl_reduce_rgcn, .in = 32, .out = 64, .relations = 3}};
    int64_t rows[] = {200, 400}, entries[] = {0, 1200};
    const struct sl_group_epoch e = epoch_of(1, layer, rows, entries);
    const struct sl_group_ranks two = {2.0, 1.0};
    const double weight = 2.0 * 2.0 * 100.0 * 2048.0 / 2e9, passes = 6.0 * 100.0 * 256.0 / 1e10,
                 met = 2.0 * 2048.0 / 2e9 + 3.0 * 4.0 * 96.0 / 4e9;
    struct sl_rates rates = walking_rates();
    rates.gather[SL_LEVEL_CORE][1] = 4e9;
    const double forward = 600.0 * 128.0 / 4e9 + (3600.0 + 100.0 * 128.0) / 1e10 +
                           600.0 * 8.0 / 1e10 + 600.0 * 128.0 / 8e9 +
                           300.0 * (1.0 - exp(-2.0)) * met,
                 back = 600.0 * 256.0 / 4e9 + (3600.0 + 200.0 * 256.0) / 1e10 + 600.0 * 8.0 / 1e10 +
                        600.0 * 256.0 / 8e9 + 600.0 * (1.0 - exp(-1.0)) * met;
    assert_near(sl_group_epoch_computing(&e, &rates, 1, two), forward + back + weight + passes);
    layer[0] = (struct sl_layer_shape){
        .kind = &sl_layer_gatv2, .reducer = &sl_reduce_gatv2, .in = 32, .out = 64, .heads = 2};
    const double sums = 3.0 * 600.0 * 256.0 / 4e9 + (3.0 * 3600.0 + 400.0 * 256.0) / 1e10,
                 scores = 600.0 * (3.0 * (15e-9 + 320e-9) + 64.0 * (48.0 + 72.0 + 64.0) * 1e-9);
    assert_near(sl_group_epoch_computing(&e, &rates, 1, two),
                sums + scores + 2.0 * weight + passes);
}

/* ---- What was remembered ---- */

SL_TEST(test_remembered)
{
    char folder[] = "/tmp/starling-rates-XXXXXX", path[64];
    struct sl_rates rates;
    assert_non_null(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    sl_rates_of_core(1 << 25, &rates);
    assert_true(rates.features == sl_rates_usual.features);
    json_t *value =
        json_pack("{s:i, s:[f, f], s:[f, f], s:[{s:i, s:[f, f], s:[f, f], s:[f, f]}]}", "threads",
                  2, "features", 3e9, 5e9, "draws", 1e9, 2e9, "gather", "width", 16, "rate", 1e9,
                  2e9, "last_rate", 4e9, 8e9, "core_rate", 7e9, 14e9);
    assert_int_equal(sl_remembered_set("machine", value), 0);
    sl_rates_of_core(1 << 25, &rates);
    assert_true(rates.features == 3e9 && rates.draws == 1e9);
    assert_true(rates.gather[SL_LEVEL_MEMORY][0] == 1e9 && rates.gather[SL_LEVEL_LAST][0] == 4e9 &&
                rates.gather[SL_LEVEL_CORE][0] == 7e9);
    sl_rates_of_machine(2, 1, 1 << 25, &rates);
    assert_true(rates.features == 5e9 && rates.draws == 2e9);
    assert_true(rates.gather[SL_LEVEL_CORE][0] == 14e9);
    snprintf(path, sizeof path, "%s/starling/machine.json", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/starling", folder);
    rmdir(path);
    rmdir(folder);
    unsetenv("XDG_CACHE_HOME");
}

/* ---- Which product comes first ---- */

struct graph {
    const char *name;
    double n, nnz, entries; /* `entries`: entries of the features; 0: these are dense */
    int64_t in, out;
    int index; /* the index of the layer */
    enum sl_product_order faster;
};

/* The other order takes at least 1.3 times as long for the ones that exist; the shapes of published
 * graphs are by their bytes. */
static const struct graph graphs[] = {
    {"amazon_photo, hidden 64", 7650, 238162, 1979909, 745, 64, 0, SL_GEMM_FIRST},
    {"amazon_photo, hidden 16", 7650, 238162, 1979909, 745, 16, 0, SL_GEMM_FIRST},
    {"amazon_photo, hidden 256", 7650, 238162, 1979909, 745, 256, 0, SL_GEMM_FIRST},
    {"coauthor_physics", 34493, 495924, 1137311, 8415, 64, 0, SL_GEMM_FIRST},
    {"products' shape, hidden 256", 2449029, 123718280, 0, 100, 256, 0, SL_SPMM_FIRST},
    {"products' shape, last layer", 2449029, 123718280, 0, 256, 47, 2, SL_GEMM_FIRST},
    {"reddit's shape", 232965, 114615892, 0, 602, 16, 0, SL_GEMM_FIRST},
    {"few features, wide layers", 100000, 5000000, 200000, 8, 512, 0, SL_SPMM_FIRST},
};

SL_TEST(test_product_order)
{
    for (size_t g = 0; g < sizeof graphs / sizeof *graphs; g++) {
        const struct graph *graph = &graphs[g];
        const struct sl_sparse_matrix adjacency = {.rows = (int64_t)graph->n,
                                                   .nnz = (int64_t)(graph->nnz + graph->n)};
        const struct sl_graph trained = {
            .adjacency = &adjacency,
            .type = SL_FLOAT32,
            .input = {.sparse = graph->entries > 0.0, .csr = {.nnz = (int64_t)graph->entries}},
        };
        const struct sl_network net = {.graph = &trained};
        const struct sl_layer layer = {.kind = &sl_layer_gcn,
                                       .reducer = &sl_reduce_sum,
                                       .index = graph->index,
                                       .in = graph->in,
                                       .out = graph->out,
                                       .dropout = 0.5};
        if (sl_layer_choose_order(&net, &layer, -1) != graph->faster)
            fail_msg("%s: the slower product comes first", graph->name);
        assert_int_equal(sl_layer_choose_order(&net, &layer, SL_GEMM_FIRST), SL_GEMM_FIRST);
        assert_int_equal(sl_layer_choose_order(&net, &layer, SL_SPMM_FIRST), SL_SPMM_FIRST);
    }
}

/* ---- Whether features are aggregated once ---- */

/* Return rows with equally many entries, in random columns; `alike`: all rows have the same
 * columns. The caller frees the arrays. */
static struct sl_stored_csr draw_rows(int64_t rows, int64_t cols, int64_t entries, bool alike)
{
    int64_t *indptr = malloc((size_t)(rows + 1) * sizeof *indptr);
    int32_t *indices = malloc((size_t)entries * sizeof *indices);
    uint64_t seed = 1;
    assert_true(indptr && indices);
    for (int64_t r = 0; r <= rows; r++)
        indptr[r] = entries * r / rows;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t e = indptr[r]; e < indptr[r + 1]; e++) {
            seed = seed * UINT64_C(6364136223846793005) + 1;
            indices[e] =
                (int32_t)(alike ? e - indptr[r] : (int64_t)((seed >> 33) % (uint64_t)cols));
        }
    return (struct sl_stored_csr){
        .indptr = sl_npy_view("indptr", SL_NPY_INT64, 1, rows + 1, 1, indptr),
        .indices = sl_npy_view("indices", SL_NPY_INT32, 1, entries, 1, indices)};
}

static void free_rows(struct sl_stored_csr *csr)
{
    free((void *)(uintptr_t)csr->indptr.data);
    free((void *)(uintptr_t)csr->indices.data);
}

/* Features of a graph: all and their entries, in random columns or the same in all rows. */
struct drawn {
    int64_t features, entries;
    bool alike;
};

static bool caches(int64_t n, int64_t entries, struct drawn drawn, const char *dropout,
                   const char *given_option)
{
    bool given[SL_MOST_OPTIONS] = {false};
    struct sl_config config;
    struct sl_source source = {.vertices = n,
                               .features = drawn.features,
                               .classes = 7,
                               .feature_form = SL_FEATURES_CSR,
                               .adjacency = draw_rows(n, n, entries, false),
                               .features_csr =
                                   draw_rows(n, drawn.features, drawn.entries, drawn.alike)};
    assert_int_equal(sl_config_defaults(&config), 0);
    assert_int_equal(sl_options_set(sl_config_options, &config, "dropout", dropout), 0);
    for (int o = 0; sl_config_options[o].name; o++)
        given[o] = given_option && strcmp(sl_config_options[o].name, given_option) == 0;
    assert_int_equal(sl_defaults_settle(&config, &source, given, NULL), 0);
    const bool cached = config.features.cache_aggregate;
    assert_true(sl_defaults_may_cache(&config, given) == !cached);
    sl_options_free(sl_config_options, &config);
    free_rows(&source.adjacency);
    free_rows(&source.features_csr);
    return cached;
}

/* Words of cited papers add up to five times as many entries; few features become dense anyway. */
SL_TEST(test_cached_aggregate)
{
    const struct drawn words = {1433, 49216, false}, few = {8, 40000, false},
                       photos = {745, 1979909, false};
    assert_false(caches(2708, 10556, words, "0", NULL));
    assert_true(caches(2708, 10556, words, "0", "cache-aggregate"));
    assert_true(caches(2708, 10556, words, "0.5", NULL)); /* it would not be, anyway */
    assert_true(caches(10000, 1000000, few, "0", NULL));
    /* Sums of the same columns have no more entries. */
    assert_true(caches(2708, 54160, (struct drawn){1433, 49216, true}, "0", NULL));
    assert_false(caches(2708, 54160, words, "0", NULL));
    /* Dense once aggregated, and predicted to save a tenth: not worth the making (amazon_photo). */
    assert_false(caches(7650, 238162, photos, "0", NULL));
}

/* ---- The form of features ---- */

/* Return the form that a core with these rates makes of amazon_photo's features, of which
 * `entries` are stored, with this dropout of the input. */
static enum sl_feature_form form_of(int64_t entries, double features, double gemm,
                                    const char *asked, const char *dropout)
{
    static const int64_t indptr[] = {0};
    struct sl_runtime alone = {.ranks = 1};
    struct sl_rates core = sl_rates_usual;
    struct sl_config config;
    struct sl_source source = {.vertices = 7650,
                               .features = 745,
                               .classes = 8,
                               .feature_form = SL_FEATURES_CSR,
                               .adjacency.indices.count = 238162,
                               .features_csr = {.indptr = {.data = (const unsigned char *)indptr},
                                                .indices.count = entries}};
    core.features = features;
    core.gemm = gemm;
    assert_int_equal(sl_config_defaults(&config), 0);
    assert_int_equal(sl_options_set(sl_config_options, &config, "feature-form", asked), 0);
    assert_int_equal(sl_options_set(sl_config_options, &config, "input-dropout", dropout), 0);
    assert_int_equal(sl_defaults_form(&alone, &source, &core, &config), 0);
    assert_string_equal(sl_config_word(&config, "feature-form").text,
                        source.feature_form == SL_FEATURES_CSR ? "csr" : "dense");
    sl_options_free(sl_config_options, &config);
    return source.feature_form;
}

SL_TEST(test_feature_form)
{
    const int64_t third = 1979909, few = 70000, most = 5000000;
    assert_int_equal(form_of(few, 40e9, 100e9, "auto", "0.5"), SL_FEATURES_CSR);
    assert_int_equal(form_of(third, 40e9, 100e9, "auto", "0.5"), SL_FEATURES_CSR);
    assert_int_equal(form_of(most, 40e9, 100e9, "auto", "0.5"), SL_FEATURES_DENSE);
    assert_int_equal(form_of(most, 40e9, 24e9, "auto", "0.5"), SL_FEATURES_CSR); /* a slow BLAS */
    assert_int_equal(form_of(third, 3e9, 50e9, "auto", "0.5"),
                     SL_FEATURES_DENSE); /* a slow kernel */
    assert_int_equal(form_of(few, 3e9, 50e9, "auto", "0.5"), SL_FEATURES_CSR);
    assert_int_equal(form_of(most, 40e9, 100e9, "csr", "0.5"), SL_FEATURES_CSR);
    assert_int_equal(form_of(few, 40e9, 100e9, "dense", "0.5"), SL_FEATURES_DENSE);
    /* Without dropout, dense features are aggregated once. Making them must pay. */
    assert_int_equal(form_of(third, 40e9, 100e9, "auto", "0"), SL_FEATURES_CSR);
    assert_int_equal(form_of(third, 40e9, 200e9, "auto", "0"), SL_FEATURES_DENSE);
    assert_int_equal(form_of(third, 40e9, 200e9, "auto", "0.5"), SL_FEATURES_CSR);
}

/* Two ranks, whose clones are 0, 1 or 2 hops away. Tiles have hop 0, or hops 1 and 2. */
SL_TEST(test_spread)
{
    int rank_cut[] = {0, 3, 5}, hop[] = {0, 1, 1, 0, 1};
    const struct sl_partition partition = {
        .tiles = 5, .ranks = 2, .rank_cut = rank_cut, .hop = hop};
    const int64_t entries[] = {1, 4, 0, 4, 7, 3, 0, 0, 0, 2, 5, 1, 3, 0, 2, 1, 4, 0};
    const int64_t nnz[] = {1, 2, 2, 0, 0, 2, 3, 3, 0, 0, 2, 2, 2,
                           0, 0, 0, 0, 0, 2, 6, 0, 0, 0, 4, 6};
    struct sl_tile_counts counts;
    assert_int_equal(sl_tile_counts_spread(&partition, 3, entries, true, false, &counts), 0);
    assert_memory_equal(counts.nnz, nnz, sizeof nnz);
    assert_int_equal(counts.entries, 37);
    sl_tile_counts_destroy(&counts);
}

/* Compare 1D, 1x1x2, the halo and a vertex-cut with delay by their seconds and bytes. */
static int chosen_of(const double seconds[4], const int64_t bytes[4], int64_t space, bool inexact)
{
    const struct sl_distribution_kind *const kinds[] = {
        &sl_distribution_block, &sl_distribution_block, &sl_distribution_halo,
        &sl_distribution_vertex_cut};
    struct sl_prediction list[4];
    char reason[256];
    for (int f = 0; f < 4; f++) {
        list[f] = (struct sl_prediction){
            .kind = kinds[f], .exact = f < 3, .seconds = seconds[f], .most = {.compute = 1.0}};
        list[f].memory.total = bytes[f];
        snprintf(list[f].name, sizeof list[f].name, "number %d", f);
    }
    const int best = (int)(sl_scenario_choose(list, 4, space, inexact, reason) - list);
    assert_true(best == 0 ? strncmp(reason, "1d: ", 4) == 0 || strstr(reason, "least memory")
                          : strncmp(reason, list[best].name, strlen(list[best].name)) == 0);
    return best;
}

static int chosen(const double seconds[4], const int64_t bytes[4], int64_t space)
{
    return chosen_of(seconds, bytes, space, false);
}

/* Only where it is asked for, by over a tenth, and where it fits. */
SL_TEST(test_inexact)
{
    enum { ONE, HALO = 2, LATE };
    const int64_t same[] = {10, 10, 10, 10}, large[] = {10, 10, 10, 30}, small[] = {30, 30, 30, 10};
    const double faster[] = {1.12, 1.5, 1.0, 0.9}, close[] = {1.0, 1.5, 1.5, 0.92};
    assert_int_equal(chosen_of(faster, same, 0, false), HALO);
    assert_int_equal(chosen_of(faster, same, 0, true), LATE);
    assert_int_equal(chosen_of(close, same, 0, true), ONE);
    assert_int_equal(chosen_of(faster, large, 20, true), HALO);
    assert_int_equal(chosen_of(close, small, 20, true), LATE);
    assert_int_equal(chosen_of(faster, small, 5, true), LATE);
    assert_int_equal(chosen_of(faster, large, 5, true), ONE);
}

/* The fastest wins only by over a tenth, against 1D and against the halo. */
SL_TEST(test_distribution)
{
    enum { ONE, GRID, HALO };
    const int64_t same[] = {10, 10, 10, 10}, large[] = {10, 10, 30, 10}, most[] = {40, 10, 30, 10};
    assert_int_equal(chosen((const double[]){1.09, 1.0, 1.05, 0.1}, same, 0), ONE);
    assert_int_equal(chosen((const double[]){1.11, 1.0, 1.05, 0.1}, same, 0), HALO);
    assert_int_equal(chosen((const double[]){1.12, 1.0, 1.11, 0.1}, same, 0), GRID);
    assert_int_equal(chosen((const double[]){1.15, 1.0, 1.05, 0.1}, large, 20), GRID);
    assert_int_equal(chosen((const double[]){1.0, 1.5, 1.05, 0.1}, most, 35), HALO);
    assert_int_equal(chosen((const double[]){1.0, 1.5, 1.05, 0.1}, most, 5), GRID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather_grows),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_step_of_a_group),
        cmocka_unit_test(test_largest_of_inputs),
        cmocka_unit_test(test_remembered),
        cmocka_unit_test(test_product_order),
        cmocka_unit_test(test_cached_aggregate),
        cmocka_unit_test(test_feature_form),
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_inexact),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_walks_of_relations),
        cmocka_unit_test(test_walks_of_attention),
        cmocka_unit_test(test_walks_of_columns),
        cmocka_unit_test(test_walks_of_gine),
        cmocka_unit_test(test_walks_of_sums),
        cmocka_unit_test(test_walks_of_a_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
