/* Dense features of which few are not 0 become CSR, entry by entry, in whatever way they are
 * stored. */
#include "data_files.h"

#include "core/log.h"
#include "data/aggregated.h"
#include "data/columns.h"
#include "data/feature_form.h"
#include "data/part.h"
#include "data/select.h"

enum { N = 60, F = 40 };

/* Entries of row v: 3 or 4 of 40, two of which are no whole numbers or below what float16 holds. */
static float item(int64_t v, int64_t j)
{
    return (v * 7 + j * 3) % 11 ? 0.0f : j % 5 == 0 ? 1.5f : j % 7 == 0 ? 1e-30f : (float)(v + j);
}

/* A ring of N vertices. Arrays are static: a dataset of another form has other arrays. */
static struct sl_dataset make_ring(const float *features)
{
    static int64_t indptr[N + 1];
    static int32_t indices[2 * N], labels[N];
    static int64_t ids[N];
    static char name[] = "ring";
    for (int v = 0; v < N; v++) {
        const int a = (v + N - 1) % N, b = (v + 1) % N;
        indptr[v + 1] = 2 * (v + 1);
        indices[2 * v] = a < b ? a : b;
        indices[2 * v + 1] = a < b ? b : a;
        labels[v] = v % 2;
        ids[v] = v;
    }
    return (struct sl_dataset){
        .name = name,
        .vertices = N,
        .features = F,
        .classes = 2,
        .adjacency = {N, N, indptr, indices, NULL},
        .symmetric = true,
        .feature_form = SL_FEATURES_DENSE,
        .features_dense = features,
        .labels = labels,
        .train = {ids, 20},
        .val = {ids + 20, 20},
        .test = {ids + 40, 20},
    };
}

static void fill(float x[N * F], float (*value)(int64_t v, int64_t j))
{
    for (int64_t i = 0; i < N * F; i++)
        x[i] = value(i / F, i % F);
}

/* `meta`: the member "features"; NULL: what sl_dataset_write says. */
static const char *store(const struct files *files, const char *name, const float *x,
                         const char *meta)
{
    static char path[256];
    const struct sl_dataset data = make_ring(x);
    snprintf(path, sizeof path, "%s", files_path(files, name));
    assert_int_equal(sl_dataset_write(&data, path), SL_OK);
    char file[64], text[200];
    snprintf(file, sizeof file, "%s/meta.json", name);
    snprintf(text, sizeof text, "{\"name\": \"ring\", \"nodes\": %d%s}", N, meta ? meta : "");
    files_text(files, file, text);
    return path;
}

static void check_rows(const struct sl_csr *x, const int64_t *row)
{
    for (int64_t k = 0; k < x->rows; k++) {
        int64_t e = x->indptr[k];
        for (int64_t j = 0; j < F; j++) {
            const float wanted = item(row ? row[k] : k, j);
            if (wanted == 0.0f)
                continue;
            assert_true(e < x->indptr[k + 1]);
            assert_int_equal(x->indices[e], j);
            assert_true(x->values[e++] == wanted);
        }
        assert_int_equal(e, x->indptr[k + 1]);
    }
}

static void test_file(void **state)
{
    static float x[N * F];
    struct sl_dataset data;
    fill(x, item);
    open_ok(store(*state, "few", x, NULL), &data);
    assert_int_equal(data.feature_form, SL_FEATURES_CSR);
    assert_true(data.columns.bag_of_words);
    assert_int_equal(data.features, F);
    check_rows(&data.features_csr, NULL);

    /* Stored again, it is a CSR dataset like others. */
    char again[256];
    struct sl_dataset stored;
    snprintf(again, sizeof again, "%s", files_path(*state, "again"));
    assert_int_equal(sl_dataset_write(&data, again), SL_OK);
    open_ok(again, &stored);
    assert_true(stored.columns.bag_of_words);
    check_rows(&stored.features_csr, NULL);
    sl_dataset_close(&stored);

    /* In another order. */
    assert_int_equal(sl_dataset_reorder(&data, "random", 3), SL_OK);
    check_rows(&data.features_csr, data.original);
    sl_dataset_close(&data);
}

