/* OGB folders of several types of vertices. The arrays of a small folder are compared. Malformed
 * folders are refused, each with its sentence. */
#include "format_files.h"

/* Two authors, three papers. Author 1 writes papers 0 and 2, and paper 2 twice; a paper cites. */
static const struct good_file good[] = {
    {"raw/num-node-dict.csv.gz", "author,paper\n2,3\n"},
    {"raw/triplet-type-list.csv.gz", "author,writes,paper\npaper,cites,paper\n"},
    {"raw/relations/author___writes___paper/num-edge-list.csv.gz", "3\n"},
    {"raw/relations/author___writes___paper/edge.csv.gz", "1,2\n1,0\n1,2\n"},
    {"raw/relations/paper___cites___paper/num-edge-list.csv.gz", "2\n"},
    {"raw/relations/paper___cites___paper/edge.csv.gz", "0,2\n2,2\n"},
    {"raw/node-feat/paper/node-feat.csv.gz", "1.5,0\n0,0\n-1,2\n"},
    {"raw/node-label/paper/node-label.csv.gz", "1\nnan\n0\n"},
    {"split/time/paper/train.csv.gz", "2\n"},
    {"split/time/paper/valid.csv.gz", "0\n"},
    {"split/time/paper/test.csv.gz", ""},
};

static const char writes[] = "raw/relations/author___writes___paper/edge.csv.gz",
                  writings[] = "raw/relations/author___writes___paper/num-edge-list.csv.gz",
                  dict[] = "raw/num-node-dict.csv.gz", triplets[] = "raw/triplet-type-list.csv.gz",
                  train[] = "split/time/paper/train.csv.gz";

static const struct bad_file bad[] = {
    {dict, NULL, "No such file"},
    {dict, "", "ends early"},
    {dict, "author,paper\n", "ends early"},
    {dict, "author,paper\n2\n", "line 2: '' is no number of vertices"},
    {dict, "author,paper\n2,x\n", "line 2: 'x' is no number of vertices"},
    {dict, "author,paper\n2,0\n", "line 2: '0' is no number of vertices"},
    {dict, "author,paper\n2,2147483646\n", "line 2: '2147483646' is no number of vertices"},
    {dict, "author,paper\n2,2147483645\n", "2147483647 vertices with 5 edges"},
    {dict, "author,paper\n2,3\n4\n", "line 3: another line"},
    {dict, "author,paper\n2,3,4\n", "line 2: has more numbers than the 2 types"},
    {dict, "paper,paper\n2,3\n", "line 1: type 'paper', expected"},
    {dict, "../author,paper\n2,3\n", "line 1: type '../author', expected"},
    {triplets, "", "is empty"},
    {triplets, "author,writes\n", "line 1: expected source,name,target"},
    {triplets, "author,writes,paper,1\n", "line 1: expected source,name,target"},
    {triplets, "author,../x,paper\n", "line 1: expected source,name,target"},
    {triplets, "author,writes,book\n", "line 1: 'book' is no type"},
    {writings, "four\n", "line 1: 'four' is no size"},
    {writes, NULL, "No such file"},
    {writes, "1,2\n2,0\n1,2\n", "line 2: edge 2 -> 0, expected vertices 0 to 1"},
    {writes, "1,2\n1,3\n1,2\n", "line 2: edge 1 -> 3, expected vertices 0 to 2"},
    {writes, "1,2\n1,0\n", "has 2 edges, expected 3"},
    {"raw/node-feat/paper/node-feat.csv.gz", "1,2\n", "ends after 1 line, expected 3"},
    {train, "3\n", "line 1: '3' is no vertex, expected 0 to 2"},
    {train, "-1\n", "line 1: '-1' is no vertex"},
    {train, "x\n", "line 1: 'x' is no vertex"},
    {train, "1,2\n", "line 1: '1' is no vertex"},
    {train, "0\n", "vertex 2 is in "},
    {train, NULL, "No such file"},
    {"raw/node-label/paper/node-label.csv.gz", NULL, NULL},
    {"raw/node-feat/paper/node-feat.csv.gz", NULL, NULL},
};

static const char *make(const struct files *files, const char *name)
{
    return format_folder(files, name, good, COUNT(good));
}

static void test_malformed(void **state)
{
    format_malformed(*state, "typed", make, bad, COUNT(bad));
}

/* Errors that name another file than the wrong one. */
static void test_elsewhere(void **state)
{
    const struct files *files = *state;
    const char *folder = make(files, "labels");
    format_file(folder, "raw/node-label/author/node-label.csv.gz", "0\n1\n");
    format_refused(folder, "labels", "'author' and 'paper' have labels");
    folder = make(files, "count");
    format_file(folder, writings, "4\n");
    format_refused(folder, writes, "has 3 edges, expected 4");
    folder = make(files, "relation");
    format_file(folder, triplets, "author,reads,paper\n");
    format_refused(folder, "author___reads___paper/num-edge-list.csv", "No such file");
}

static void test_truncated(void **state)
{
    const char *const cut[] = {writes, "raw/node-feat/paper/node-feat.csv.gz", triplets, dict};
    const struct files *files = *state;
    for (size_t k = 0; k < COUNT(cut); k++) {
        char name[16];
        snprintf(name, sizeof name, "cut%zu", k);
        format_truncated(format_folder(files, name, good, COUNT(good)), cut[k], "");
    }
}

/* Authors have a column each, papers their features and a column of ones. */
static void test_small(void **state)
{
    const struct files *files = *state;
    static const int64_t indptr[] = {0, 0, 0, 1, 1, 4}, x_indptr[] = {0, 1, 2, 4, 5, 8};
    static const int32_t indices[] = {1, 1, 2, 4}, labels[] = {-1, -1, 1, -1, 0},
                         x_indices[] = {0, 1, 2, 4, 4, 2, 3, 4};
    static const float relations[] = {0.0f, 0.0f, 1.0f, 1.0f},
                       x[] = {1.0f, 1.0f, 1.5f, 1.0f, 1.0f, -1.0f, 2.0f, 1.0f};
    struct sl_dataset data;
    open_ok(format_folder(files, "small", good, COUNT(good)), &data);
    assert_int_equal(data.vertices, 5);
    assert_int_equal(data.relations, 2);
    assert_int_equal(data.merged_edges, 1);
    assert_memory_equal(data.adjacency.indptr, indptr, sizeof indptr);
    assert_memory_equal(data.adjacency.indices, indices, sizeof indices);
    assert_memory_equal(data.edge, relations, sizeof relations);
    assert_int_equal(data.features, 5);
    assert_memory_equal(data.features_csr.indptr, x_indptr, sizeof x_indptr);
    assert_memory_equal(data.features_csr.indices, x_indices, sizeof x_indices);
    assert_memory_equal(data.features_csr.values, x, sizeof x);
    assert_memory_equal(data.labels, labels, sizeof labels);
    assert_int_equal(data.train.count, 1);
    assert_int_equal(data.train.ids[0], 4);
    assert_int_equal(data.val.ids[0], 2);
    assert_int_equal(data.test.count, 0);
    sl_dataset_close(&data);
}

int main(void)
{
    sl_log_enable(false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_small, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_malformed, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_elsewhere, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_truncated, files_setup, files_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
