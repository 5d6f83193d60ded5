/* Vertex orders. Each order is a permutation, and only the numbers of vertices change in a dataset.
 * Each order keeps its promise on graphs with a known answer. */
#include "data_files.h"

#include <math.h>

#include "core/log.h"
#include "data/csr.h"
#include "data/formats/formats.h"
#include "data/generate/generate_community.h"
#include "data/order/order.h"
#include "tests/fixtures.h"

/* ---- The table ---- */

SL_TEST(test_choices)
{
    char names[256] = "";
    for (const struct sl_order *order = sl_orders; order->name; order++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? "|" : "", order->name);
        assert_ptr_equal(sl_order_find(order->name), order);
    }
    assert_string_equal(names, SL_ORDER_CHOICES);
}

SL_TEST(test_unknown)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
    struct sl_dataset same = data;
    assert_int_equal(sl_dataset_reorder(&data, "alphabetical", 0), SL_ERR_USAGE);
    assert_non_null(strstr(sl_error_message(), "unknown order \"alphabetical\""));
    assert_non_null(strstr(sl_error_message(), "rabbit"));
    assert_int_equal(sl_dataset_reorder(&data, "none", 0), SL_OK);
    assert_memory_equal(&data, &same, sizeof data);
    sl_fixture_close(&data);
}

/* ---- Permutations ---- */

static void assert_permutation(int64_t n, const int32_t *vertices, const char *what)
{
    bool *seen = calloc((size_t)n + 1, sizeof *seen);
    for (int64_t r = 0; r < n; r++) {
        if (vertices[r] < 0 || vertices[r] >= n || seen[vertices[r]])
            fail_msg("%s: %d in place %d", what, (int)vertices[r], (int)r);
        seen[vertices[r]] = true;
    }
    free(seen);
}

SL_TEST(test_permutations)
{
    for (int f = 0; f < sl_fixture_count; f++) {
        struct sl_dataset data = sl_fixture_open(&sl_fixtures[f]);
        const size_t n = (size_t)data.vertices;
        int32_t *once = calloc(n + 1, sizeof *once), *again = calloc(n + 1, sizeof *again);
        for (const struct sl_order *order = sl_orders + 1; order->name; order++) {
            char what[64];
            snprintf(what, sizeof what, "%s of %s", order->name, sl_fixtures[f].name);
            assert_int_equal(sl_order_compute(order, &data, 7, once), SL_OK);
            assert_permutation(data.vertices, once, what);
            assert_int_equal(sl_order_compute(order, &data, 7, again), SL_OK);
            assert_memory_equal(once, again, n * sizeof *once);
        }
        free(once);
        free(again);
        sl_fixture_close(&data);
    }
}

/* Batches of the graph are larger than what a thread takes at a time, so that several threads have
 * turns; who takes which depends on the machine's load. */
SL_TEST(test_rabbit_threads)
{
    const int threads[] = {1, 2, 3, 7};
    const struct sl_community_options options = {
        .vertices = 30000, .classes = 40, .degree = 30, .features = 1, .seed = 3};
    struct sl_dataset data = {0};
    assert_int_equal(sl_generate_community(&options, &data), SL_OK);
    const size_t n = (size_t)data.vertices;
    int32_t *alone = calloc(n, sizeof *alone), *order = calloc(n, sizeof *order);
    assert_int_equal(sl_order_compute(sl_order_find("rabbit"), &data, 0, alone), SL_OK);
    for (int t = 0; t < 4; t++)
        for (int repetition = 0; repetition < 3; repetition++) {
            memset(order, 0, n * sizeof *order);
            assert_int_equal(sl_order_rabbit_by(threads[t], &data.adjacency, order), SL_OK);
            assert_permutation(data.vertices, order, "rabbit");
            assert_memory_equal(order, alone, n * sizeof *order);
        }
    free(alone);
    free(order);
    sl_dataset_close(&data);
}

SL_TEST(test_seeds)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
    int32_t one[64], two[64];
    assert_true(data.vertices <= 64);
    const struct sl_order *random = sl_order_find("random");
    assert_int_equal(sl_order_compute(random, &data, 1, one), SL_OK);
    assert_int_equal(sl_order_compute(random, &data, 2, two), SL_OK);
    assert_memory_not_equal(one, two, (size_t)data.vertices * sizeof *one);
    sl_fixture_close(&data);
}

