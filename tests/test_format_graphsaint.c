/* GraphSAINT folders: a real graph against its directory of arrays, small ones against what they
 * say, and malformed ones against the sentence that refuses them. */
#include "format_files.h"

#include <zip.h>

static const struct good_file good[] = {
    {"class_map.json", "{\"0\": 1, \"1\": 0, \"3\": 1, \"2\": -1}\n"},
    {"role.json", "{\"tr\": [2, 0], \"va\": [1], \"te\": []}"},
};

static const struct bad_file bad[] = {
    {"class_map.json", NULL, "No such file"},
    {"class_map.json", "", "is empty"},
    {"class_map.json", "\n", "line 2: is no JSON after member 0 \"\", expected {, not the end"},
    {"class_map.json", "[1, 0]", "line 1: is no JSON after member 0 \"\", expected {"},
    {"class_map.json", "{}", "has labels of 0 vertices, expected 4"},
    {"class_map.json", "{\"0\": 1, \"1\": 0}", "has labels of 2 vertices, expected 4"},
    {"class_map.json", "{\"0\": 1, \"1\": 0,\n\"2\": tru}", "line 2: is no JSON after member 2"},
    {"class_map.json", "{\"0\": 1,\n\n \"1\" 0}", "line 3: is no JSON after member 1 \"1\""},
    {"class_map.json", "{\"0\": 1 \"1\": 0}", "expected a comma or }"},
    {"class_map.json", "{\"0\": 1, 1: 0}", "member 2 has no name, expected a string"},
    {"class_map.json", "{\"0\": 1, \"1\": 0, \"3\": 1, \"2\": 0", "expected a comma or }, not the"},
    {"class_map.json", "{\"0\": 1, \"1\": 0, \"3\": 1, \"2\": 0} x", "something after the JSON"},
    {"class_map.json", "{\"0\": 1, \"4\": 0}", "member 2: '4' is no vertex, expected 0 to 3"},
    {"class_map.json", "{\"0\": 1, \"-1\": 0}", "member 2: '-1' is no vertex"},
    {"class_map.json", "{\"0\": 1, \"b\": 0}", "member 2: 'b' is no vertex"},
    {"class_map.json", "{\"0\": 1, \"0\": 0}", "member 2: vertex 0 is there twice"},
    {"class_map.json", "{\"0\": 1, \"1\": 0.5}", "member 2: label of vertex 1 is no class"},
    {"class_map.json", "{\"0\": 1, \"1\": -2}", "member 2: label of vertex 1 is no class"},
    {"class_map.json", "{\"0\": 1, \"1\": 4294967296}", "member 2: label of vertex 1 is no class"},
    {"class_map.json", "{\"0\": 1, \"1\": 99999999999999999999}", "is no JSON after member 1"},
    {"class_map.json", "{\"0\": 1, \"1\": NaN}", "is no JSON after member 1"},
    {"class_map.json", "{\"0\": 1, \"1\": [0, 1]}", "label of vertex 1 is no class"},
    {"class_map.json", "{\"0\": []}", "member 1 has 0 labels"},
    {"class_map.json", "{\"0\": [1, 0], \"1\": [0]}", "vertex 1 has 1 labels, expected 2"},
    {"class_map.json", "{\"0\": [1, 0], \"1\": 1}", "vertex 1 has 0 labels, expected 2"},
    {"class_map.json", "{\"0\": [1, 0], \"1\": [0, 2]}", "label 1 of vertex 1 is neither 0 nor 1"},
    {"class_map.json", "{\"0\": [1, 0], \"1\": [0, null]}", "label 1 of vertex 1 is neither"},
    {"role.json", NULL, "No such file"},
    {"role.json", "", "is empty"},
    {"role.json", "{\"tr\": [0], \"va\": [1]}", "has no member \"te\""},
    {"role.json", "{\"tr\": [0], \"va\": [1], \"te\": []", "expected a comma or }, not the end"},
    {"role.json", "{\"tr\": [0], \"val\": [1], \"te\": []}", "member \"val\", expected tr, va"},
    {"role.json", "{\"tr\": [0], \"va\": 1, \"te\": []}", "\"va\" is no list"},
    {"role.json", "{\"tr\": [0], \"va\": [4], \"te\": []}",
     "\"va\": item 1: is vertex 4, expected"},
    {"role.json", "{\"tr\": [0], \"va\": [-3], \"te\": []}", "\"va\": item 1: is vertex -3"},
    {"role.json", "{\"tr\": [0], \"va\": [1.5], \"te\": []}", "\"va\": item 1: is vertex -1"},
    {"role.json", "{\"tr\": [0, 0], \"va\": [], \"te\": []}", "item 2: vertex 0 is there twice"},
    {"role.json", "{\"tr\": [0], \"va\": [1, 0], \"te\": []}", "item 2: vertex 0 is in "},
    {"role.json", "{\"tr\": [0], \"tr\": [1], \"te\": []}", "\"tr\" is there twice"},
    {"feats.npy", NULL, "No such file"},
    {"feats.npy", "", "is empty"},
    {"feats.npy", "1,2\n", "bad magic"},
    {"adj_full.npz", NULL, "No such file"},
    {"adj_full.npz", "", "is no .npz archive"},
    {"adj_full.npz", "0 1\n", "is no .npz archive"},
    {"class_map.json", " {\"0\":[1,0],\"1\":[0,1.0],\"3\":[0,0],\"2\":[1,1]}\n\n", NULL},
    {"role.json", "{\"te\": [3], \"va\": [], \"tr\": []}\n", NULL},
};

