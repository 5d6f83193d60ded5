/* Vertex-cuts. Every edge has a part, and both directions of an undirected edge have the same part.
 * Parts are even, vertices have few clones, and the report is true. */
#include "data_files.h"

#include "data/generate/generate_community.h"
#include "data/generate/generate_rmat.h"
#include "data/partition/edge_parts.h"
#include "data/partition/vertex_parts.h"
#include "tests/fixtures.h"

static const int counts[] = {1, 2, 3, 8, 64, 65, 1000}; /* the last one: more than edges */
enum { COUNTS = sizeof counts / sizeof *counts };

typedef int cut_function(const struct sl_csr *graph, bool symmetric, int parts, uint64_t seed,
                         int32_t *part);

static int hdrf(const struct sl_csr *graph, bool symmetric, int parts, uint64_t seed, int32_t *part)
{
    return sl_edge_parts_hdrf(graph, symmetric, parts, seed, 1.0, part);
}

static cut_function *const cuts[] = {sl_edge_parts_libra, hdrf};
enum { CUTS = sizeof cuts / sizeof *cuts };

/* ---- What holds for every graph ---- */

static int64_t entry_of(const struct sl_csr *graph, int32_t row, int32_t col)
{
    for (int64_t k = graph->indptr[row]; k < graph->indptr[row + 1]; k++)
        if (graph->indices[k] == col)
            return k;
    fail_msg("no entry (%d, %d)", row, col);
    return -1;
}

static void assert_parts(const struct sl_dataset *data, int parts, const int32_t *part)
{
    const struct sl_csr *graph = &data->adjacency;
    for (int64_t v = 0; v < graph->rows; v++)
        for (int64_t k = graph->indptr[v]; k < graph->indptr[v + 1]; k++) {
            assert_in_range(part[k], 0, parts - 1);
            if (data->symmetric)
                assert_int_equal(part[entry_of(graph, graph->indices[k], (int32_t)v)], part[k]);
        }
}

/* No part has over 3 % more than the mean, or an undirected edge more than it has to. */
static void assert_even(const struct sl_csr *graph, int parts, const int32_t *part)
{
    const int64_t nnz = graph->indptr[graph->rows];
    int64_t load[1000] = {0};
    for (int64_t k = 0; k < nnz; k++)
        load[part[k]]++;
    for (int p = 0; p < parts; p++)
        assert_true((double)load[p] <= 1.03 * (double)nnz / parts + 3.0);
}

SL_TEST(test_any_graph)
{
    for (int f = 0; f < sl_fixture_count; f++) {
        struct sl_dataset data = sl_fixture_open(&sl_fixtures[f]);
        const size_t bytes = ((size_t)entries(&data) + 1) * sizeof(int32_t);
        int32_t *part = malloc(bytes), *again = malloc(bytes);
        for (int c = 0; c < CUTS * COUNTS; c++) {
            const int parts = counts[c % COUNTS];
            cut_function *cut = cuts[c / COUNTS];
            memset(part, -1, bytes);
            memset(again, -1, bytes);
            assert_int_equal(cut(&data.adjacency, data.symmetric, parts, 3, part), SL_OK);
            assert_int_equal(part[entries(&data)], -1); /* no more than the entries */
            assert_parts(&data, parts, part);
            assert_even(&data.adjacency, parts, part);
            assert_int_equal(cut(&data.adjacency, data.symmetric, parts, 3, again), SL_OK);
            assert_memory_equal(part, again, bytes);
        }
        free(part);
        free(again);
        sl_fixture_close(&data);
    }
}

/* ---- What the methods promise ---- */

static struct sl_dataset rmat(bool symmetric)
{
    struct sl_rmat_options options = SL_RMAT_DEFAULTS;
    struct sl_dataset data;
    options.scale = 13;
    options.features = 1;
    options.symmetric = symmetric;
    assert_int_equal(sl_generate_rmat(&options, &data), SL_OK);
    return data;
}