SL_TEST(test_degrees_fall)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected")), ordered = data;
    assert_int_equal(sl_dataset_reorder(&ordered, "degree", 0), SL_OK);
    const int64_t *indptr = ordered.adjacency.indptr;
    for (int64_t r = 1; r < ordered.vertices; r++) {
        const int64_t before = indptr[r] - indptr[r - 1], here = indptr[r + 1] - indptr[r];
        assert_true(before > here ||
                    (before == here && ordered.original[r - 1] < ordered.original[r]));
    }
    sl_block_free_all(&ordered.blocks);
    sl_fixture_close(&data);
}

/* ---- Datasets ---- */

static void assert_ascending(const struct sl_csr *csr)
{
    for (int64_t r = 0; r < csr->rows; r++)
        for (int64_t k = csr->indptr[r] + 1; k < csr->indptr[r + 1]; k++)
            assert_true(csr->indices[k - 1] < csr->indices[k]);
}

static void assert_same_adjacency(const struct sl_dataset *a, const struct sl_dataset *b)
{
    const int64_t n = a->vertices;
    double *before = calloc((size_t)(n * n) + 1, sizeof *before);
    double *after = calloc((size_t)(n * n) + 1, sizeof *after);
    sl_fixture_dense_adjacency(a, before);
    sl_fixture_dense_adjacency(b, after);
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < n; c++)
            assert_true(after[r * n + c] == before[b->original[r] * n + b->original[c]]);
    assert_ascending(&b->adjacency);
    assert_int_equal(entries(a), entries(b));
    assert_int_equal(a->adjacency.values == NULL, b->adjacency.values == NULL);
    free(before);
    free(after);
}

static void assert_same_features(const struct sl_dataset *a, const struct sl_dataset *b)
{
    const int64_t n = a->vertices, f = a->features;
    if (a->feature_form == SL_FEATURES_IDENTITY)
        return; /* none are stored: training reads `original` */
    double *before = calloc((size_t)(n * f) + 1, sizeof *before);
    double *after = calloc((size_t)(n * f) + 1, sizeof *after);
    sl_fixture_dense_features(a, before);
    sl_fixture_dense_features(b, after);
    for (int64_t r = 0; r < n; r++)
        assert_memory_equal(after + r * f, before + b->original[r] * f, (size_t)f * sizeof *after);
    if (a->feature_form == SL_FEATURES_CSR)
        assert_ascending(&b->features_csr);
    free(before);
    free(after);
}

static void assert_same_split(int64_t n, const struct sl_index_set *a, const struct sl_index_set *b,
                              const int64_t *original)
{
    bool *in = calloc((size_t)n + 1, sizeof *in);
    sl_fixture_mask(a, n, in);
    assert_int_equal(a->count, b->count);
    for (int64_t k = 0; k < b->count; k++) {
        assert_true(in[original[b->ids[k]]]);
        assert_true(k == 0 || b->ids[k - 1] < b->ids[k]);
    }
    free(in);
}

/* Check that b is a in the order of b's `original`. */
static void assert_same_under_order(const struct sl_dataset *a, const struct sl_dataset *b)
{
    const int64_t n = a->vertices, c = a->classes;
    assert_non_null(b->original);
    assert_int_equal(a->symmetric, b->symmetric);
    assert_int_equal(a->feature_form, b->feature_form);
    assert_same_adjacency(a, b);
    assert_same_features(a, b);
    assert_int_equal(a->labels == NULL, b->labels == NULL);
    assert_int_equal(a->multilabels == NULL, b->multilabels == NULL);
    for (int64_t r = 0; r < n; r++) {
        if (a->labels)
            assert_int_equal(b->labels[r], a->labels[b->original[r]]);
        if (a->multilabels)
            assert_memory_equal(b->multilabels + r * c, a->multilabels + b->original[r] * c,
                                (size_t)c * sizeof *b->multilabels);
    }
    assert_same_split(n, &a->train, &b->train, b->original);
    assert_same_split(n, &a->val, &b->val, b->original);
    assert_same_split(n, &a->test, &b->test, b->original);
}

