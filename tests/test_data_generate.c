/* The synthetic dataset and the statistics of graphs. */
#include "data_files.h"

#include <math.h>

#include "core/log.h"
#include "data/csr.h"
#include "data/generate/generate_community.h"
#include "data/statistics.h"

/* --- the generator
 * ----------------------------------------------------------------------------------------- */

/* Share of vertices whose vector is nearest to the mean vector of their own class. */
static double centroid_accuracy(const struct sl_dataset *data, const float *x)
{
    const int64_t n = data->vertices, f = data->features, c = data->classes;
    double *mean = calloc((size_t)(c * f), sizeof *mean), *size = calloc((size_t)c, sizeof *size);
    for (int64_t v = 0; v < n; v++)
        size[data->labels[v]] += 1.0;
    for (int64_t k = 0; k < n * f; k++)
        mean[data->labels[k / f] * f + k % f] += x[k] / size[data->labels[k / f]];
    int64_t right = 0;
    for (int64_t v = 0; v < n; v++) {
        int64_t best = 0;
        double best_distance = INFINITY;
        for (int64_t i = 0; i < c; i++) {
            double distance = 0;
            for (int64_t j = 0; j < f; j++)
                distance += pow(x[v * f + j] - mean[i * f + j], 2);
            best = distance < best_distance ? i : best;
            best_distance = distance < best_distance ? distance : best_distance;
        }
        right += best == data->labels[v];
    }
    free(mean);
    free(size);
    return (double)right / (double)n;
}

/* Each row plus those of its neighbours. */
static float *sum_neighbours(const struct sl_dataset *data)
{
    const int64_t f = data->features;
    float *sum = calloc((size_t)(data->vertices * f), sizeof *sum);
    for (int64_t v = 0; v < data->vertices; v++) {
        const int64_t start = data->adjacency.indptr[v], end = data->adjacency.indptr[v + 1];
        for (int64_t j = 0; j < f; j++) {
            sum[v * f + j] = data->features_dense[v * f + j];
            for (int64_t k = start; k < end; k++)
                sum[v * f + j] += data->features_dense[data->adjacency.indices[k] * f + j];
            sum[v * f + j] /= (float)(end - start + 1);
        }
    }
    return sum;
}

static void test_generator_is_learnable(void **state)
{
    struct sl_community_options options = SL_COMMUNITY_DEFAULTS;
    options.vertices = 4000;
    struct sl_dataset data;
    assert_int_equal(sl_generate_community(&options, &data), SL_OK);
    struct sl_graph_statistics s;
    assert_int_equal(sl_graph_statistics_compute(&data, &s), SL_OK);
    assert_float_equal(s.degree_mean, 10.0, 0.2);
    assert_float_equal(s.edge_homophily, 0.8, 0.02);
    assert_int_equal(s.self_loops, 0);
    assert_true(data.symmetric && !data.adjacency.values);
    assert_int_equal(data.train.count, 2400);
    assert_int_equal(data.val.count, 800);
    assert_int_equal(data.test.count, 800);
    float *sum = sum_neighbours(&data);
    const double alone = centroid_accuracy(&data, data.features_dense);
    const double together = centroid_accuracy(&data, sum);
    print_message("features alone %.3f, with neighbours %.3f\n", alone, together);
    assert_true(alone < 0.7 && together > 0.85);
    free(sum);
    sl_graph_statistics_free(&s);
    assert_round_trip(*state, &data);
    sl_dataset_close(&data);
}

SL_TEST(test_generator_is_deterministic)
{
    struct sl_community_options options = SL_COMMUNITY_DEFAULTS;
    struct sl_dataset a, b;
    assert_int_equal(sl_generate_community(&options, &a), SL_OK);
    assert_int_equal(sl_generate_community(&options, &b), SL_OK);
    assert_same_dataset(&a, &b);
    sl_dataset_close(&b);
    options.feature_noise = 2.0; /* changes features and nothing else */
    assert_int_equal(sl_generate_community(&options, &b), SL_OK);
    assert_same_csr(&a.adjacency, &b.adjacency);
    sl_dataset_close(&b);
    options.seed = 2;
    assert_int_equal(sl_generate_community(&options, &b), SL_OK);
    assert_memory_not_equal(a.labels, b.labels, 1000 * sizeof *a.labels);
    sl_dataset_close(&a);
    sl_dataset_close(&b);
}

SL_TEST(test_generator_limits)
{
    const struct sl_community_options legal_options[] = {
        {.vertices = 1, .classes = 1, .features = 1},
        {.vertices = 2, .classes = 2, .features = 3, .degree = 1, .homophily = 1},
        {.vertices = 9, .classes = 1, .features = 1, .degree = 8, .homophily = 0},
    };
    const struct sl_community_options refused[] = {
        {.vertices = 0, .classes = 1, .features = 1},
        {.vertices = 2, .classes = 3, .features = 1},
        {.vertices = 2, .classes = 1, .features = 1, .degree = 2},
        {.vertices = 2, .classes = 1, .features = 1, .homophily = NAN},
        {.vertices = 2, .classes = 1, .features = 0},
    };
    struct sl_dataset data;
    for (size_t k = 0; k < 3; k++) {
        assert_int_equal(sl_generate_community(&legal_options[k], &data), SL_OK);
        assert_int_equal(sl_csr_diagonal_count(&data.adjacency), 0);
        sl_dataset_close(&data);
    }
    for (size_t k = 0; k < 5; k++)
        assert_int_equal(sl_generate_community(&refused[k], &data), SL_ERR_USAGE);
}

/* --- statistics
 * -------------------------------------------------------------------------------------------- */

static void test_statistics(void **state)
{
    struct sl_dataset data;
    struct sl_graph_statistics s;
    open_ok(files_dataset(*state, "counted"), &data);
    assert_int_equal(sl_graph_statistics_compute(&data, &s), SL_OK);
    assert_int_equal(s.edges, 3);
    assert_int_equal(s.degree_min, 1);
    assert_int_equal(s.degree_median, 1);
    assert_int_equal(s.degree_p90, 2);
    assert_int_equal(s.degree_max, 2);
    assert_float_equal(s.degree_mean, 1.5, 0.0);
    assert_float_equal(s.density, 6.0 / 16.0, 0.0);
    assert_int_equal(s.components, 1);
    assert_int_equal(s.largest_component, 4);
    assert_int_equal(s.class_sizes[0], 2);
    assert_float_equal(s.edge_homophily, 0.0, 0.0);
    sl_graph_statistics_free(&s);
    sl_dataset_close(&data);
    open_ok(files_text(*state, "apart.txt", "0 1\n3 3\n"), &data);
    assert_int_equal(sl_graph_statistics_compute(&data, &s), SL_OK);
    assert_int_equal(s.edges, 2);
    assert_int_equal(s.isolated, 2);
    assert_int_equal(s.self_loops, 1);
    assert_int_equal(s.components, 3);
    assert_int_equal(s.largest_component, 2);
    assert_true(isnan(s.edge_homophily));
    sl_graph_statistics_free(&s);
    sl_dataset_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generator_is_learnable),
        cmocka_unit_test(test_generator_is_deterministic),
        cmocka_unit_test(test_generator_limits),
        cmocka_unit_test(test_statistics),
    };
    sl_log_enable(false);
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
