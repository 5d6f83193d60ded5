/* OGB folders: a real graph against its directory of arrays, small ones against what they say, and
 * malformed ones against the sentence that refuses them. */
#include "format_files.h"

/* The path 0 - 1 - 2 - 3, each edge in both directions. */
static const struct good_file good[] = {
    {"raw/num-node-list.csv.gz", "4\n"},
    {"raw/num-edge-list.csv.gz", "6\n"},
    {"raw/edge.csv.gz", "0,1\n1,0\n1,2\n2,1\n2,3\n3,2\n"},
    {"raw/node-feat.csv.gz", "1.5,-2\n0,1e-3\n0.1,3\n4,5\n"},
    {"raw/node-label.csv.gz", "0\n1\n0\n1\n"},
    {"split/time/train.csv.gz", "2\n0\n"},
    {"split/time/valid.csv.gz", "1\n"},
    {"split/time/test.csv.gz", "3\n"},
};

static const struct bad_file bad[] = {
    {"raw/num-node-list.csv.gz", NULL, "No such file"},
    {"raw/num-node-list.csv.gz", "", "line 1: '' is no size"},
    {"raw/num-node-list.csv.gz", "four\n", "line 1: 'four' is no size"},
    {"raw/num-node-list.csv.gz", "-4\n", "line 1: '-4' is no size"},
    {"raw/num-node-list.csv.gz", "2147483648\n", "line 1: '2147483648' is no size"},
    {"raw/num-node-list.csv.gz", "4\n4\n", "line 2: another number, expected one graph"},
    {"raw/num-edge-list.csv.gz", NULL, "No such file"},
    {"raw/num-edge-list.csv.gz", "99999999999999999999\n", "is no size"},
    {"raw/edge.csv.gz", NULL, "No such file"},
    {"raw/edge.csv.gz", "", "has 0 edges, expected 6"},
    {"raw/edge.csv.gz", "0,1\n1,0\n1,2\n2,1\n2,3\n", "has 5 edges, expected 6"},
    {"raw/edge.csv.gz", "0,1\n1,4\n", "line 2: edge 1 -> 4, expected vertices 0 to 3"},
    {"raw/edge.csv.gz", "0,1\n-1,2\n", "line 2: edge -1 -> 2"},
    {"raw/edge.csv.gz", "source,target\n0,1\n", "line 1: 'source,target' is no edge"},
    {"raw/edge.csv.gz", "0,1\n1 2\n", "line 2: '1 2' is no edge"},
    {"raw/edge.csv.gz", "0,1\n1,2,3\n", "line 2: '1,2,3' is no edge"},
    {"raw/edge.csv.gz", "0,1\n1,2.5\n", "line 2: '1,2.5' is no edge"},
    {"raw/edge.csv.gz", "0,1\n1,99999999999999999999\n", "line 2"},
    {"raw/node-feat.csv.gz", "", "ends after 0 lines, expected 4"},
    {"raw/node-feat.csv.gz", "1,2\n3,4\n5,6\n", "ends after 3 lines, expected 4"},
    {"raw/node-feat.csv.gz", "1\n2\n3\n4\n5\n", "line 5: more lines than the 4 vertices"},
    {"raw/node-feat.csv.gz", "1,2\n3\n5,6\n7,8\n", "line 2 has fewer columns, expected 2"},
    {"raw/node-feat.csv.gz", "1,2\n3,4,5\n6,7\n", "line 2 has more columns, expected 2"},
    {"raw/node-feat.csv.gz", "1,2\n3,nan\n5,6\n7,8\n", "line 2, column 2: 'nan' is no finite"},
    {"raw/node-feat.csv.gz", "1,2\n3,1e39\n5,6\n7,8\n", "line 2, column 2: '1e39' is no finite"},
    {"raw/node-feat.csv.gz", "1,2\nx,4\n5,6\n7,8\n", "line 2, column 1: 'x' is no finite"},
    {"raw/node-feat.csv.gz", "1,2\n3,\n5,6\n7,8\n", "line 2, column 2: '' is no finite"},
    {"raw/node-feat.csv.gz", "1,2\n3,4 5\n5,6\n7,8\n", "line 2, column 2: '4 5' is no finite"},
    {"raw/node-label.csv.gz", "0\n1\n", "ends after 2 lines, expected 4"},
    {"raw/node-label.csv.gz", "0\none\n0\n1\n", "line 2, column 1: 'one' is no number"},
    {"raw/node-label.csv.gz", "0\n1\ninf\n1\n", "line 3, column 1: 'inf' is no number"},
    {"raw/node-label.csv.gz", "0,1\n1,0\n2,0\n", "ends after 3 lines"},
    {"split/time/train.csv.gz", "4\n", "line 1: is vertex 4, expected 0 to 3"},
    {"split/time/train.csv.gz", "-1\n", "line 1: is vertex -1, expected 0 to 3"},
    {"split/time/train.csv.gz", "0\n2\n0\n", "line 3: vertex 0 is there twice"},
    {"split/time/train.csv.gz", "idx\n0\n", "line 1: 'idx' is no vertex"},
    {"split/time/train.csv.gz", "0 1\n", "line 1: '0' is no vertex"},
    {"split/time/valid.csv.gz", "0\n", "line 1: vertex 0 is in "},
    {"split/time/valid.csv.gz", NULL, "No such file"},
    {"raw/node-label.csv.gz", "nan\n1\n\n-1\n0\n", NULL},
    {"raw/node-label.csv.gz", "0,1\n1,nan\n0,0\n1,1\n", NULL},
    {"raw/node-label.csv.gz", NULL, NULL},
    {"raw/node-feat.csv.gz", NULL, NULL},
    {"split/time/test.csv.gz", "", NULL},
};