/* Counts of words are not negative. What the files say of words stays. */
static void test_said(void **state)
{
    static float x[N * F];
    struct sl_dataset data;
    fill(x, item);
    x[N * F - 1] = -1.0f;
    open_ok(store(*state, "negative", x, NULL), &data);
    assert_int_equal(data.feature_form, SL_FEATURES_CSR);
    assert_false(data.columns.bag_of_words);
    sl_dataset_close(&data);

    fill(x, item);
    open_ok(store(*state, "no-words", x, ", \"features\": {\"bag_of_words\": false}"), &data);
    assert_int_equal(data.feature_form, SL_FEATURES_CSR);
    assert_false(data.columns.bag_of_words);
    sl_dataset_close(&data);
}

/* Doubles in Fortran order, some of which are 0 as floats. */
static void test_fortran(void **state)
{
    static float x[N * F];
    static char file[8 * N * F + 256];
    static double columns[F][N];
    struct sl_dataset data;
    fill(x, item);
    const char *path = store(*state, "fortran", x, NULL);
    for (int64_t j = 0; j < F; j++)
        for (int64_t v = 0; v < N; v++)
            columns[j][v] = x[v * F + j] == 0.0f ? 1e-60 : (double)x[v * F + j];
    const size_t size =
        npy_bytes(file, sizeof file, "{'descr': '<f8', 'fortran_order': True, 'shape': (60, 40), }",
                  columns, sizeof columns);
    files_write(*state, "fortran/features.npy", file, size);
    open_ok(path, &data);
    assert_int_equal(data.feature_form, SL_FEATURES_CSR);
    check_rows(&data.features_csr, NULL);
    sl_dataset_close(&data);
}

/* ---- Where the line is ---- */

static int64_t kept; /* so many items are not 0 */

static float some(int64_t v, int64_t j)
{
    return v * F + j < kept ? 2.0f : 0.0f;
}

static enum sl_feature_form form_of(const struct files *files, const char *name, const float *x)
{
    struct sl_dataset data;
    open_ok(store(files, name, x, NULL), &data);
    const enum sl_feature_form form = data.feature_form;
    assert_int_equal(data.columns.bag_of_words, form == SL_FEATURES_CSR);
    if (form == SL_FEATURES_DENSE)
        assert_memory_equal(data.features_dense, x, N * F * sizeof *x);
    sl_dataset_close(&data);
    return form;
}

static void test_share(void **state)
{
    static float x[N * F];
    kept = N * F * 4 / 10;
    fill(x, some);
    assert_int_equal(form_of(*state, "at-most", x), SL_FEATURES_CSR);
    x[N * F - 1] = 1.0f;
    assert_int_equal(form_of(*state, "more", x), SL_FEATURES_DENSE);
    x[N * F - 1] = -0.0f;
    assert_int_equal(form_of(*state, "minus-0", x), SL_FEATURES_CSR);
    kept = 0;
    fill(x, some);
    assert_int_equal(form_of(*state, "none", x), SL_FEATURES_CSR);
}

static void test_nan(void **state)
{
    static float x[N * F];
    struct sl_dataset data;
    fill(x, item);
    x[17 * F + 23] = NAN;
    const char *path = store(*state, "nan", x, NULL);
    assert_int_equal(sl_dataset_open(path, &data), SL_ERR_DATA);
    if (!strstr(sl_error_message(), "nan/features.npy: row 17, column 23 is nan"))
        fail_msg("%s", sl_error_message());
}

