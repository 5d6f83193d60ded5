/* The likes of published datasets, and the random graphs, permutations and loops they are made of.
 */
#include "data_files.h"

#include <math.h>
#include <stdatomic.h>

#include "core/log.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "data/csr.h"
#include "data/degrees.h"
#include "data/generate/draw_graph.h"
#include "data/generate/generate_like.h"
#include "data/statistics.h"

/* --- What they are made of --- */

static void count_call(void *context, int64_t i)
{
    atomic_int *calls = context;
    atomic_fetch_add(&calls[i], 1);
}

SL_TEST(test_parallel_loop)
{
    for (int threads = 0; threads < 6; threads++)
        for (int64_t count = 0; count < 50; count += 7) {
            atomic_int calls[50] = {0};
            sl_parallel_for(threads, count, count_call, calls);
            for (int64_t i = 0; i < 50; i++)
                assert_int_equal(calls[i], i < count);
        }
    assert_true(sl_parallel_threads(0) >= 1);
    assert_int_equal(sl_parallel_threads(3), 3);
}

static void count_range(void *context, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        count_call(context, i);
}

SL_TEST(test_parallel_ranges)
{
    const int64_t counts[] = {0, 1, 4095, 4096, 4097, 9000};
    for (size_t k = 0; k < 6; k++) {
        atomic_int *calls = calloc(9001, sizeof *calls);
        sl_parallel_for_ranges(3, counts[k], count_range, calls);
        for (int64_t i = 0; i < 9001; i++)
            assert_int_equal(calls[i], i < counts[k]);
        free(calls);
    }
}

SL_TEST(test_permutation)
{
    const uint32_t counts[] = {1, 2, 3, 64, 65, 1000};
    for (size_t k = 0; k < 6; k++) {
        bool seen[1000] = {false};
        for (uint32_t i = 0; i < counts[k]; i++) {
            const uint32_t at = sl_rng_permute(sl_rng_key(7, SL_RNG_ORDER, 0, 0), counts[k], i);
            assert_in_range(at, 0, counts[k] - 1);
            assert_false(seen[at]);
            seen[at] = true;
        }
    }
}

static struct sl_csr draw_graph(const struct sl_draw_graph *graph, struct sl_block **blocks)
{
    struct sl_csr csr;
    assert_int_equal(sl_graph_draw(graph, blocks, &csr), SL_OK);
    return csr;
}

/* Every pair is joined as often as its weights say: within 4.5 standard deviations. */
SL_TEST(test_graph_probabilities)
{
    enum { N = 7, DRAWS = 4000 };
    const int32_t community[N] = {1, 0, 1, 3, 0, 1, 0};
    const float inside[N] = {1.0f, 0.5f, 2.0f, 3.0f, 0.0f, 0.3f, 1.5f};
    const float anywhere[N] = {0.2f, 0.0f, 0.7f, 1.0f, 1.5f, 0.1f, 0.4f};
    int joined[N][N] = {{0}};
    for (uint32_t seed = 0; seed < DRAWS; seed++) {
        const struct sl_draw_graph graph = {
            .vertices = N,
            .communities = 5,
            .community = community,
            .inside = inside,
            .anywhere = anywhere,
            .inside_key = sl_rng_key(seed, SL_RNG_GENERATE, 0, 0),
            .anywhere_key = sl_rng_key(seed, SL_RNG_GENERATE, 0, 1),
            .threads = 1,
        };
        struct sl_block *blocks = NULL;
        const struct sl_csr csr = draw_graph(&graph, &blocks);
        for (int64_t v = 0; v < N; v++)
            for (int64_t k = csr.indptr[v]; k < csr.indptr[v + 1]; k++)
                joined[v][csr.indices[k]]++;
        sl_block_free_all(&blocks);
    }
    for (int u = 0; u < N; u++)
        for (int v = 0; v < N; v++) {
            const double x = (double)anywhere[u] * anywhere[v] +
                             (community[u] == community[v] ? (double)inside[u] * inside[v] : 0.0);
            const double p = u == v ? 0.0 : -expm1(-x);
            assert_true(fabs(joined[u][v] - DRAWS * p) <= 4.5 * sqrt(DRAWS * p * (1.0 - p)));
            assert_int_equal(joined[u][v], joined[v][u]);
        }
}

SL_TEST(test_graph_without_edges)
{
    const int32_t community[200] = {0};
    const float none[200] = {0};
    for (int64_t n = 1; n <= 200; n += 199) {
        const struct sl_draw_graph graph = {n, 1, community, none, none, 1, 2, 2};
        struct sl_block *blocks = NULL;
        const struct sl_csr csr = draw_graph(&graph, &blocks);
        assert_int_equal(csr.indptr[n], 0);
        sl_block_free_all(&blocks);
    }
}

/* Weights give every vertex its target; those that would need more than the others have stay
 * finite, and so does the time to draw by them. */
