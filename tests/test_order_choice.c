/* --order auto takes an order if rows miss the cache and there are enough epochs to save the time
 * of the order. METIS makes the parts if there is memory for METIS. */
#include "core/error.h"
#include "core/log.h"
#include "core/rng.h"
#include "data/partition/vertex_parts.h"
#include "predict/order_choice.h"
#include "predict/scenario.h"
#include "recipe/config.h"
#include "tests/running.h"
#include "tests/unit.h"

enum { VERTICES = 40000, DEGREE = 10, HIDDEN = 512, ENTRIES = VERTICES * DEGREE };

/* Each vertex has as many neighbours: the next ones, or any. */
struct graph {
    int64_t indptr[VERTICES + 1];
    int32_t indices[ENTRIES];
    struct sl_dataset data;
    struct sl_source source;
    struct sl_config config;
};

static struct graph *make_graph_of(int64_t vertices, int64_t degree, bool local)
{
    struct graph *g = calloc(1, sizeof *g);
    const uint64_t key = sl_rng_key(5, SL_RNG_ORDER, 0, 0);
    assert_non_null(g);
    assert_true(vertices <= VERTICES && vertices * degree <= ENTRIES);
    for (int64_t v = 0; v < vertices; v++) {
        g->indptr[v + 1] = (v + 1) * degree;
        for (int64_t k = 0; k < degree; k++) {
            const int64_t next = (v + 1 + k) % vertices;
            const double any =
                sl_rng_uniform(key, (uint32_t)(v * degree + k), 0) * (double)vertices;
            g->indices[v * degree + k] = (int32_t)(local ? next : (int64_t)any);
        }
    }
    g->data = (struct sl_dataset){
        .path = (char *)"graph",
        .vertices = vertices,
        .features = vertices,
        .adjacency = {vertices, vertices, g->indptr, g->indices, NULL},
        .feature_form = SL_FEATURES_IDENTITY,
    };
    assert_int_equal(sl_source_of(&g->data, &g->source), 0);
    assert_int_equal(sl_config_defaults(&g->config), 0);
    g->config.network.hidden = HIDDEN;
    return g;
}

static struct graph *make_graph(bool local)
{
    return make_graph_of(VERTICES, DEGREE, local);
}

static void free_graph(struct graph *g)
{
    sl_source_close(&g->source);
    sl_options_free(sl_config_options, &g->config);
    free(g);
}

static struct sl_order_choice choose_on(struct graph *g, int ranks, bool whole, int64_t epochs)
{
    const struct sl_runtime rt = {.ranks = ranks, .all_cores = 2};
    struct sl_order_choice choice;
    g->config.training.epochs = epochs;
    const struct sl_training training = sl_config_training(&g->config, &g->source);
    assert_int_equal(sl_order_choose(&rt, &g->source, &training, whole, NULL, &choice), 0);
    return choice;
}

static struct sl_order_choice choose(struct graph *g, int ranks, int64_t epochs)
{
    return choose_on(g, ranks, false, epochs);
}

/* The more epochs, the more there is to save: of one there is too little, of many enough. */
SL_TEST(test_epochs)
{
    struct graph *g = make_graph(false);
    const struct sl_order_choice one = choose(g, 1, 1), many = choose(g, 1, 1000);
    assert_true(one.misses[0] > 0.8 && one.misses[1] > 0.8);
    assert_string_equal(one.order, "none");
    assert_true(one.gain < one.cost);
    assert_string_equal(many.order, "rabbit");
    assert_true(many.gain > many.cost);
    assert_true(many.cost == one.cost);
    assert_non_null(strstr(many.reason, "1000 epochs"));
    free_graph(g);
}

/* A number of epochs that just pays with distant neighbours does not pay with close ones. */
SL_TEST(test_locality)
{
    struct graph *far = make_graph(false), *near = make_graph(true);
    const struct sl_order_choice one = choose(far, 1, 1);
    const int64_t enough = (int64_t)(2.0 * one.cost / one.gain) + 1;
    assert_string_equal(choose(far, 1, enough).order, "rabbit");
    const struct sl_order_choice local = choose(near, 1, enough);
    assert_string_equal(local.order, "none");
    assert_true(local.misses[0] < 0.25 && local.misses[1] < 0.25);
    free_graph(far);
    free_graph(near);
}