static void add_member(zip_t *zip, const char *name, const char *header, const void *items,
                       size_t size)
{
    char *bytes = malloc(512);
    const size_t total = npy_bytes(bytes, 512, header, items, size);
    const zip_int64_t index =
        zip_file_add(zip, name, zip_source_buffer(zip, bytes, total, 1), ZIP_FL_OVERWRITE);
    assert_true(index >= 0);
}

/* The path 0 - 1 - 2 - 3 as SciPy saves it, with float64 features. */
static const char *make(const struct files *files, const char *name)
{
    static const int32_t indptr[] = {0, 1, 3, 5, 6}, indices[] = {1, 0, 2, 1, 3, 2};
    static const char ones[] = {1, 1, 1, 1, 1, 1};
    static const int64_t shape[] = {4, 4}, features_shape[] = {4, 2};
    static const double features[] = {1.5, -2, 0, 1e-3, 0.1, 3, 4, 5};
    const char *folder = format_folder(files, name, good, COUNT(good));
    char path[512];
    snprintf(path, sizeof path, "%s/feats.npy", folder);
    assert_int_equal(sl_npy_write(path, "<f8", 8, 2, features_shape, features), SL_OK);
    snprintf(path, sizeof path, "%s/adj_full.npz", folder);
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
    assert_non_null(zip);
#define HEADER(type, n) "{'descr': '" type "', 'fortran_order': False, 'shape': (" n ",), }"
    add_member(zip, "indptr.npy", HEADER("<i4", "5"), indptr, sizeof indptr);
    add_member(zip, "indices.npy", HEADER("<i4", "6"), indices, sizeof indices);
    add_member(zip, "data.npy", HEADER("|b1", "6"), ones, sizeof ones);
    add_member(zip, "shape.npy", HEADER("<i8", "2"), shape, sizeof shape);
    add_member(zip, "format.npy", "{'descr': '|S3', 'fortran_order': False, 'shape': (), }", "csr",
               3);
    assert_int_equal(zip_close(zip), 0);
    return folder;
}

static void test_malformed(void **state)
{
    format_malformed(*state, "saint", make, bad, COUNT(bad));
}