/* A sample of many features has other rows than those that are full. */
SL_TEST(test_sample)
{
    enum { ROWS = 40000, WIDTH = 256 };
    float *x = calloc((size_t)ROWS * WIDTH, sizeof *x);
    struct sl_source source = {.path = (char[]){"large"},
                               .vertices = ROWS,
                               .features = WIDTH,
                               .feature_form = SL_FEATURES_DENSE};
    struct sl_runtime alone = {.ranks = 1};
    assert_non_null(x);
    source.features_dense = sl_npy_view("x", SL_NPY_FLOAT32, 2, ROWS, WIDTH, x);
    for (int64_t v = 0; v < ROWS; v++)
        for (int64_t j = 0; v % 2 && j < WIDTH; j++)
            x[v * WIDTH + j] = 1.0f;
    assert_int_equal(sl_features_settle(&alone, &source), 0);
    assert_int_equal(source.feature_form, SL_FEATURES_DENSE);
    for (int64_t v = 0; v < ROWS; v++)
        for (int64_t j = 0; v % 8 != 1 && j < WIDTH; j++)
            x[v * WIDTH + j] = 0.0f;
    assert_int_equal(sl_features_settle(&alone, &source), 0);
    assert_int_equal(source.feature_form, SL_FEATURES_CSR);
    assert_int_equal(source.features_csr.indices.count, (int64_t)ROWS / 8 * WIDTH);
    sl_block_free_all(&source.blocks);
    free(x);
}

/* ---- Columns ---- */

/* Numbers of about 50,000 and 40, one column of a constant, and columns of one 1 in ten. */
static float cell(int64_t v, int64_t j)
{
    return j == 0   ? 50000.0f + (float)(v * 37 % 101) * 100.0f
           : j == 1 ? 40.0f + (float)(v * 11 % 17)
           : j == 2 ? 7.0f
                    : (v + j) % 10 == 0;
}

static float shift_cell(int64_t v, int64_t j)
{
    return j == 0 ? 1.0f + (float)(v % 5) : j == 1 ? 9.0f : j == 2 ? 2.0f : (v + j) % 10 == 0;
}

/* Columns of scales far apart, of which the fullest has a 0 in every third row. */
static float half_cell(int64_t v, int64_t j)
{
    return j == 0 ? (v % 3 ? 50000.0f : 0.0f) : (float)((v + j) % 10 == 0);
}

/* A table with columns that are mostly 0 is no bag of words, unless the files say so. */
SL_TEST(test_table)
{
    static float x[N * F];
    struct sl_source source;
    struct sl_dataset data = make_ring(x);
    fill(x, cell);
    assert_int_equal(sl_source_of(&data, &source), 0);
    assert_int_equal(source.feature_form, SL_FEATURES_DENSE);
    assert_true(sl_columns_are_uneven(&source.change.scales));
    assert_true(source.change.scales.half_full);
    assert_int_equal(source.change.scales.most, 0);
    assert_true(source.change.scales.scale[0] == 1.0 && source.change.scales.least > 2);
    sl_source_close(&source);
    data.columns.bag_of_words = true;
    assert_int_equal(sl_source_of(&data, &source), 0);
    assert_int_equal(source.feature_form, SL_FEATURES_CSR);
    sl_source_close(&source);
    data.columns.bag_of_words = false;
    fill(x, half_cell);
    assert_int_equal(sl_source_of(&data, &source), 0);
    assert_int_equal(source.feature_form, SL_FEATURES_DENSE);
    assert_false(source.columns.bag_of_words);
    sl_source_close(&source);
    fill(x, shift_cell); /* scales within ten of each other: words */
    assert_int_equal(sl_source_of(&data, &source), 0);
    assert_false(sl_columns_are_uneven(&source.change.scales));
    assert_int_equal(source.feature_form, SL_FEATURES_CSR);
    assert_true(source.columns.bag_of_words);
    sl_source_close(&source);
    data.columns.table = true; /* unless they are columns of a table */
    assert_int_equal(sl_source_of(&data, &source), 0);
    assert_int_equal(source.feature_form, SL_FEATURES_DENSE);
    assert_false(source.columns.bag_of_words);
    sl_source_close(&source);
}