SL_TEST(test_datasets)
{
    for (int f = 0; f < sl_fixture_count; f++)
        for (const struct sl_order *order = sl_orders + 1;
             order->name && sl_fixtures[f].vertices > 0; order++) {
            struct sl_dataset data = sl_fixture_open(&sl_fixtures[f]), ordered = data;
            assert_int_equal(sl_dataset_reorder(&ordered, order->name, 3), SL_OK);
            assert_same_under_order(&data, &ordered);
            assert_int_equal(sl_dataset_validate(&ordered), SL_OK);
            assert_int_equal(sl_dataset_reorder(&ordered, "random", 4), SL_OK);
            assert_same_under_order(&data, &ordered); /* `original` through both orders */
            sl_block_free_all(&ordered.blocks);
            sl_fixture_close(&data);
        }
}

SL_TEST(test_multilabels)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
    float labels[64 * 8];
    assert_true(data.vertices * data.classes <= 64 * 8);
    for (int64_t k = 0; k < data.vertices * data.classes; k++)
        labels[k] = (float)(k % 3 == 0);
    struct sl_dataset several = data;
    several.labels = NULL;
    several.multilabels = labels;
    struct sl_dataset ordered = several;
    assert_int_equal(sl_dataset_reorder(&ordered, "random", 3), SL_OK);
    assert_same_under_order(&several, &ordered);
    sl_block_free_all(&ordered.blocks);
    sl_fixture_close(&data);
}

/* An ordered dataset keeps its original numbers through files, and a second order adds to them. */
static void test_files(void **state)
{
    struct sl_dataset data, stored;
    const char *plain = files_dataset(*state, "plain");
    char ordered[256];
    open_ok(plain, &data);
    assert_null(data.original);
    assert_int_equal(sl_dataset_reorder(&data, "random", 5), SL_OK);
    assert_round_trip(*state, &data);
    snprintf(ordered, sizeof ordered, "%s", files_path(*state, "ordered"));
    assert_int_equal(sl_dataset_write(&data, ordered), SL_OK);
    sl_dataset_close(&data);
    open_ok(plain, &data);
    open_ok(ordered, &stored);
    assert_same_under_order(&data, &stored);
    assert_int_equal(sl_dataset_reorder(&stored, "random", 6), SL_OK);
    assert_same_under_order(&data, &stored);
    sl_dataset_close(&stored);
    sl_dataset_close(&data);
}

/* ---- What the orders promise ---- */

/* A graph of `n` vertices and its undirected edges, its vertices shuffled. */
static struct sl_dataset shuffled(int64_t n, const struct sl_triples *edges)
{
    struct sl_dataset data = {.name = strdup("shuffled"), .path = strdup("shuffled")};
    int64_t merged = 0;
    assert_int_equal(sl_csr_build(edges, n, n, &data.blocks, &data.adjacency, &merged), SL_OK);
    assert_int_equal(sl_csr_symmetrize(&data.adjacency, &data.blocks), SL_OK);
    data.vertices = n;
    assert_int_equal(sl_dataset_validate(&data), SL_OK);
    assert_true(data.symmetric);
    assert_int_equal(sl_dataset_reorder(&data, "random", 1), SL_OK);
    return data;
}

/* The vertex (x, y, z) of `layers` grids that hang together nowhere. */
static struct sl_dataset shuffled_grids(int32_t width, int32_t height, int32_t layers)
{
    struct sl_triples edges = {0};
    for (int32_t z = 0; z < layers; z++)
        for (int32_t y = 0; y < height; y++)
            for (int32_t x = 0; x < width; x++) {
                const int32_t v = (z * height + y) * width + x;
                if (x + 1 < width)
                    assert_int_equal(sl_triples_add(&edges, v, v + 1, 1.0f), SL_OK);
                if (y + 1 < height)
                    assert_int_equal(sl_triples_add(&edges, v, v + width, 1.0f), SL_OK);
            }
    struct sl_dataset data = shuffled((int64_t)width * height * layers, &edges);
    sl_triples_free(&edges);
    return data;
}

