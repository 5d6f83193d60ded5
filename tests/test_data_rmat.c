/* R-MAT graphs. */
#include "data_files.h"

#include "core/log.h"
#include "data/generate/generate_rmat.h"

static void rmat(const struct sl_rmat_options *options, struct sl_dataset *data)
{
    if (sl_generate_rmat(options, data) != SL_OK)
        fail_msg("%s", sl_error_message());
}

/* In natural order, and with few vertices' features to make. */
static struct sl_rmat_options natural(int64_t scale, double edge_factor)
{
    struct sl_rmat_options options = SL_RMAT_DEFAULTS;
    options.scale = scale;
    options.edge_factor = edge_factor;
    options.permute = false;
    options.features = 1;
    return options;
}

/* --- Quarters --- */

enum { LEVELS = 20 };

/* Return the quarter of a quarter that has an entry: 0 … 3 from the upper left to the lower right.
 */
static int quarter(int32_t row, int32_t column, int level)
{
    const int bit = LEVELS - 1 - level;
    return (row >> bit & 1) * 2 + (column >> bit & 1);
}

/* share[i][j]: of entries in quarter i at one level and in j at another one. */
static void share_quarters(const struct sl_dataset *data, int level, int other, double share[4][4])
{
    const struct sl_csr *a = &data->adjacency;
    memset(share, 0, 16 * sizeof **share);
    for (int32_t v = 0; v < a->rows; v++)
        for (int64_t k = a->indptr[v]; k < a->indptr[v + 1]; k++)
            share[quarter(v, a->indices[k], level)][quarter(v, a->indices[k], other)] +=
                1.0 / (double)entries(data);
}

/* Quarters at two levels are independent. A symmetric graph has each draw in both directions; the
 * second direction swaps quarters 1 and 2. So few edges in so large a matrix are seldom duplicates
 * or loops: 0.2 %. */
static void assert_quarters(const struct sl_dataset *data, const double p[4], double draws)
{
    static const int levels[][2] = {{0, 1}, {1, 2}, {3, 4}, {4, 9}, {7, 11}, {13, 18}, {18, 19}};
    const double mirrored[4] = {p[0], p[2], p[1], p[3]}, *q = data->symmetric ? mirrored : p;
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        double share[4][4];
        share_quarters(data, levels[l][0], levels[l][1], share);
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) {
                const double wanted = (p[i] * p[j] + q[i] * q[j]) / 2.0;
                assert_near(share[i][j], wanted, 4.5 * sqrt(wanted / draws) + 0.001);
            }
    }
}

SL_TEST(test_quarters)
{
    const double wanted[][4] = {{0.57, 0.19, 0.19, 0.05}, {0.3, 0.4, 0.1, 0.2}};
    for (int k = 0; k < 4; k++) {
        struct sl_rmat_options options = natural(LEVELS, 0.25);
        struct sl_dataset data;
        options.a = wanted[k / 2][0];
        options.b = wanted[k / 2][1];
        options.c = wanted[k / 2][2];
        options.symmetric = k % 2;
        rmat(&options, &data);
        assert_int_equal(data.symmetric, k % 2);
        assert_near((double)entries(&data), (1 + k % 2) * 0x1p18, 1400);
        assert_quarters(&data, wanted[k / 2], 0x1p18);
        sl_dataset_close(&data);
    }
}

/* --- Graphs --- */

/* In a graph whose draws are mostly duplicates, every pair is as frequent as its probability. */
SL_TEST(test_density)
{
    enum { N = 64 };
    double wanted = 0.0, found = 0.0;
    const double p[2][2] = {{0.57, 0.19}, {0.19, 0.05}};
    for (int u = 0; u < N; u++)
        for (int v = 0; v < u; v++) {
            double pair = 2.0;
            for (int bit = 1; bit < N; bit *= 2)
                pair *= p[(u & bit) != 0][(v & bit) != 0];
            wanted -= 2.0 * expm1(16.0 * N * log1p(-pair));
        }
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct sl_rmat_options options = natural(6, 16);
        struct sl_dataset data;
        options.seed = seed;
        rmat(&options, &data);
        assert_simple(&data);
        found += (double)entries(&data) / 40.0;
        sl_dataset_close(&data);
    }
    assert_near(found, wanted, 4.5 * 2.0 * sqrt(wanted / 2.0 / 40.0));
}