SL_TEST(test_weights)
{
    const struct {
        double few, few_target, many, many_target;
        bool possible;
    } cases[] = {{1, 400, 1000, 2, true},
                 {50, 100, 500, 20, true},
                 {1, 50, 0, 0, false},
                 {2, 1, 0, 0, false},
                 {2, 50, 100, 0.01, false}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct sl_weight_curve curve = {0};
        sl_weight_curve_add(&curve, cases[k].few_target, cases[k].few);
        sl_weight_curve_add(&curve, cases[k].many_target, cases[k].many);
        sl_weight_curve_solve(&curve);
        const double x = sl_weight_curve_at(&curve, cases[k].few_target);
        const double y = sl_weight_curve_at(&curve, cases[k].many_target);
        const double few = -(cases[k].few - 1) * expm1(-x * x) - cases[k].many * expm1(-x * y);
        const double many = -cases[k].few * expm1(-x * y) - (cases[k].many - 1) * expm1(-y * y);
        if (cases[k].possible) {
            assert_near(few / cases[k].few_target, 1.0, 0.03);
            assert_near(many / cases[k].many_target, 1.0, 0.03);
        } else {
            assert_true(x > 0.0 && x * x < 256.0 * cases[k].few_target + 1.0);
        }
    }
}

/* --- The likes --- */

static void like(const char *name, double scale, uint64_t seed, int64_t threads,
                 struct sl_dataset *data)
{
    const struct sl_like_options options = {name, scale, seed, threads};
    if (sl_generate_like(&options, data) != SL_OK)
        fail_msg("%s", sl_error_message());
}

/* Labels are on the vertices of the splits and no others; all have one where the splits are all. */
static void assert_labelled(const struct sl_dataset *data)
{
    const struct sl_index_set *sets[] = {&data->train, &data->val, &data->test};
    int64_t in_splits = 0, labelled = 0;
    for (int s = 0; s < 3; s++)
        for (int64_t k = 0; k < sets[s]->count; k++, in_splits++)
            assert_true(data->labels[sets[s]->ids[k]] >= 0);
    for (int64_t v = 0; v < data->vertices; v++)
        labelled += data->labels[v] >= 0;
    assert_int_equal(labelled, in_splits);
}

/* MAG's edges have four relations, and their reverses four more. Leave the relations out. */
static void check_relations(struct sl_dataset *data)
{
    const struct sl_csr *a = &data->adjacency;
    int64_t count[8] = {0};
    assert_int_equal(data->relations, strstr(data->name, "mag") ? 8 : 0);
    for (int64_t v = 0; data->relations && v < a->rows; v++)
        for (int64_t e = a->indptr[v]; e < a->indptr[v + 1]; e++) {
            assert_int_equal(data->edge[e] >= 4.0f, a->indices[e] > v);
            count[(int)data->edge[e]]++;
        }
    for (int r = 0; data->relations && r < 4; r++) {
        assert_int_equal(count[r], count[4 + r]);
        assert_near(8.0 * (double)count[r] / (double)a->indptr[a->rows], 1.0, 0.05);
    }
    if (data->relations) {
        data->edge = NULL;
        data->edge_features = data->relations = 0;
        data->symmetric = true;
    }
}

SL_TEST(test_shapes)
{
    const struct {
        const char *name;
        double scale;
        int64_t vertices, features, classes, train, val, test;
        double degree;
    } wanted[] = {
        {"reddit", 0.01, 2330, 602, 41, 1534, 238, 558, 491.99},
        {"products", 0.004, 9796, 100, 47, 786, 157, 8853, 50.52},
        {"proteins", 0.0005, 4373, 128, 256, 2624, 875, 874, 149.70},
        {"arxiv", 0.05, 8467, 128, 40, 4547, 1490, 2430, 13.67},
        {"papers", 0.0001, 11106, 128, 172, 121, 13, 21, 14.55},
        {"mag", 0.005, 9699, 128, 349, 3148, 324, 210, 21.77},
    };
    const char *names = SL_LIKE_NAMES;
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
        struct sl_dataset data;
        like(wanted[k].name, wanted[k].scale, 1, 0, &data);
        assert_int_equal(data.vertices, wanted[k].vertices);
        assert_int_equal(data.features, wanted[k].features);
        assert_int_equal(data.classes, wanted[k].classes);
        assert_int_equal(data.train.count, wanted[k].train);
        assert_int_equal(data.val.count, wanted[k].val);
        assert_int_equal(data.test.count, wanted[k].test);
        const double degree = (double)entries(&data) / (double)data.vertices;
        assert_near(degree / wanted[k].degree, 1.0, 0.04);
        check_relations(&data);
        assert_simple(&data);
        assert_labelled(&data);
        sl_dataset_close(&data);
        assert_memory_equal(names, wanted[k].name, strlen(wanted[k].name));
        names += strlen(wanted[k].name);
        assert_int_equal(*names++, k + 1 < sizeof wanted / sizeof *wanted ? '|' : '\0');
    }
}