static void assert_good(const struct sl_dataset *data, int parts, const int32_t *part)
{
    struct sl_edge_parts_report report;
    assert_int_equal(sl_edge_parts_report(&data->adjacency, data->symmetric, parts, part, &report),
                     SL_OK);
    assert_true(report.edge_balance >= 1.0 && report.edge_balance <= 1.05);
    if (report.replication > 0.75 * report.random)
        fail_msg("%d parts: %.3f clones, at random %.3f", parts, report.replication, report.random);
}

SL_TEST(test_power_law)
{
    for (int c = 0; c < 2 * CUTS; c++) {
        struct sl_dataset data = rmat(c % 2 == 0);
        const size_t bytes = (size_t)entries(&data) * sizeof(int32_t);
        int32_t *part = malloc(bytes), *other = malloc(bytes);
        for (int parts = 4; parts <= 64; parts *= 4) {
            assert_int_equal(cuts[c / 2](&data.adjacency, data.symmetric, parts, 1, part), SL_OK);
            assert_good(&data, parts, part);
            assert_int_equal(cuts[c / 2](&data.adjacency, data.symmetric, parts, 2, other), SL_OK);
            assert_memory_not_equal(part, other, bytes);
            assert_good(&data, parts, other);
        }
        free(part);
        free(other);
        sl_dataset_close(&data);
    }
}

/* With equal degrees there is less to gain, but no method has more clones than a coin. */
SL_TEST(test_like_degrees)
{
    struct sl_community_options options = SL_COMMUNITY_DEFAULTS;
    struct sl_edge_parts_report report;
    struct sl_dataset data;
    options.vertices = 3000;
    options.degree = 12;
    options.features = 1;
    assert_int_equal(sl_generate_community(&options, &data), SL_OK);
    int32_t *part = malloc((size_t)entries(&data) * sizeof *part);
    for (int c = 0; c < CUTS; c++)
        for (int parts = 2; parts <= 64; parts *= 2) {
            assert_int_equal(cuts[c](&data.adjacency, true, parts, 1, part), SL_OK);
            assert_int_equal(sl_edge_parts_report(&data.adjacency, true, parts, part, &report),
                             SL_OK);
            assert_true(report.edge_balance >= 1.0 && report.edge_balance <= 1.05);
            if (!(report.replication <= report.random))
                fail_msg("%d parts: %.3f clones, at random %.3f", parts, report.replication,
                         report.random);
        }
    free(part);
    sl_dataset_close(&data);
}

/* Parts that edges get by a coin have the clones that the formula says. */
SL_TEST(test_random_expectation)
{
    enum { PARTS = 8 };
    struct sl_edge_parts_report report;
    struct sl_dataset data = rmat(true);
    int32_t *part = malloc((size_t)entries(&data) * sizeof *part);
    const struct sl_csr *graph = &data.adjacency;
    srandom(1);
    for (int64_t v = 0; v < graph->rows; v++)
        for (int64_t k = graph->indptr[v]; k < graph->indptr[v + 1]; k++)
            part[k] = graph->indices[k] > v ? (int32_t)(random() % PARTS)
                                            : part[entry_of(graph, graph->indices[k], (int32_t)v)];
    assert_int_equal(sl_edge_parts_report(graph, true, PARTS, part, &report), SL_OK);
    assert_near(report.replication, report.random, 0.01 * report.random);
    free(part);
    sl_dataset_close(&data);
}