static void expect_moments(const struct sl_source *source, const float *x, const int64_t *row,
                           int64_t rows)
{
    for (int64_t j = 0; j < F; j++) {
        double mean = 0.0, variance = 0.0;
        for (int64_t k = 0; k < rows; k++)
            mean += (double)x[row[k] * F + j] / (double)rows;
        for (int64_t k = 0; k < rows; k++)
            variance += pow((double)x[row[k] * F + j] - mean, 2) / (double)rows;
        const double deviation = variance > 1e-18 ? sqrt(variance) : 1.0;
        assert_true(fabs(source->change.moments.mean[j] - mean) <= 1e-12 * fmax(fabs(mean), 1.0));
        assert_true(fabs(source->change.moments.deviation[j] - deviation) <= 1e-9 * deviation);
    }
}

/* Features that are stored as CSR, or read so, are standardised as dense ones are. */
SL_TEST(test_sparse_moments)
{
    static float x[N * F];
    static const int64_t some[] = {3, 59, 17, 18, 41};
    struct sl_source source;
    struct sl_part part;
    struct sl_dataset data = make_ring(x);
    struct sl_runtime alone = {.ranks = 1};
    struct sl_block *blocks = NULL;
    fill(x, shift_cell);
    data.val = data.test = (struct sl_index_set){NULL, 0};
    data.train = (struct sl_index_set){some, 5};
    assert_int_equal(sl_source_of(&data, &source), 0);
    assert_int_equal(source.feature_form, SL_FEATURES_CSR);
    assert_int_equal(sl_features_read_sparse(&source, 0, N, &blocks, &data.features_csr), 0);
    for (int stored = 0; stored < 2; stored++) {
        assert_int_equal(sl_columns_standardize(&alone, &source), 0);
        expect_moments(&source, x, some, 5);
        assert_int_equal(sl_source_read(&alone, &source, 0, N, &part), 0);
        assert_int_equal(part.data.feature_form, SL_FEATURES_DENSE);
        assert_memory_equal(part.data.features_dense, x, sizeof x);
        sl_part_close(&part);
        sl_source_close(&source);
        data.feature_form = SL_FEATURES_CSR;
        data.features_dense = NULL;
        assert_int_equal(sl_source_of(&data, &source), 0);
    }
    sl_source_close(&source);
    sl_block_free_all(&blocks);
}

/* Over the training vertices: a list, a mask, or those that a rule draws. */
SL_TEST(test_moments)
{
    static float x[N * F];
    static const int64_t some[] = {3, 59, 17, 18, 41};
    static uint8_t mask[N];
    struct sl_source source;
    struct sl_runtime alone = {.ranks = 1};
    struct sl_dataset data = make_ring(x);
    fill(x, cell);
    data.train = (struct sl_index_set){some, 5};
    assert_int_equal(sl_source_of(&data, &source), 0);
    assert_int_equal(sl_columns_standardize(&alone, &source), 0);
    expect_moments(&source, x, some, 5);
    assert_float_equal(sl_columns_value(&source.change.moments, 2, 7.0f), 0.0f, 0.0f);
    assert_float_equal(sl_columns_value(&(struct sl_moments){NULL, NULL}, 2, 7.0f), 7.0f, 0.0f);
    for (int k = 0; k < 5; k++)
        mask[some[k]] = 1;
    source.splits.split[SL_SPLIT_TRAIN] = sl_npy_view("mask", SL_NPY_INT32, 1, N, 0, mask);
    source.splits.split[SL_SPLIT_TRAIN].kind = 'b';
    source.splits.split[SL_SPLIT_TRAIN].item_bytes = 1;
    source.splits.mask[SL_SPLIT_TRAIN] = true;
    source.change.moments.mean = NULL;
    assert_int_equal(sl_columns_standardize(&alone, &source), 0);
    expect_moments(&source, x, some, 5);
    assert_int_equal(sl_split_rule_parse("50/25/25", 3, &source.splits.split_rule), 0);
    assert_int_equal(sl_columns_standardize(&alone, &source), 0);
    assert_int_equal(source.splits.split[SL_SPLIT_TRAIN].count, N / 2);
    expect_moments(&source, x,
                   (const int64_t *)(const void *)source.splits.split[SL_SPLIT_TRAIN].data, N / 2);
    source.splits.split[SL_SPLIT_TRAIN].data = NULL;
    assert_int_equal(sl_columns_standardize(&alone, &source), SL_ERR_DATA);
    assert_non_null(strstr(sl_error_message(), "there is no training vertex"));
    sl_source_close(&source);
}