static void test_bad_arrays(void **state)
{
    static const double features[] = {1, 2, 3, NAN, 5, 6, 7, 8};
    static const int64_t short_shape[] = {3, 2}, shape[] = {4, 2};
    char path[512];
    const char *folder = make(*state, "short");
    snprintf(path, sizeof path, "%s/feats.npy", folder);
    assert_int_equal(sl_npy_write(path, "<f8", 8, 2, short_shape, features), SL_OK);
    format_refused(folder, "feats.npy", "has 3 rows, expected 4");
    assert_int_equal(sl_npy_write(path, "<f8", 8, 2, shape, features), SL_OK);
    format_refused(folder, "short: features", "row 1, column 1 is nan");
}

static void test_truncated(void **state)
{
    static const char *const cut[] = {"class_map.json", "role.json", "feats.npy", "adj_full.npz"};
    for (size_t k = 0; k < COUNT(cut); k++) {
        char name[16];
        snprintf(name, sizeof name, "cut%zu", k);
        const char *folder = make(*state, name);
        if (k == 0) /* without its newline, after which nothing is missing */
            format_file(folder, cut[k], "{\"0\": 1, \"1\": 0, \"3\": 1, \"2\": -1}");
        format_truncated(folder, cut[k], "");
    }
}

static void test_small(void **state)
{
    const struct files *files = *state;
    static const float features[] = {1.5f, -2.0f, 0.0f, 1e-3f, 0.1f, 3.0f, 4.0f, 5.0f};
    static const int32_t indices[] = {1, 0, 2, 1, 3, 2}, labels[] = {1, 0, -1, 1};
    struct sl_dataset data;
    open_ok(make(files, "small"), &data);
    assert_int_equal(data.vertices, 4);
    assert_true(data.symmetric);
    assert_null(data.adjacency.values);
    assert_memory_equal(data.adjacency.indices, indices, sizeof indices);
    assert_memory_equal(data.features_dense, features, sizeof features);
    assert_memory_equal(data.labels, labels, sizeof labels);
    assert_int_equal(data.train.count, 2);
    assert_int_equal(data.train.ids[1], 2);
    assert_int_equal(data.val.count, 1);
    assert_int_equal(data.test.count, 0);
    assert_round_trip(files, &data);
    sl_dataset_close(&data);
}

/* Several labels per vertex; white space of all kinds. */
static void test_several(void **state)
{
    static const float labels[] = {1, 0, 0, 1, 1, 1, 0, 0};
    struct sl_dataset data;
    const char *folder = make(*state, "several");
    format_file(folder, "class_map.json",
                " {\"0\":[1,0],\r\n\"1\" :[0,1.0],\t\"3\":[0, 0], \"2\":[1,1] } \n");
    open_ok(folder, &data);
    assert_int_equal(data.classes, 2);
    assert_null(data.labels);
    assert_memory_equal(data.multilabels, labels, sizeof labels);
    sl_dataset_close(&data);
}

/* The first 128 features of cora_ml; of the sparse ones, a vertex may have none. */
SL_TEST(test_cora_ml)
{
    struct sl_dataset data, wanted;
    open_ok(format_shared("original/converted_graphsaint_cora_ml"), &data);
    open_ok(format_shared("cora_ml"), &wanted);
    format_same_graph(&data, &wanted);
    format_same_labels(&data, &wanted);
    format_same_splits(&data, &wanted);
    assert_int_equal(data.features, 128);
    for (int64_t v = 0; v < data.vertices; v++)
        for (int64_t f = 0; f < 128; f++)
            assert_true(format_feature(&data, v, f) == format_feature(&wanted, v, f));
    sl_dataset_close(&data);
    sl_dataset_close(&wanted);
}

int main(void)
{
    sl_log_enable(false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_small, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_several, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_malformed, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_bad_arrays, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_truncated, files_setup, files_teardown),
        cmocka_unit_test(test_cora_ml),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
