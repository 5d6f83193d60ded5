/* Clustering coefficients. */
#include "data_files.h"

#include "core/log.h"
#include "core/rng.h"
#include "data/clustering.h"
#include "data/generate_community.h"
#include "data/statistics.h"

static int64_t degree_of(const struct sl_csr *a, int64_t v)
{
    return a->indptr[v + 1] - a->indptr[v];
}

/* local[v] (rows): the share of pairs of v's neighbours that are joined, by marking the neighbours
 * and walking along all their rows; 0 without pairs. */
static double *count_triangles(const struct sl_csr *a)
{
    double *local = calloc((size_t)a->rows, sizeof *local);
    bool *mark = calloc((size_t)a->rows, sizeof *mark);
    for (int64_t v = 0; v < a->rows; v++) {
        const double degree = (double)degree_of(a, v);
        for (int64_t k = a->indptr[v]; k < a->indptr[v + 1]; k++)
            mark[a->indices[k]] = true;
        for (int64_t k = a->indptr[v]; k < a->indptr[v + 1]; k++) {
            const int32_t u = a->indices[k];
            for (int64_t j = a->indptr[u]; j < a->indptr[u + 1]; j++)
                local[v] += mark[a->indices[j]];
        }
        for (int64_t k = a->indptr[v]; k < a->indptr[v + 1]; k++)
            mark[a->indices[k]] = false;
        local[v] /= degree > 1.0 ? degree * (degree - 1.0) : 1.0;
    }
    free(mark);
    return local;
}

static void community(int64_t vertices, double degree, struct sl_dataset *data)
{
    struct sl_community_options options = SL_COMMUNITY_DEFAULTS;
    options.vertices = vertices;
    options.classes = vertices / 40;
    options.degree = degree;
    options.features = 1;
    if (sl_generate_community(&options, data) != SL_OK)
        fail_msg("%s", sl_error_message());
}

/* Every degree's coefficient against the mean of its vertices: exact where that is promised. */
static void assert_coefficients(const struct sl_csr *a, double *worst)
{
    struct sl_clustering c;
    double *local = count_triangles(a), sum = 0.0, vertices = 0.0;
    assert_int_equal(sl_clustering_compute(a, 5, 2, &c), SL_OK);
    assert_int_equal(c.first[0], 0);
    assert_int_equal(c.first[c.max_degree + 1], a->rows);
    for (int64_t d = 0; d <= c.max_degree; d++) {
        double mean = 0.0;
        const double count = (double)(c.first[d + 1] - c.first[d]);
        for (int64_t k = c.first[d]; k < c.first[d + 1]; k++) {
            assert_int_equal(degree_of(a, c.vertices[k]), d);
            mean += local[c.vertices[k]] / count;
        }
        const double error = fabs(c.coefficient[d] - mean);
        assert_true(error < (count * (double)(d * (d - 1)) / 2.0 <= 2048 ? 1e-9 : 0.045));
        *worst = error > *worst ? error : *worst;
        sum += d > 1 ? count * mean : 0.0;
        vertices += d > 1 ? count : 0.0;
    }
    assert_near(sl_clustering_mean(&c), sum / vertices, 0.01);
    free(local);
    sl_clustering_free(&c);
}

static void test_coefficients(void **state)
{
    (void)state;
    const struct {
        int64_t vertices;
        double degree;
        bool sampled;
    } graphs[] = {{60, 3, false}, {400, 5, false}, {3000, 20, true}};
    for (int k = 0; k < 3; k++) {
        struct sl_dataset data;
        double worst = 0.0;
        community(graphs[k].vertices, graphs[k].degree, &data);
        assert_coefficients(&data.adjacency, &worst);
        assert_int_equal(worst > 1e-9, graphs[k].sampled);
        sl_dataset_close(&data);
    }
}

/* Samples look at all pairs: 3000 stars of four rays, the first two of which are joined. */
static void test_samples(void **state)
{
    (void)state;
    static const int edges[][2] = {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 2}};
    struct sl_triples triples = {0};
    struct sl_block *blocks = NULL;
    struct sl_csr graph;
    struct sl_clustering c;
    int64_t merged = 0;
    for (int64_t v = 0; v < 15000; v += 5)
        for (int e = 0; e < 5; e++) {
            assert_int_equal(sl_triples_add(&triples, v + edges[e][0], v + edges[e][1], 1), SL_OK);
            assert_int_equal(sl_triples_add(&triples, v + edges[e][1], v + edges[e][0], 1), SL_OK);
        }
    assert_int_equal(sl_csr_build(&triples, 15000, 15000, &blocks, &graph, &merged), SL_OK);
    assert_int_equal(sl_clustering_compute(&graph, 5, 2, &c), SL_OK);
    assert_int_equal(c.max_degree, 4);
    assert_near(c.coefficient[2], 1.0, 0.0);
    assert_near(c.coefficient[4], 1.0 / 6.0, 0.035);
    sl_clustering_free(&c);
    sl_triples_free(&triples);
    sl_block_free_all(&blocks);
}

static void test_threads_change_no_coefficient(void **state)
{
    (void)state;
    struct sl_dataset data;
    struct sl_clustering one, many;
    community(3000, 20, &data);
    assert_int_equal(sl_clustering_compute(&data.adjacency, 5, 1, &one), SL_OK);
    assert_int_equal(sl_clustering_compute(&data.adjacency, 5, 4, &many), SL_OK);
    assert_memory_equal(one.coefficient, many.coefficient,
                        (size_t)(one.max_degree + 1) * sizeof *one.coefficient);
    sl_clustering_free(&many);
    assert_int_equal(sl_clustering_compute(&data.adjacency, 6, 4, &many), SL_OK);
    assert_memory_not_equal(one.coefficient, many.coefficient,
                            (size_t)(one.max_degree + 1) * sizeof *one.coefficient);
    sl_clustering_free(&many);
    sl_clustering_free(&one);
    sl_dataset_close(&data);
}

/* A triangle with a tail: the pairs are one of one, one of three, and none of one. */
static void test_statistics(void **state)
{
    const struct {
        const char *text;
        double clustering;
    } graphs[] = {
        {"0 1\n1 0\n1 2\n2 1\n0 2\n2 0\n2 3\n3 2\n3 4\n4 3\n", (1.0 + 1.0 + 1.0 / 3.0 + 0.0) / 4},
        {"0 1\n1 0\n0 3\n3 0\n2 3\n3 2\n", 0.0}, /* 1 is not joined to 3, the next row is */
        {"0 1\n1 0\n", NAN},
        {"0 1\n1 2\n0 2\n", NAN},
        {"0 1\n1 0\n1 2\n2 1\n0 2\n2 0\n2 2\n", NAN},
    };
    for (size_t k = 0; k < sizeof graphs / sizeof *graphs; k++) {
        struct sl_dataset data;
        struct sl_graph_statistics s;
        open_ok(files_text(*state, "graph.txt", graphs[k].text), &data);
        assert_int_equal(sl_graph_statistics_compute(&data, &s), SL_OK);
        if (isnan(graphs[k].clustering))
            assert_true(isnan(s.clustering));
        else
            assert_near(s.clustering, graphs[k].clustering, 1e-9);
        sl_graph_statistics_free(&s);
        sl_dataset_close(&data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coefficients),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_threads_change_no_coefficient),
        cmocka_unit_test(test_statistics),
    };
    sl_log_enable(false);
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