/* A star is split at its middle alone, and two stars of the same size are not split. */
SL_TEST(test_stars)
{
    enum { LEAVES = 100, N = 2 * LEAVES + 2 };
    int64_t indptr[N + 1] = {0};
    int32_t indices[4 * LEAVES], part[4 * LEAVES];
    int64_t k = 0;
    for (int v = 0; v < N; v++) { /* vertices 0 and 1 are the middles of the others */
        for (int u = 2; v < 2 && u < N; u++)
            if (u % 2 == v)
                indices[k++] = u;
        if (v >= 2)
            indices[k++] = v % 2;
        indptr[v + 1] = k;
    }
    struct sl_edge_parts_report report;
    const struct sl_csr graph = {N, N, indptr, indices, NULL};
    for (int c = 0; c < CUTS; c++) {
        assert_int_equal(cuts[c](&graph, true, 2, 1, part), SL_OK);
        assert_int_equal(sl_edge_parts_report(&graph, true, 2, part, &report), SL_OK);
        assert_near(report.edge_balance, 1.0, 0.05);
        assert_true(report.replication <= 1.0 + 2.0 / N + 1e-12);
    }
}

/* ---- Edges that follow vertices ---- */

/* An edge is where one of its ends is; only ends of edges between two parts have clones. */
SL_TEST(test_follow)
{
    for (int f = 0; f < sl_fixture_count; f++) {
        struct sl_dataset data = sl_fixture_open(&sl_fixtures[f]);
        const struct sl_csr *graph = &data.adjacency;
        int32_t *vertex = calloc((size_t)data.vertices + 1, sizeof *vertex);
        int32_t *part = calloc((size_t)entries(&data) + 1, sizeof *part);
        struct sl_edge_parts_report report, one;
        sl_vertex_parts_random(data.vertices, 3, 1, vertex);
        assert_int_equal(sl_edge_parts_follow(graph, data.symmetric, 3, 1, vertex, part), SL_OK);
        assert_parts(&data, 3, part);
        for (int64_t v = 0; v < graph->rows; v++)
            for (int64_t k = graph->indptr[v]; k < graph->indptr[v + 1]; k++)
                assert_true(part[k] == vertex[v] || part[k] == vertex[graph->indices[k]]);
        assert_int_equal(sl_edge_parts_report(graph, data.symmetric, 3, part, &report), SL_OK);
        assert_true(report.replication <= report.random + 0.1);
        memset(vertex, 0, (size_t)data.vertices * sizeof *vertex);
        assert_int_equal(sl_edge_parts_follow(graph, data.symmetric, 3, 1, vertex, part), SL_OK);
        assert_int_equal(sl_edge_parts_report(graph, data.symmetric, 3, part, &one), SL_OK);
        assert_near(one.replication, 1.0, 0.0);
        free(vertex);
        free(part);
        sl_fixture_close(&data);
    }
}

/* ---- The report ---- */

/* The path 0 - 1 - 2 and 3 alone: edge 0 - 1 here, the other one there. */
SL_TEST(test_report)
{
    static const int64_t indptr[] = {0, 1, 3, 4, 4};
    static const int32_t indices[] = {1, 0, 2, 1}, part[] = {0, 0, 1, 1};
    struct sl_edge_parts_report report;
    const struct sl_csr graph = {4, 4, indptr, indices, NULL};
    assert_int_equal(sl_edge_parts_report(&graph, true, 2, part, &report), SL_OK);
    assert_near(report.replication, 5.0 / 4.0, 1e-15);
    assert_near(report.random, (1.0 + 1.5 + 1.0 + 1.0) / 4.0, 1e-15);
    assert_near(report.split, 0.25, 1e-15);
    assert_near(report.edge_balance, 1.0, 1e-15);
    assert_near(report.vertex_balance, 1.0, 1e-15);
    assert_int_equal(sl_edge_parts_report(&graph, true, 3, part, &report), SL_OK);
    assert_near(report.edge_balance, 1.5, 1e-15);
    const struct sl_csr none = {0, 0, indptr, indices, NULL};
    assert_int_equal(sl_edge_parts_report(&none, true, 2, part, &report), SL_OK);
    assert_near(report.replication, 1.0, 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_graph),    cmocka_unit_test(test_power_law),
        cmocka_unit_test(test_like_degrees), cmocka_unit_test(test_random_expectation),
        cmocka_unit_test(test_stars),        cmocka_unit_test(test_follow),
        cmocka_unit_test(test_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