/* The largest and the mean distance of an edge's ends. */
static void measure(const struct sl_csr *graph, int64_t *bandwidth, double *mean)
{
    int64_t most = 0, sum = 0;
    for (int64_t r = 0; r < graph->rows; r++)
        for (int64_t k = graph->indptr[r]; k < graph->indptr[r + 1]; k++) {
            const int64_t distance = llabs(r - graph->indices[k]);
            most = distance > most ? distance : most;
            sum += distance;
        }
    *bandwidth = most;
    *mean = (double)sum / (double)graph->indptr[graph->rows];
}

SL_TEST(test_rcm_bandwidth)
{
    /* A grid cut into diagonals has a bandwidth of its shorter side. */
    static const struct {
        int32_t width, height, layers;
        int64_t bandwidth;
    } cases[] = {{500, 1, 1, 1}, {2, 1, 100, 1}, {1, 40, 7, 1}, {60, 20, 1, 21}, {17, 31, 3, 18}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct sl_dataset data = shuffled_grids(cases[c].width, cases[c].height, cases[c].layers);
        int64_t before, after;
        double mean;
        measure(&data.adjacency, &before, &mean);
        assert_int_equal(sl_dataset_reorder(&data, "rcm", 0), SL_OK);
        measure(&data.adjacency, &after, &mean);
        if (after > cases[c].bandwidth || before <= 4 * after)
            fail_msg("grids %d x %d: bandwidth %d, then %d", cases[c].width, cases[c].height,
                     (int)before, (int)after);
        sl_dataset_close(&data);
    }
}

/* The envelope: columns from the first entry of each row to the diagonal, and from the diagonal to
 * the last entry. The first sum is that of the reversed order in the second one. */
static void measure_envelopes(const struct sl_csr *graph, int64_t *first, int64_t *last)
{
    *first = *last = 0;
    for (int64_t r = 0; r < graph->rows; r++) {
        int64_t least = r, most = r;
        for (int64_t k = graph->indptr[r]; k < graph->indptr[r + 1]; k++) {
            least = graph->indices[k] < least ? graph->indices[k] : least;
            most = graph->indices[k] > most ? graph->indices[k] : most;
        }
        *first += r - least;
        *last += most - r;
    }
}

/* The reversed order has the smaller envelope (Liu and Sherman 1976), on graphs without symmetry a
 * smaller one. */
SL_TEST(test_rcm_is_reversed)
{
    const struct sl_community_options options = {
        .vertices = 3000, .classes = 3, .degree = 3, .features = 1, .seed = 4, .homophily = 0.9};
    struct sl_dataset data;
    int64_t first, last;
    assert_int_equal(sl_generate_community(&options, &data), SL_OK);
    assert_int_equal(sl_dataset_reorder(&data, "rcm", 0), SL_OK);
    measure_envelopes(&data.adjacency, &first, &last);
    assert_true(first < last);
    sl_dataset_close(&data);
}

/* Nine of ten edges stay in a community of 1000 of 20,000 vertices. The mean distance of an ideal
 * order is 0.9 x 333 + 0.1 x 6667, a twentieth of the number of vertices. The mean distance of a
 * random order is a third of the number of vertices. */
SL_TEST(test_communities)
{
    static const char *const orders[] = {"rabbit", "metis"};
    const struct sl_community_options options = {
        .vertices = 20000, .classes = 20, .degree = 20, .features = 1, .seed = 2, .homophily = 0.9};
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        struct sl_dataset data;
        int64_t bandwidth;
        double random, mean;
        assert_int_equal(sl_generate_community(&options, &data), SL_OK);
        measure(&data.adjacency, &bandwidth, &random);
        assert_int_equal(sl_dataset_reorder(&data, orders[o], 1), SL_OK);
        measure(&data.adjacency, &bandwidth, &mean);
        if (random < 6000 || mean > 2000)
            fail_msg("%s: mean distance %.0f, then %.0f", orders[o], random, mean);
        sl_dataset_close(&data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices),       cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_permutations),  cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_degrees_fall),  cmocka_unit_test(test_datasets),
        cmocka_unit_test(test_multilabels),   cmocka_unit_test(test_files),
        cmocka_unit_test(test_rcm_bandwidth), cmocka_unit_test(test_rcm_is_reversed),
        cmocka_unit_test(test_communities),   cmocka_unit_test(test_rabbit_threads),
    };
    sl_log_enable(false);
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