static int ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t *sorted_degrees(const struct sl_dataset *data)
{
    const int64_t n = data->vertices, *indptr = data->adjacency.indptr;
    int64_t *degrees = malloc((size_t)n * sizeof *degrees);
    for (int64_t v = 0; v < n; v++)
        degrees[v] = indptr[v + 1] - indptr[v];
    qsort(degrees, (size_t)n, sizeof *degrees, ascending);
    return degrees;
}

/* The same graph with other numbers: the same degrees, but not those of the first half. */
static void test_permutation(void **state)
{
    struct sl_rmat_options options = natural(12, 16);
    struct sl_dataset plain, permuted;
    rmat(&options, &plain);
    options.permute = true;
    rmat(&options, &permuted);
    assert_simple(&plain);
    assert_simple(&permuted);
    int64_t *a = sorted_degrees(&plain), *b = sorted_degrees(&permuted);
    assert_memory_equal(a, b, 4096 * sizeof *a);
    free(a);
    free(b);
    const double all = (double)entries(&plain);
    assert_true((double)plain.adjacency.indptr[2048] > 0.7 * all);
    assert_near((double)permuted.adjacency.indptr[2048], 0.5 * all, 0.1 * all);
    assert_int_equal(plain.train.count, 4096 - 2 * 819);
    assert_int_equal(plain.val.count, 819);
    assert_int_equal(plain.test.count, 819);
    assert_string_equal(plain.name, "rmat 12");
    assert_round_trip(*state, &permuted);
    sl_dataset_close(&plain);
    sl_dataset_close(&permuted);
}

/* Classes of about equal size, in every split and by neighbours as by chance; columns of mean 0 and
 * variance 1. */
SL_TEST(test_random_vertices)
{
    enum { CLASSES = 4, FEATURES = 20 };
    struct sl_rmat_options options = natural(12, 16);
    struct sl_dataset data;
    options.classes = CLASSES;
    options.features = FEATURES;
    rmat(&options, &data);
    double count[CLASSES] = {0}, train[CLASSES] = {0}, sum[FEATURES] = {0}, squares[FEATURES] = {0};
    double same = 0.0;
    for (int64_t v = 0; v < data.vertices; v++) {
        count[data.labels[v]]++;
        for (int64_t k = data.adjacency.indptr[v]; k < data.adjacency.indptr[v + 1]; k++)
            same += data.labels[v] == data.labels[data.adjacency.indices[k]];
        for (int j = 0; j < FEATURES; j++) {
            const double x = data.features_dense[v * FEATURES + j];
            sum[j] += x / 4096.0;
            squares[j] += x * x / 4096.0;
        }
    }
    for (int64_t k = 0; k < data.train.count; k++)
        train[data.labels[data.train.ids[k]]]++;
    for (int c = 0; c < CLASSES; c++) {
        assert_near(count[c] / 4096.0, 0.25, 0.03);
        assert_near(train[c] / count[c], 0.6, 0.07);
    }
    for (int j = 0; j < FEATURES; j++) {
        assert_near(sum[j], 0.0, 0.07);
        assert_near(squares[j], 1.0, 0.1);
    }
    assert_near(same / (double)entries(&data), 0.25, 0.03);
    sl_dataset_close(&data);
}

