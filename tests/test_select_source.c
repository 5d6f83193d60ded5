/* Sources that a selection is made of, and selections as sources: files, rows out of order,
 * masks, rules of splits, other orders, selections of selections, errors. */
#include "data_files.h"

#include "tests/fixtures.h"
#include "tests/select_reference.h"

static struct sl_runtime alone = {.ranks = 1};

/* Every third vertex. */
static struct sl_selection select_some(const struct sl_source *source,
                                       const struct sl_selection_options *options)
{
    struct sl_selection got;
    int64_t inner[64], count = 0;
    assert_true(source->vertices <= 64);
    for (int64_t v = 1; v < source->vertices; v += 3)
        inner[count++] = v;
    if (sl_select(source, inner, count, options, &got))
        fail_msg("%s: %s", source->path, sl_error_message());
    return got;
}

static const struct sl_selection_options usual = {.hops = 2, .keeps_last_rows = true};

static struct sl_part read_all(const struct sl_source *source)
{
    struct sl_part part;
    if (sl_source_read(&alone, source, 0, source->vertices, &part))
        fail_msg("%s: %s", source->path, sl_error_message());
    return part;
}

/* Check the features of a part, whose rows have any order. */
static void assert_features(const struct sl_dataset *own, const struct sl_dataset *whole)
{
    const struct sl_csr *x = &own->features_csr, *y = &whole->features_csr;
    for (int64_t k = 0; k < own->adjacency.rows; k++) {
        const int64_t v = own->original[k];
        if (whole->feature_form == SL_FEATURES_DENSE) {
            assert_memory_equal(own->features_dense + k * own->features,
                                whole->features_dense + v * own->features,
                                (size_t)own->features * sizeof(float));
            continue;
        }
        const int64_t count = y->indptr[v + 1] - y->indptr[v];
        assert_int_equal(x->indptr[k + 1] - x->indptr[k], count);
        assert_memory_equal(x->indices + x->indptr[k], y->indices + y->indptr[v],
                            (size_t)count * sizeof *x->indices);
        if (y->values)
            assert_memory_equal(x->values + x->indptr[k], y->values + y->indptr[v],
                                (size_t)count * sizeof *x->values);
    }
}

static const char *const kinds[] = {"undirected",        "undirected-weighted", "directed",
                                    "directed-weighted", "self-loops",          "isolated"};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- Files ---- */

static void test_files(void **state)
{
    for (int f = 0; f < KINDS; f++) {
        struct sl_dataset data = sl_fixture_open(sl_fixture_find(kinds[f]));
        const char *path = files_path(*state, kinds[f]);
        struct sl_source memory, stored;
        assert_int_equal(sl_dataset_write(&data, path), SL_OK);
        assert_int_equal(sl_source_of(&data, &memory), SL_OK);
        assert_int_equal(sl_source_open(&alone, path, &stored), SL_OK);
        struct sl_selection a = select_some(&memory, &usual), b = select_some(&stored, &usual);
        sl_assert_equal_selections(&a, &b);
        struct sl_part part = read_all(&b.source);
        assert_features(&part.data, &data);
        sl_part_close(&part);
        sl_selection_free(&a);
        sl_selection_free(&b);
        sl_source_close(&memory);
        sl_source_close(&stored);
        sl_fixture_close(&data);
    }
}

/* ---- Rows out of order ---- */

/* Rows backwards, and each third entry in two halves: the weights are exact. */
static struct sl_csr disorder(const struct sl_csr *a)
{
    const size_t nnz = (size_t)a->indptr[a->rows];
    int64_t *indptr = calloc((size_t)a->rows + 1, sizeof *indptr), at = 0;
    int32_t *indices = calloc(2 * nnz + 1, sizeof *indices);
    float *values = a->values ? calloc(2 * nnz + 1, sizeof *values) : NULL;
    for (int64_t r = 0; r < a->rows; r++) {
        for (int64_t e = a->indptr[r + 1] - 1; e >= a->indptr[r]; e--)
            for (int half = 0; half < (e % 3 == 0 ? 2 : 1); half++) {
                indices[at] = a->indices[e];
                if (values)
                    values[at] = e % 3 == 0 ? a->values[e] / 2 : a->values[e];
                at++;
            }
        indptr[r + 1] = at;
    }
    return (struct sl_csr){a->rows, a->cols, indptr, indices, values};
}