/* A byte that misses a core's cache costs, and one that misses all caches costs more. */
SL_TEST(test_caches)
{
    struct graph *g = make_graph(false);
    const struct sl_order_choice wide = choose(g, 1, 1);
    g->config.network.hidden = HIDDEN / 8;
    const struct sl_order_choice narrow = choose(g, 1, 1);
    assert_true(narrow.misses[0] > 0.8 && narrow.misses[1] == 0.0);
    assert_true(narrow.gain > 0.0);
    assert_true(wide.gain > 1.5 * 8.0 * narrow.gain);
    free_graph(g);
}

/* Vertices with many neighbours have them in many communities: as many entries save less. */
SL_TEST(test_neighbours)
{
    struct graph *few = make_graph_of(VERTICES / 4, 4 * DEGREE, false),
                 *many = make_graph_of(VERTICES / 16, 16 * DEGREE, false);
    few->config.network.hidden = many->config.network.hidden = HIDDEN / 2;
    const struct sl_order_choice one = choose(few, 1, 1), other = choose(many, 1, 1);
    assert_true(one.misses[0] > 0.8 && one.misses[1] == 0.0);
    assert_true(other.misses[0] > 0.5 && other.misses[1] == 0.0);
    assert_true(other.gain / other.misses[0] < 0.5 * one.gain / one.misses[0]);
    free_graph(few);
    free_graph(many);
}

SL_TEST(test_where_none_is)
{
    struct graph *g = make_graph(false);
    assert_string_equal(choose(g, 2, 100000).order, "none");
    assert_non_null(strstr(choose(g, 2, 100000).reason, "ranks"));
    g->config.network.hidden = 4;
    assert_string_equal(choose(g, 1, 100000).order, "none"); /* all rows fit a core's cache */
    assert_true(choose(g, 1, 100000).gain == 0.0);
    free_graph(g);
}

/* METIS takes less time with the order, which then costs less on several ranks. A part of many
 * ranks fits a cache. */
SL_TEST(test_ranks)
{
    struct graph *g = make_graph(false);
    const struct sl_order_choice one = choose(g, 1, 1000), two = choose_on(g, 2, true, 1000);
    assert_string_equal(two.order, "rabbit");
    assert_true(two.gain == one.gain && two.cost < one.cost);
    assert_true(choose_on(g, VERTICES / 100, true, 1000).gain == 0.0);
    g->config.ranks.allow_inexact = true;
    assert_string_equal(choose_on(g, 2, true, 1000).order, "none");
    assert_string_equal(choose(g, 1, 1000).order, "rabbit");
    free_graph(g);
}

/* Rows fit a core's cache. But the first rows have most entries of the adjacency, and the last rows
 * have all features. If two shares have equal numbers of entries, one still waits for the other. */
SL_TEST(test_balance)
{
    enum { MANY = VERTICES / 10, FEW = 1 };
    struct graph *even = make_graph(true), *sorted = make_graph(true);
    int64_t *features = calloc(VERTICES + 1, sizeof *features);
    int32_t *columns = calloc(VERTICES * DEGREE, sizeof *columns);
    struct graph *const both[] = {even, sorted};
    assert_non_null(features);
    assert_non_null(columns);
    for (int64_t v = 0; v < VERTICES; v++)
        sorted->indptr[v + 1] = sorted->indptr[v] + (v < MANY ? 9 * DEGREE : FEW);
    for (int g = 0; g < 2; g++) {
        both[g]->config.network.hidden = 4;
        for (int64_t v = 0; v < VERTICES; v++)
            features[v + 1] = g == 0 ? (v + 1) * 9 : v < MANY ? 0 : (v + 1 - MANY) * 10;
        both[g]->data.feature_form = SL_FEATURES_CSR;
        both[g]->data.features = 7;
        both[g]->data.features_csr = (struct sl_csr){VERTICES, 7, features, columns, NULL};
        sl_source_close(&both[g]->source);
        assert_int_equal(sl_source_of(&both[g]->data, &both[g]->source), 0);
        const struct sl_order_choice choice = choose(both[g], 1, 100000);
        assert_string_equal(choice.order, g == 0 ? "none" : "rabbit");
    }
    assert_string_equal(choose(sorted, 1, 1).order, "none");
    /* Smaller graphs wait for tasks: the same rows, but only some of each kind. */
    const int64_t first = MANY - 450;
    sorted->data.vertices = sorted->data.adjacency.rows = sorted->data.adjacency.cols = 900;
    sorted->data.features_csr.rows = 900;
    for (int64_t v = 0; v <= 900; v++) {
        sorted->indptr[v] = v < 450 ? v * 9 * DEGREE : 450 * 9 * DEGREE + (v - 450) * FEW;
        features[v] = features[v + first];
    }
    sl_source_close(&sorted->source);
    assert_int_equal(sl_source_of(&sorted->data, &sorted->source), 0);
    assert_string_equal(choose(sorted, 1, 100000).order, "none");
    free(features);
    free(columns);
    free_graph(even);
    free_graph(sorted);
}