SL_TEST(test_extremes)
{
    const struct {
        int64_t scale;
        double edge_factor, a, b, c;
        bool symmetric;
        int64_t entries;
    } cases[] = {
        {1, 0, 0.57, 0.19, 0.19, true, 0}, /* no edges */
        {1, 0.5, 0, 1, 0, true, 2},        /* one draw */
        {16, 5.0 / 65536.0, 0.25, 0.25, 0.25, false, 5},
        {5, 9, 1, 0, 0, true, 0},             /* loops only */
        {5, 9, 0, 0, 0, false, 0},            /* loops only, at the other end */
        {7, 9, 0, 1, 0, true, 2},             /* one edge, drawn again and again */
        {7, 9, 0, 0, 1, false, 1},            /* the same with a direction */
        {3, 5000, 0.25, 0.25, 0.25, true, 56} /* all that there are */
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct sl_rmat_options options = natural(cases[k].scale, cases[k].edge_factor);
        struct sl_dataset data;
        options.a = cases[k].a;
        options.b = cases[k].b;
        options.c = cases[k].c;
        options.symmetric = cases[k].symmetric;
        rmat(&options, &data);
        assert_int_equal(entries(&data), cases[k].entries);
        if (cases[k].b == 1)
            assert_int_equal(data.adjacency.indices[0], data.vertices - 1);
        if (cases[k].c == 1)
            assert_int_equal(data.adjacency.indptr[data.vertices - 1], 0);
        sl_dataset_close(&data);
    }
}

/* Several chunks of edges, and a last one that is not full. */
SL_TEST(test_threads_change_nothing)
{
    for (int directed = 0; directed < 2; directed++) {
        struct sl_rmat_options options = SL_RMAT_DEFAULTS;
        struct sl_dataset one, many;
        options.scale = 14;
        options.edge_factor = 14.3;
        options.features = 3;
        options.symmetric = !directed;
        options.threads = 1;
        rmat(&options, &one);
        for (options.threads = 2; options.threads < 9; options.threads += 3) {
            rmat(&options, &many);
            assert_same_dataset(&one, &many);
            sl_dataset_close(&many);
        }
        options.seed = 2;
        rmat(&options, &many);
        assert_memory_not_equal(one.adjacency.indices, many.adjacency.indices, 10000);
        assert_memory_not_equal(one.features_dense, many.features_dense, 10000);
        assert_memory_not_equal(one.labels, many.labels, 10000);
        assert_memory_not_equal(one.train.ids, many.train.ids, 10000);
        sl_dataset_close(&many);
        sl_dataset_close(&one);
    }
}

SL_TEST(test_refusals)
{
    const struct {
        struct sl_rmat_options options;
        const char *says;
    } refused[] = {
        {{0, 1, 0.5, 0.1, 0.1, .features = 1, .classes = 1}, "scale is 0, expected 1 to 30"},
        {{31, 1, 0.5, 0.1, 0.1, .features = 1, .classes = 1}, "scale is 31"},
        {{3, -1, 0.5, 0.1, 0.1, .features = 1, .classes = 1}, "edge factor is -1"},
        {{3, NAN, 0.5, 0.1, 0.1, .features = 1, .classes = 1}, "edge factor is nan"},
        {{3, 1, 0.5, 0.3, 0.21, .features = 1, .classes = 1}, "a, b and c are 0.5, 0.3 and 0.21"},
        {{3, 1, 0.5, -0.1, 0.1, .features = 1, .classes = 1}, "a, b and c are"},
        {{3, 1, NAN, 0.1, 0.1, .features = 1, .classes = 1}, "a, b and c are"},
        {{3, 1, 0.5, 0.1, 0.1, .features = 0, .classes = 1}, "features is 0"},
        {{3, 1, 0.5, 0.1, 0.1, .features = 1, .classes = 0}, "classes is 0"},
    };
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        struct sl_dataset data;
        assert_int_equal(sl_generate_rmat(&refused[k].options, &data), SL_ERR_USAGE);
        if (!strstr(sl_error_message(), refused[k].says))
            fail_msg("%s", sl_error_message());
        assert_null(data.blocks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quarters),    cmocka_unit_test(test_density),
        cmocka_unit_test(test_permutation), cmocka_unit_test(test_random_vertices),
        cmocka_unit_test(test_extremes),    cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_refusals),
    };
    sl_log_enable(false);
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