SL_TEST(test_disorder)
{
    for (int f = 0; f < KINDS; f++) {
        struct sl_dataset data = sl_fixture_open(sl_fixture_find(kinds[f])), raw = data;
        struct sl_source clean, mess;
        raw.adjacency = disorder(&data.adjacency);
        assert_int_equal(sl_source_of(&data, &clean), SL_OK);
        assert_int_equal(sl_source_of(&raw, &mess), SL_OK);
        struct sl_selection a = select_some(&clean, &usual), b = select_some(&mess, &usual);
        sl_assert_equal_selections(&a, &b);
        sl_selection_free(&a);
        sl_selection_free(&b);
        sl_source_close(&clean);
        sl_source_close(&mess);
        free((void *)raw.adjacency.indptr);
        free((void *)raw.adjacency.indices);
        free((void *)raw.adjacency.values);
        sl_fixture_close(&data);
    }
}

/* ---- Splits ---- */

static void assert_set(const struct sl_index_set *a, const struct sl_index_set *b)
{
    assert_int_equal(a->count, b->count);
    if (a->count)
        assert_memory_equal(a->ids, b->ids, (size_t)a->count * sizeof *a->ids);
}

static void assert_splits(const struct sl_source *a, const struct sl_source *b)
{
    struct sl_part x = read_all(a), y = read_all(b);
    assert_true(x.data.train.count > 0);
    assert_set(&x.data.train, &y.data.train);
    assert_set(&x.data.val, &y.data.val);
    assert_set(&x.data.test, &y.data.test);
    sl_part_close(&x);
    sl_part_close(&y);
}

SL_TEST(test_masks)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
    struct sl_source lists, masks;
    bool train[64];
    sl_fixture_mask(&data.train, data.vertices, train);
    assert_int_equal(sl_source_of(&data, &lists), SL_OK);
    assert_int_equal(sl_source_of(&data, &masks), SL_OK);
    masks.splits.mask[SL_SPLIT_TRAIN] = true;
    masks.splits.split[SL_SPLIT_TRAIN] = (struct sl_npy){.name = "train_mask",
                                                         .kind = 'b',
                                                         .item_bytes = 1,
                                                         .dims = 1,
                                                         .shape = {data.vertices},
                                                         .count = data.vertices,
                                                         .data = (const unsigned char *)train};
    struct sl_selection a = select_some(&lists, &usual), b = select_some(&masks, &usual);
    assert_splits(&a.source, &b.source);
    sl_selection_free(&a);
    sl_selection_free(&b);
    sl_source_close(&lists);
    sl_source_close(&masks);
    sl_fixture_close(&data);
}

/* Splits drawn for the whole graph stay, also in another order. */
SL_TEST(test_rule)
{
    static const char *const rules[] = {"50/20/30", "2/1/rest"};
    for (int i = 0; i < 4; i++) {
        struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
        struct sl_source drawn, settled;
        struct sl_selection selection;
        const int64_t inner = 0;
        assert_int_equal(sl_source_of(&data, &drawn), SL_OK);
        assert_int_equal(sl_split_rule_parse(rules[i / 2], 3, &drawn.splits.split_rule), SL_OK);
        if (i % 2)
            assert_int_equal(sl_source_order(&alone, &drawn, "random", 8), SL_OK);
        settled = drawn;
        settled.blocks = NULL;
        assert_int_equal(sl_select(&drawn, &inner, 1, &usual, &selection), SL_ERR_USAGE);
        sl_selection_free(&selection);
        assert_int_equal(sl_source_settle_splits(&settled), SL_OK);
        assert_false(settled.splits.split_rule.given);
        assert_splits(&drawn, &settled);
        sl_source_release(&settled);
        sl_source_close(&drawn);
        sl_fixture_close(&data);
    }
}

/* ---- Selections as sources ---- */

/* In another order, and a few rows alone, as a rank reads them. */
SL_TEST(test_reading)
{
    for (int f = 0; f < KINDS; f++) {
        struct sl_dataset data = sl_fixture_open(sl_fixture_find(kinds[f]));
        struct sl_source source;
        struct sl_part part;
        assert_int_equal(sl_source_of(&data, &source), SL_OK);
        struct sl_selection got = select_some(&source, &(struct sl_selection_options){.hops = 1});
        assert_int_equal(sl_source_read(&alone, &got.source, 3, 9, &part), SL_OK);
        assert_int_equal(part.data.original[0], got.row[3]);
        assert_features(&part.data, &data);
        sl_part_close(&part);
        assert_int_equal(sl_source_order(&alone, &got.source, "random", 2), SL_OK);
        assert_int_equal(sl_source_read(&alone, &got.source, 3, 9, &part), SL_OK);
        assert_int_equal(part.data.original[0], got.row[got.source.order.vertex[3]]);
        assert_features(&part.data, &data);
        sl_part_close(&part);
        sl_selection_free(&got);
        sl_source_close(&source);
        sl_fixture_close(&data);
    }
}