/* ---- Selections ---- */

static void check_selection(const struct sl_source *source, const int64_t *inner, int64_t count,
                            const int64_t *row)
{
    struct sl_runtime alone = {.ranks = 1};
    struct sl_selection selection;
    struct sl_part part;
    int64_t from[N] = {0};
    assert_int_equal(
        sl_select(source, inner, count, &(struct sl_selection_options){.hops = 1}, &selection), 0);
    const int64_t n = selection.source.vertices;
    for (int64_t k = 0; k < n; k++)
        from[k] = row ? row[selection.row[k]] : selection.row[k];
    assert_int_equal(sl_source_read(&alone, &selection.source, 0, n, &part), 0);
    check_rows(&part.data.features_csr, from);
    sl_part_close(&part);
    if (!row)
        check_selection(&selection.source, (const int64_t[]){1, 0}, 2, from);
    sl_selection_free(&selection);
}

SL_TEST(test_selection)
{
    static float x[N * F];
    static const int64_t inner[] = {50, 3, 17, 4};
    struct sl_source source;
    fill(x, item);
    const struct sl_dataset data = make_ring(x);
    assert_int_equal(sl_source_of(&data, &source), 0);
    assert_true(sl_features_lie_dense(&source));
    check_selection(&source, inner, 4, NULL);
    sl_source_close(&source);
}

/* Columns of features in rows of Â·X: of the vertex v itself, and of its two neighbours. */
static int count_columns(int64_t v)
{
    int count = 0;
    for (int64_t j = 0; j < F; j++)
        count +=
            item(v, j) != 0.0f || item((v + 1) % N, j) != 0.0f || item((v + N - 1) % N, j) != 0.0f;
    return count;
}

static void test_aggregated(void **state)
{
    static const int32_t rows[] = {59, 0, 7};
    static int64_t falling[N + 1];
    struct sl_runtime rt = {.ranks = 1};
    struct sl_source source;
    float x[N * F];
    double all = 0.0;
    fill(x, item);
    assert_int_equal(sl_source_open(&rt, store(*state, "aggregated", x, NULL), &source), SL_OK);
    assert_int_equal(source.feature_form, SL_FEATURES_CSR);
    for (int64_t v = 0; v < N; v++)
        all += count_columns(v);
    assert_true(fabs(sl_aggregated_entries(&source, NULL, 0) - all / N) < 1e-9);
    assert_true(fabs(sl_aggregated_entries(&source, rows, 3) -
                     (count_columns(59) + count_columns(0) + count_columns(7)) / 3.0) < 1e-9);
    assert_true(sl_aggregated_entries(&source, rows, 0) == 0.0);
    source.feature_form = SL_FEATURES_IDENTITY;
    assert_true(sl_aggregated_entries(&source, NULL, 0) == 3.0);
    /* Rows that the files cannot have: each has the vertex's own feature alone. */
    const struct sl_npy indptr = source.adjacency.indptr;
    for (int64_t v = 0; v <= N; v++)
        falling[v] = v == 1 ? INT64_MIN : v == 2 ? INT64_MAX : N - v;
    source.adjacency.indptr = sl_npy_view("falling", SL_NPY_INT64, 1, N + 1, 1, falling);
    assert_true(sl_aggregated_entries(&source, NULL, 0) == 1.0);
    source.adjacency.indptr = indptr;
    source.feature_form = SL_FEATURES_DENSE;
    assert_true(sl_aggregated_entries(&source, NULL, 0) == 0.0);
    sl_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_sparse_moments),
        cmocka_unit_test_setup_teardown(test_file, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_said, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_fortran, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_share, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_nan, files_setup, files_teardown),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_selection),
        cmocka_unit_test_setup_teardown(test_aggregated, files_setup, files_teardown),
    };
    sl_log_enable(false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