static const char *make(const struct files *files, const char *name)
{
    return format_folder(files, name, good, COUNT(good));
}

static void test_malformed(void **state)
{
    format_malformed(*state, "ogb", make, bad, COUNT(bad));
}

static void test_truncated(void **state)
{
    static const char *const cut[] = {"raw/edge.csv.gz", "raw/node-feat.csv.gz",
                                      "raw/node-label.csv.gz", "raw/num-node-list.csv.gz"};
    const struct files *files = *state;
    for (size_t k = 0; k < COUNT(cut); k++) {
        char name[16];
        snprintf(name, sizeof name, "cut%zu", k);
        format_truncated(format_folder(files, name, good, COUNT(good)), cut[k], "");
    }
}

/* A size of 2^31 - 1 vertices that nothing but a number says. */
static void test_huge(void **state)
{
    const struct files *files = *state;
    const char *folder = format_folder(files, "huge", good, 3);
    format_file(folder, "raw/num-node-list.csv.gz", "2147483647\n");
    format_refused(folder, "raw/num-node-list.csv", "2147483647 vertices with 6 edges");
    format_file(folder, "raw/node-feat.csv", "1,2,3,4\n");
    format_refused(folder, "raw/node-feat.csv", "ends after 1 line, expected 2147483647");
}

static void test_small(void **state)
{
    const struct files *files = *state;
    static const float features[] = {1.5f, -2.0f, 0.0f, 1e-3f, 0.1f, 3.0f, 4.0f, 5.0f};
    static const int32_t indices[] = {1, 0, 2, 1, 3, 2}, labels[] = {0, 1, 0, 1};
    struct sl_dataset data;
    open_ok(format_folder(files, "small", good, COUNT(good)), &data);
    assert_string_equal(data.name, "small");
    assert_int_equal(data.vertices, 4);
    assert_true(data.symmetric);
    assert_memory_equal(data.adjacency.indices, indices, sizeof indices);
    assert_memory_equal(data.features_dense, features, sizeof features);
    assert_memory_equal(data.labels, labels, sizeof labels);
    assert_int_equal(data.train.count, 2);
    assert_int_equal(data.train.ids[0], 0);
    assert_int_equal(data.train.ids[1], 2);
    assert_int_equal(data.val.ids[0], 1);
    assert_int_equal(data.test.ids[0], 3);
    assert_round_trip(files, &data);
    sl_dataset_close(&data);
}

/* Several labels with one unknown; edges one way, a loop, and an edge twice. */
static void test_forms(void **state)
{
    const struct files *files = *state;
    struct sl_dataset data;
    const char *folder = format_folder(files, "ogbn_products", good, COUNT(good));
    format_file(folder, "raw/edge.csv.gz", "1,0\n1,2\n3,3\n1,2\n");
    format_file(folder, "raw/num-edge-list.csv.gz", "4\n");
    format_file(folder, "raw/node-label.csv.gz", "0,1\n1,nan\n0,0\n1,1\n");
    open_ok(folder, &data);
    assert_true(data.symmetric); /* as OGB's list of datasets says */
    assert_int_equal(entries(&data), 5);
    assert_int_equal(data.merged_edges, 2);
    assert_int_equal(data.classes, 2);
    assert_true(isnan(data.multilabels[3]));
    assert_true(data.multilabels[1] == 1.0f);
    sl_dataset_close(&data);
    char other[512];
    snprintf(other, sizeof other, "%s-arxiv", folder);
    assert_int_equal(rename(folder, other), 0);
    open_ok(other, &data);
    assert_false(data.symmetric);
    assert_int_equal(entries(&data), 3);
    sl_dataset_close(&data);
    const struct sl_read_options both = {.symmetrize = true};
    assert_int_equal(sl_dataset_open_with(other, &both, &data), SL_OK);
    assert_true(data.symmetric);
    assert_int_equal(entries(&data), 5);
    sl_dataset_close(&data);
    format_file(other, "split/random/train.csv.gz", "3\n");
    format_file(other, "split/random/valid.csv.gz", "");
    format_file(other, "split/random/test.csv.gz", "");
    open_ok(other, &data); /* the first scheme by name */
    assert_int_equal(data.train.count, 1);
    assert_int_equal(data.train.ids[0], 3);
    sl_dataset_close(&data);
}

SL_TEST(test_cora)
{
    struct sl_dataset data, wanted;
    const struct sl_read_options both = {.symmetrize = true};
    const char *path = format_shared("original/converted_ogb_cora");
    if (sl_dataset_open_with(path, &both, &data) != SL_OK)
        fail_msg("%s", sl_error_message());
    open_ok(format_shared("cora"), &wanted);
    format_same_graph(&data, &wanted);
    format_same_features(&data, &wanted);
    format_same_labels(&data, &wanted);
    format_same_splits(&data, &wanted);
    sl_dataset_close(&data);
    sl_dataset_close(&wanted);
}

int main(void)
{
    sl_log_enable(false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_small, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_forms, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_huge, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_malformed, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_truncated, files_setup, files_teardown),
        cmocka_unit_test(test_cora),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
