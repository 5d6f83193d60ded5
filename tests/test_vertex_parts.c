/* Edge-cuts: every vertex has a part, parts are even, and the report is true. */
#include "data_files.h"

#include "data/generate/generate_community.h"
#include "data/order/order.h"
#include "data/partition/vertex_parts.h"
#include "tests/fixtures.h"

static const int counts[] = {1, 2,  3,
                             8, 64, 200}; /* the last ones: more than a fixture's vertices */
enum { COUNTS = sizeof counts / sizeof *counts };

static void assert_parts(const int32_t *part, int64_t n, int parts)
{
    for (int64_t v = 0; v < n; v++)
        if (part[v] < 0 || part[v] >= parts)
            fail_msg("vertex %d of %d is in part %d of %d", (int)v, (int)n, part[v], parts);
}

/* ---- At random ---- */

SL_TEST(test_random)
{
    enum { N = 1000 };
    int32_t part[N], other[N];
    for (int c = 0; c < COUNTS; c++) {
        int64_t size[200] = {0};
        sl_vertex_parts_random(N, counts[c], 5, part);
        assert_parts(part, N, counts[c]);
        for (int v = 0; v < N; v++)
            size[part[v]]++;
        for (int p = 0; p < counts[c]; p++)
            assert_true(size[p] >= N / counts[c] && size[p] <= N / counts[c] + 1);
        sl_vertex_parts_random(N, counts[c], 5, other);
        assert_memory_equal(part, other, sizeof part);
        sl_vertex_parts_random(N, counts[c], 6, other);
        assert_true(counts[c] == 1 || memcmp(part, other, sizeof part) != 0);
    }
}

/* ---- METIS ---- */

SL_TEST(test_metis_any_graph)
{
    for (int f = 0; f < sl_fixture_count; f++) {
        struct sl_dataset data = sl_fixture_open(&sl_fixtures[f]);
        struct sl_csr graph = data.adjacency;
        struct sl_block *scratch = NULL;
        int32_t *part = calloc((size_t)data.vertices + 1, sizeof *part);
        if (!data.symmetric)
            assert_int_equal(sl_csr_symmetrize(&graph, &scratch), SL_OK);
        for (int c = 0; c < COUNTS; c++) {
            assert_int_equal(sl_vertex_parts_metis(&graph, SL_VERTICES_BY_WORK, counts[c], 1, part),
                             SL_OK);
            assert_parts(part, data.vertices, counts[c]);
        }
        free(part);
        sl_block_free_all(&scratch);
        sl_fixture_close(&data);
    }
}

/* Two rings: each vertex of the first one has 30 neighbours on both sides, of the second one 1.
 * Parts of equal entries would have 1.5 times the mean work. */
SL_TEST(test_metis_weighs_rows)
{
    enum { CLOSE = 500, FAR = 2000, N = CLOSE + FAR, REACH = 30 };
    int64_t *indptr = calloc(N + 1, sizeof *indptr), work[2] = {0};
    int32_t *indices = calloc(2 * (CLOSE * REACH + FAR), sizeof *indices), part[N];
    assert_true(indptr && indices);
    for (int v = 0; v < N; v++) {
        const bool close = v < CLOSE;
        const int first = close ? 0 : CLOSE, size = close ? CLOSE : FAR, reach = close ? REACH : 1;
        int64_t at = indptr[v];
        for (int d = -reach; d <= reach; d++)
            if (d)
                indices[at++] = first + (v - first + d + size) % size;
        indptr[v + 1] = at;
    }
    const struct sl_csr graph = {N, N, indptr, indices, NULL};
    assert_int_equal(sl_vertex_parts_metis(&graph, SL_VERTICES_BY_WORK, 2, 1, part), SL_OK);
    for (int v = 0; v < N; v++)
        work[part[v]] += indptr[v + 1] - indptr[v] + 30;
    assert_true((double)(work[0] > work[1] ? work[0] : work[1]) <
                1.1 * (double)(work[0] + work[1]) / 2.0);
    free(indptr);
    free(indices);
}

/* Weights add up to at most what METIS counts to, use most of it, and stay in proportion. */
SL_TEST(test_weights_of_large_graphs)
{
    static const struct {
        int64_t vertices, entries; /* of every vertex */
    } graphs[] = {
        {1000, 7},      {70000000, 0},   {71582789, 0}, /* 30 of each are just over 2^31 */
        {80000000, 20}, {2000000000, 0}, {300000, 7000}};
    for (size_t g = 0; g < sizeof graphs / sizeof *graphs; g++) {
        const int64_t n = graphs[g].vertices, own = graphs[g].entries + SL_VERTEX_WORK,
                      sum = n * own, weight = sl_vertex_weight(graphs[g].entries, sum, INT32_MAX);
        assert_in_range(weight, 1, own);
        assert_true(weight * n <= INT32_MAX);
        if (sum <= INT32_MAX)
            assert_int_equal(weight, own);
        else
            assert_true(weight == 1 || 3 * weight * n >= INT32_MAX);
    }
    const int64_t sum = 10 * (int64_t)INT32_MAX;
    assert_int_equal(sl_vertex_weight(0, sum, INT32_MAX), 2);
    assert_int_equal(sl_vertex_weight(1000, sum, INT32_MAX), 1030 / 11);
    assert_int_equal(sl_vertex_weight(0, 100 * sum, INT32_MAX), 1);
}