/* Nobody has checked the columns yet. */
SL_TEST(test_damaged)
{
    struct graph *g = make_graph(false);
    for (int64_t k = 0; k < VERTICES * DEGREE; k += 3)
        g->indices[k] = k % 2 ? INT32_MAX : -5;
    g->indptr[VERTICES / 8] = INT64_MAX;
    g->indptr[VERTICES / 4] = -7;
    const struct sl_order_choice choice = choose(g, 1, 1);
    assert_true(choice.misses[0] <= 1.0 && choice.misses[1] <= 1.0);
    assert_true(choice.gain >= 0.0 && choice.gain < 1e3);
    free_graph(g);
}

/* ---- Random order in 1D ---- */

static const char *order_in_1d(struct graph *g, const double seconds[2], int64_t epochs)
{
    const struct sl_runtime rt = {.ranks = 2, .all_cores = 2};
    const struct sl_random_order random = {true, {1.9, 1.0}, {seconds[0], seconds[1]}};
    struct sl_order_choice choice;
    g->config.training.epochs = epochs;
    const struct sl_training training = sl_config_training(&g->config, &g->source);
    assert_int_equal(sl_order_choose(&rt, &g->source, &training, false, &random, &choice), 0);
    assert_non_null(strstr(choice.reason, "1.90 times as long as even ones, in random order 1.00"));
    return choice.order;
}

/* Random order is taken where a tenth of an epoch is saved, in enough epochs, and where caches do
 * not lose more: rows that are gathered anywhere already have nothing to lose. */
SL_TEST(test_random)
{
    struct graph *far = make_graph(false), *near = make_graph(true);
    static const double half[] = {0.2, 0.1}, less[] = {0.2, 0.19}, more[] = {0.1, 0.2},
                        little[] = {2e-3, 1e-3};
    assert_string_equal(order_in_1d(far, half, 100), "random");
    assert_string_equal(order_in_1d(far, less, 100), "none");
    assert_string_equal(order_in_1d(far, more, 100), "none");
    assert_string_equal(order_in_1d(near, half, 100), "random");
    near->config.network.hidden = 64;
    assert_string_equal(order_in_1d(near, little, 1), "none");
    assert_string_equal(order_in_1d(near, little, 1000), "random");
    near->config.network.hidden = HIDDEN;
    assert_string_equal(order_in_1d(near, little, 1000), "none"); /* caches */
    free_graph(far);
    free_graph(near);
}

/* ---- METIS ---- */

static void cut_with(struct graph *g, int64_t space, const char *parts)
{
    struct sl_partition_options options = {.balance = SL_BALANCE_ROWS,
                                           .tiles = 4,
                                           .cores = 2,
                                           .workers = 1,
                                           .ranks = 2,
                                           .width = HIDDEN};
    struct sl_partition partition;
    struct sl_scenario_cut cut;
    assert_int_equal(sl_partition_create(&sl_running, &partition, &g->source, &options), 0);
    const struct sl_training training = sl_config_training(&g->config, &g->source);
    assert_int_equal(sl_scenario_cut_create(&g->source, &training, &partition, NULL, space, &cut),
                     0);
    assert_string_equal(cut.parts, parts);
    sl_scenario_cut_destroy(&cut);
    sl_partition_destroy(&partition);
}

/* The graph is directed: METIS reads both directions of each entry. */
SL_TEST(test_memory_of_metis)
{
    struct graph *g = make_graph(true);
    const int64_t bytes = sl_vertex_parts_bytes(VERTICES, 2 * VERTICES * DEGREE);
    assert_true(bytes > 30 * 2 * VERTICES * DEGREE);
    cut_with(g, bytes, "METIS'");
    cut_with(g, bytes - 1, "at random");
    free_graph(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_epochs),        cmocka_unit_test(test_locality),
        cmocka_unit_test(test_where_none_is), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_balance),       cmocka_unit_test(test_memory_of_metis),
        cmocka_unit_test(test_caches),        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_ranks),         cmocka_unit_test(test_random),
    };
    sl_log_enable(false);
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