/* Rows of the files of the first source, of vertices 0, 2, … of a selection. */
static int64_t list_even(const struct sl_selection *from, int64_t *own, int64_t *row)
{
    int64_t count = 0;
    for (int64_t k = 0; k < from->hop_cut[1]; k += 2) {
        own[count] = k;
        row[count++] = from->row[k];
    }
    return count;
}

/* The inner selection is ordered as the outer one is: compare by number. */
static void assert_same_vertices(const struct sl_selection *nested, const struct sl_selection *one)
{
    const struct sl_source *x = &nested->source, *y = &one->source;
    assert_int_equal(x->vertices, y->vertices);
    assert_int_equal(x->selection.whole, y->selection.whole);
    assert_int_equal(nested->hops, one->hops);
    assert_memory_equal(nested->hop_cut, one->hop_cut,
                        ((size_t)one->hops + 2) * sizeof *one->hop_cut);
    for (int64_t k = 0; k < x->vertices; k++) {
        int64_t l = 0;
        while (l < y->vertices &&
               sl_npy_integer(&x->order.original, k) != sl_npy_integer(&y->order.original, l))
            l++;
        assert_true(l < y->vertices);
        assert_int_equal(x->selection.row_entries[k], y->selection.row_entries[l]);
        if (y->selection.row_weight)
            assert_true(x->selection.row_weight[k] == y->selection.row_weight[l]);
        const struct sl_npy *a = &x->adjacency.indptr, *b = &y->adjacency.indptr;
        assert_int_equal(sl_npy_integer(a, k + 1) - sl_npy_integer(a, k),
                         sl_npy_integer(b, l + 1) - sl_npy_integer(b, l));
    }
}

SL_TEST(test_nested)
{
    for (int f = 0; f < KINDS; f++) {
        struct sl_dataset data = sl_fixture_open(sl_fixture_find(kinds[f]));
        struct sl_source source;
        struct sl_selection nested, one;
        int64_t own[64], row[64];
        const struct sl_selection_options options = {.hops = 1};
        assert_int_equal(sl_source_of(&data, &source), SL_OK);
        struct sl_selection server = select_some(&source, &options);
        const int64_t count = list_even(&server, own, row);
        assert_int_equal(sl_select(&server.source, own, count, &options, &nested), SL_OK);
        assert_int_equal(sl_select(&source, row, count, &options, &one), SL_OK);
        assert_same_vertices(&nested, &one);
        struct sl_part part = read_all(&nested.source);
        assert_features(&part.data, &data);
        sl_part_close(&part);
        sl_selection_free(&nested);
        sl_selection_free(&one);
        sl_selection_free(&server);
        sl_source_close(&source);
        sl_fixture_close(&data);
    }
}

/* ---- Errors ---- */

static void refuse(const struct sl_source *source, int64_t inner, const char *sentence)
{
    struct sl_selection got;
    assert_int_equal(sl_select(source, &inner, 1, &usual, &got), SL_ERR_DATA);
    if (!strstr(sl_error_message(), sentence))
        fail_msg("\"%s\" does not say \"%s\"", sl_error_message(), sentence);
    sl_selection_free(&got);
}

SL_TEST(test_errors)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    struct sl_source source;
    assert_int_equal(sl_source_of(&data, &source), SL_OK);
    refuse(&source, 53, "inner vertex 0 is 53, expected 0 to 52");
    refuse(&source, -1, "inner vertex 0 is -1, expected 0 to 52");
    int32_t *column = (int32_t *)data.adjacency.indices + data.adjacency.indptr[7];
    const int32_t right = *column;
    *column = 53;
    refuse(&source, 7, "row 7 has column 53, expected 0 to 52");
    *column = right;
    float *value = (float *)data.adjacency.values + data.adjacency.indptr[7];
    const float weight = *value;
    *value = INFINITY;
    refuse(&source, 7, "is inf, expected a finite number");
    *value = weight;
    int64_t *end = (int64_t *)data.adjacency.indptr + 8;
    *end += 10000;
    refuse(&source, 7, "row 7 is ");
    *end -= 10000;
    int64_t *train = (int64_t *)data.train.ids + 2;
    const int64_t id = *train;
    *train = 99;
    refuse(&source, 7, "item 2 is vertex 99, expected 0 to 52");
    *train = id;
    sl_source_close(&source);
    sl_fixture_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_files, files_setup, files_teardown),
        cmocka_unit_test(test_disorder),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_reading),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