SL_TEST(test_metis_is_better)
{
    const struct sl_community_options options = {
        .vertices = 10000, .classes = 20, .degree = 12, .features = 1, .seed = 2, .homophily = 0.9};
    struct sl_dataset data;
    struct sl_vertex_parts_report metis, random;
    assert_int_equal(sl_generate_community(&options, &data), SL_OK);
    int32_t *part = calloc((size_t)data.vertices, sizeof *part);
    int32_t *again = calloc((size_t)data.vertices, sizeof *again);
    const size_t bytes = (size_t)data.vertices * sizeof *part;
    for (int parts = 2; parts <= 8; parts *= 2) {
        sl_vertex_parts_random(data.vertices, parts, 3, part);
        assert_int_equal(sl_vertex_parts_report(&data.adjacency, parts, part, &random), SL_OK);
        assert_int_equal(
            sl_vertex_parts_metis(&data.adjacency, SL_VERTICES_BY_WORK, parts, 3, part), SL_OK);
        assert_int_equal(sl_vertex_parts_report(&data.adjacency, parts, part, &metis), SL_OK);
        assert_near(random.cut, 1.0 - 1.0 / parts, 0.01);
        assert_true(metis.cut < 0.5 * random.cut);
        assert_true(metis.halo < 0.8 * random.halo);
        assert_true(metis.entry_balance >= 1.0 && metis.entry_balance < 1.05);
        assert_int_equal(
            sl_vertex_parts_metis(&data.adjacency, SL_VERTICES_BY_WORK, parts, 3, again), SL_OK);
        assert_memory_equal(part, again, bytes);
        assert_int_equal(
            sl_vertex_parts_metis(&data.adjacency, SL_VERTICES_BY_WORK, parts, 4, again), SL_OK);
        assert_memory_not_equal(part, again, bytes);
    }
    free(part);
    free(again);
    sl_dataset_close(&data);
}

/* A ring, whose vertices have four neighbours each. Two parts are halves of the ring, and so are
 * two classes. */
SL_TEST(test_metis_shares_classes)
{
    enum { N = 1000, DEGREE = 4 };
    static const int64_t cut[] = {0, N / 2, N};
    static const int step[DEGREE] = {N - 2, N - 1, 1, 2};
    int64_t indptr[N + 1] = {0};
    int32_t indices[N * DEGREE], part[N];
    for (int v = 0; v < N; v++) {
        for (int k = 0; k < DEGREE; k++)
            indices[DEGREE * v + k] = (v + step[k]) % N;
        indptr[v + 1] = DEGREE * (v + 1);
    }
    const struct sl_csr graph = {N, N, indptr, indices, NULL};
    for (int parts = 2; parts <= 4; parts++) {
        int64_t size[2][4] = {{0}};
        assert_int_equal(sl_vertex_parts_metis_classes(&graph, 2, cut, parts, 3, part), SL_OK);
        assert_parts(part, N, parts);
        for (int v = 0; v < N; v++)
            size[v >= N / 2][part[v]]++;
        for (int class = 0; class < 2; class ++)
            assert_true(sl_parts_balance(size[class], parts) < 1.1);
    }
}

/* Empty classes change nothing. */
SL_TEST(test_metis_leaves_out_empty_classes)
{
    enum { N = 600 };
    static const int64_t cut[] = {0, N}, more[] = {0, 0, 0, N, N};
    int64_t indptr[N + 1] = {0};
    int32_t indices[2 * N], part[N], same[N];
    for (int v = 0; v < N; v++) {
        indices[2 * v] = (v + N - 1) % N;
        indices[2 * v + 1] = (v + 1) % N;
        indptr[v + 1] = 2 * (v + 1);
    }
    const struct sl_csr graph = {N, N, indptr, indices, NULL};
    for (int parts = 2; parts <= 5; parts++) {
        assert_int_equal(sl_vertex_parts_metis_classes(&graph, 1, cut, parts, 3, part), SL_OK);
        assert_int_equal(sl_vertex_parts_metis_classes(&graph, 4, more, parts, 3, same), SL_OK);
        assert_memory_equal(part, same, sizeof part);
    }
}

/* ---- The report ---- */

/* 0 - 1, 0 - 2, 0 - 3, a loop at 3, and 4 alone; 0 and 1 here, the others there. */
SL_TEST(test_report)
{
    static const int64_t indptr[] = {0, 3, 4, 5, 7, 7};
    static const int32_t indices[] = {1, 2, 3, 0, 0, 0, 3}, part[] = {0, 0, 1, 1, 1};
    struct sl_vertex_parts_report report;
    const struct sl_csr graph = {5, 5, indptr, indices, NULL};
    assert_int_equal(sl_vertex_parts_report(&graph, 2, part, &report), SL_OK);
    assert_near(report.cut, 4.0 / 6.0, 1e-15);
    assert_near(report.vertex_balance, 3.0 / 2.5, 1e-15);
    assert_near(report.entry_balance, 6.0 / 5.5, 1e-15); /* of 6 (0: 4, 1: 2) and 5 (2, 2, 1) */
    assert_near(report.halo, 3.0 / 5.0, 1e-15);          /* 2 and 3 here, 0 there */
    assert_int_equal(sl_vertex_parts_report(&graph, 3, part, &report), SL_OK);
    assert_near(report.vertex_balance, 3.0 * 3.0 / 5.0, 1e-15);
    const struct sl_csr none = {0, 0, indptr, indices, NULL};
    assert_int_equal(sl_vertex_parts_report(&none, 2, part, &report), SL_OK);
    assert_near(report.cut + report.halo, 0.0, 0.0);
    assert_near(report.entry_balance, 1.0, 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_metis_any_graph),
        cmocka_unit_test(test_metis_weighs_rows),
        cmocka_unit_test(test_weights_of_large_graphs),
        cmocka_unit_test(test_metis_is_better),
        cmocka_unit_test(test_metis_shares_classes),
        cmocka_unit_test(test_metis_leaves_out_empty_classes),
        cmocka_unit_test(test_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