static int descending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* Share of all entries in the rows of the 1 % of vertices that have most. */
static double top_share(const struct sl_csr *a)
{
    int64_t *degrees = malloc((size_t)a->rows * sizeof *degrees), top = 0;
    for (int64_t v = 0; v < a->rows; v++)
        degrees[v] = a->indptr[v + 1] - a->indptr[v];
    qsort(degrees, (size_t)a->rows, sizeof *degrees, descending);
    for (int64_t k = 0; k < a->rows / 100; k++)
        top += degrees[k];
    free(degrees);
    return (double)top / (double)a->indptr[a->rows];
}

/* Published: products' median degree is 26, arxiv's 6; the largest degrees are cut at half of the
 * vertices that are left. */
SL_TEST(test_degrees)
{
    struct sl_dataset data;
    struct sl_graph_statistics s;
    like("arxiv", 0.2, 3, 0, &data);
    assert_int_equal(sl_graph_statistics_compute(&data, &s), SL_OK);
    assert_in_range(s.degree_median, 5, 7);
    assert_in_range(s.degree_max, 3000, 13500);
    const double arxiv = top_share(&data.adjacency);
    assert_near(arxiv, 0.20, 0.03);
    assert_near(s.edge_homophily, 0.62, 0.04);
    assert_near((double)s.class_sizes[0] / (double)data.vertices, 0.2, 0.03);
    for (int64_t c = 0; c < 40; c++)
        assert_true(s.class_sizes[c] > 0);
    sl_graph_statistics_free(&s);
    sl_dataset_close(&data);
    like("products", 0.01, 3, 0, &data);
    assert_int_equal(sl_graph_statistics_compute(&data, &s), SL_OK);
    assert_in_range(s.degree_median, 23, 29);
    assert_in_range(s.degree_max, 1500, 17800);
    assert_near(top_share(&data.adjacency), 0.12, 0.02);
    assert_near(s.edge_homophily, 0.75, 0.06);
    sl_graph_statistics_free(&s);
    sl_dataset_close(&data);
}

/* A permutation of the vertices: neighbours by number are of the same class by chance only. */
SL_TEST(test_order_is_random)
{
    struct sl_dataset data;
    like("arxiv", 0.05, 1, 0, &data);
    int64_t same = 0;
    for (int64_t v = 1; v < data.vertices; v++)
        same += data.labels[v - 1] == data.labels[v];
    assert_near((double)same / (double)data.vertices, 0.07, 0.02);
    sl_dataset_close(&data);
}

static void test_threads_change_nothing(void **state)
{
    struct sl_dataset one, many;
    like("arxiv", 0.1, 5, 1, &one);
    for (int64_t threads = 2; threads < 9; threads += 3) {
        like("arxiv", 0.1, 5, threads, &many);
        assert_same_dataset(&one, &many);
        sl_dataset_close(&many);
    }
    like("arxiv", 0.1, 6, 2, &many);
    assert_memory_not_equal(one.labels, many.labels, 10000 * sizeof *one.labels);
    assert_memory_not_equal(one.adjacency.indices, many.adjacency.indices, 10000);
    assert_memory_not_equal(one.features_dense, many.features_dense, 10000);
    sl_dataset_close(&many);
    assert_round_trip(*state, &one);
    sl_dataset_close(&one);
}

SL_TEST(test_refusals)
{
    const struct {
        struct sl_like_options options;
        const char *says;
    } refused[] = {
        {{"cora", 0.1, 1, 0}, "name is \"cora\", expected one of: reddit, products"},
        {{NULL, 0.1, 1, 0}, "name is \"\""},
        {{"reddit", 0.0, 1, 0}, "scale is 0"},
        {{"reddit", -0.1, 1, 0}, "scale is -0.1"},
        {{"reddit", NAN, 1, 0}, "scale is nan"},
        {{"reddit", 1.001, 1, 0}, "at most 1"},
        {{"reddit", 0.001, 1, 0}, "leaves 233 vertices of reddit, expected 1968"},
        {{"papers", 1e-6, 1, 0}, "leaves 111 vertices of papers, expected 172"},
        {{"papers", 1e-12, 1, 0}, "leaves 0 vertices"},
    };
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        struct sl_dataset data;
        assert_int_equal(sl_generate_like(&refused[k].options, &data), SL_ERR_USAGE);
        assert_non_null(strstr(sl_error_message(), refused[k].says));
        assert_null(data.blocks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parallel_loop),
        cmocka_unit_test(test_parallel_ranges),
        cmocka_unit_test(test_permutation),
        cmocka_unit_test(test_graph_probabilities),
        cmocka_unit_test(test_graph_without_edges),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_degrees),
        cmocka_unit_test(test_order_is_random),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_refusals),
    };
    sl_log_enable(false);
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
