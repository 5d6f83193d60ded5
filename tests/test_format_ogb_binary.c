/* OGB folders of binary arrays. A small folder against its contents, a real graph against its
 * directory of arrays, and malformed folders against the sentences that refuse them. */
#include "format_files.h"

#include <zip.h>

#include "data/formats/npy.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct array {
    const char *name, *descr;
    int dims;
    int64_t shape[3];
    const void *data;
    size_t bytes;
};

/* ---- Archives ---- */

static int version = 1; /* of the headers: from 2 on their lengths have four bytes */

static size_t make_header(char header[512], const struct array *array)
{
    const size_t length = sl_npy_header(header, 500, array->descr, array->dims, array->shape);
    if (version == 1)
        return length;
    memmove(header + 12, header + 10, length - 10);
    header[6] = (char)version;
    header[10] = header[11] = 0;
    return length + 2;
}

static void add_array(zip_t *zip, const struct array *array)
{
    char name[64];
    unsigned char *member = malloc(512 + array->bytes);
    assert_non_null(member);
    const size_t head = make_header((char *)member, array);
    memcpy(member + head, array->data, array->bytes);
    zip_source_t *source = zip_source_buffer(zip, member, head + array->bytes, 1);
    snprintf(name, sizeof name, "%s.npy", array->name);
    assert_non_null(source);
    assert_true(zip_file_add(zip, name, source, ZIP_FL_OVERWRITE) >= 0);
}

/* FOLDER/FILE with these arrays; one of them is replaced by `other` of the same name, or left out
 * where `other` has no descr. */
static void write_archive(const char *folder, const char *file, const struct array *arrays,
                          size_t count, const struct array *other)
{
    char path[1024];
    int code;
    format_file(folder, file, ""); /* its folder */
    snprintf(path, sizeof path, "%s/%s", folder, file);
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
    assert_non_null(zip);
    for (size_t k = 0; k < count; k++) {
        const bool replaced = other && strcmp(other->name, arrays[k].name) == 0;
        if (!replaced || other->descr)
            add_array(zip, replaced ? other : &arrays[k]);
    }
    assert_int_equal(zip_close(zip), 0);
}

/* ---- The path 0 - 1 - 2 - 3, each edge in both directions ---- */

static const int64_t vertices[] = {4}, edge_count[] = {6},
                     ends[] = {0, 1, 1, 2, 2, 3, 1, 0, 2, 1, 3, 2};
static const float features[] = {1.5f, -2.0f, 0.0f, 1e-3f, 0.1f, 3.0f, 4.0f, 5.0f};
static const float labels[] = {0.0f, 1.0f, NAN, 1.0f};
#define ARRAY(name, descr, dims, rows, cols, data)             \
    {                                                          \
        name, descr, dims, {rows, cols, 1}, data, sizeof(data) \
    }
static const struct array good[] = {
    ARRAY("edge_index", "<i8", 2, 2, 6, ends),
    ARRAY("node_feat", "<f4", 2, 4, 2, features),
    ARRAY("num_nodes_list", "<i8", 1, 1, 0, vertices),
    ARRAY("num_edges_list", "<i8", 1, 1, 0, edge_count),
};
static const struct array good_labels[] = {ARRAY("node_label", "<f4", 2, 4, 1, labels),
                                           ARRAY("other", "<i8", 1, 1, 0, vertices)};

static const char *make_folder(const struct files *files, const char *name,
                               const struct array *other)
{
    const char *folder = files_path(files, name);
    write_archive(folder, "raw/data.npz", good, COUNT(good), other);
    write_archive(folder, "raw/node-label.npz", good_labels, COUNT(good_labels), other);
    format_file(folder, "split/time/train.csv.gz", "3\n0\n");
    format_file(folder, "split/time/valid.csv.gz", "1\n");
    format_file(folder, "split/time/test.csv.gz", "");
    return folder;
}

static void test_small(void **state)
{
    const struct files *files = *state;
    static const int32_t indices[] = {1, 0, 2, 1, 3, 2}, classes[] = {0, 1, -1, 1};
    struct sl_dataset data;
    open_ok(make_folder(files, "small", NULL), &data);
    assert_int_equal(data.vertices, 4);
    assert_true(data.symmetric);
    assert_memory_equal(data.adjacency.indices, indices, sizeof indices);
    assert_memory_equal(data.features_dense, features, sizeof features);
    assert_memory_equal(data.labels, classes, sizeof classes);
    assert_int_equal(data.train.count, 2);
    assert_int_equal(data.train.ids[0], 0);
    assert_int_equal(data.val.ids[0], 1);
    assert_int_equal(data.test.count, 0);
    assert_round_trip(files, &data);
    sl_dataset_close(&data);
}

/* The same folder, with headers of each version. */
static void test_versions(void **state)
{
    const struct files *files = *state;
    struct sl_dataset wanted, data;
    open_ok(make_folder(files, "first", NULL), &wanted);
    for (version = 2; version < 4; version++) {
        char name[32];
        snprintf(name, sizeof name, "version-%d", version);
        open_ok(make_folder(files, name, NULL), &data);
        format_same_graph(&data, &wanted);
        format_same_labels(&data, &wanted);
        assert_memory_equal(data.features_dense, features, sizeof features);
        sl_dataset_close(&data);
    }
    const char *folder = make_folder(files, "version-4", NULL);
    version = 1;
    format_refused(folder, "data.npz", ".npy version 4 is not read; expected 1, 2 or 3");
    sl_dataset_close(&wanted);
}

/* Edges one way, a loop and an edge twice, of 32 bits; no features, no labels. */
static void test_forms(void **state)
{
    static const int32_t some[] = {1, 1, 3, 1, 0, 2, 3, 2};
    static const int64_t four[] = {4};
    const struct array others[] = {ARRAY("edge_index", "<i4", 2, 2, 4, some),
                                   ARRAY("num_edges_list", "<i8", 1, 1, 0, four),
                                   ARRAY("num_nodes_list", "<i8", 1, 1, 0, vertices)};
    const struct files *files = *state;
    const struct sl_read_options both = {.symmetrize = true};
    struct sl_dataset data;
    const char *folder = files_path(files, "forms");
    write_archive(folder, "raw/data.npz", others, COUNT(others), NULL);
    open_ok(folder, &data);
    assert_false(data.symmetric);
    assert_int_equal(entries(&data), 3);
    assert_int_equal(data.adjacency.indptr[1], 1); /* 1 -> 0 */
    assert_int_equal(data.adjacency.indptr[2], 1); /* no edge ends at 1 */
    assert_int_equal(data.merged_edges, 1);
    assert_null(data.features_dense);
    assert_null(data.labels);
    sl_dataset_close(&data);
    assert_int_equal(sl_dataset_open_with(folder, &both, &data), SL_OK);
    assert_true(data.symmetric);
    assert_int_equal(entries(&data), 5);
    sl_dataset_close(&data);
}

/* ---- Malformed folders ---- */

static const int64_t huge[] = {INT32_MAX}, more[] = {INT64_C(1) << 31}, none[] = {0},
                     two[] = {4, 4}, seven[] = {7}, minus[] = {-1},
                     outside[] = {0, 1, 1, 2, 2, 4, 1, 0, 2, 1, 3, 2},
                     below[] = {0, 1, 1, 2, 2, 3, 1, 0, 2, -1, 3, 2};
static const double fractions[] = {0, 1, 1, 2, 2, 3, 1, 0, 2, 1.5, 3, 2};
static const float unknown[] = {1.5f, NAN, 0.0f, 1e-3f, 0.1f, 3.0f, 4.0f, 5.0f};
static const float strange[] = {0.0f, 1.0f, 0.5f, INFINITY};

static const struct {
    struct array array;
    const char *file, *phrase;
} bad[] = {
    {{.name = "edge_index"}, "data.npz", "edge_index is missing"},
    {{.name = "num_nodes_list"}, "data.npz", "num_nodes_list is missing"},
    {{.name = "num_edges_list"}, "data.npz", "num_edges_list is missing"},
    {{.name = "node_label"}, "node-label.npz", "node_label is missing"},
    {ARRAY("num_nodes_list", "<i8", 1, 1, 0, none), "data.npz", "is no size of one graph"},
    {ARRAY("num_nodes_list", "<i8", 1, 1, 0, more), "data.npz", "is no size of one graph"},
    {ARRAY("num_nodes_list", "<i8", 1, 2, 0, two), "data.npz", "is no size of one graph"},
    {ARRAY("num_nodes_list", "<i8", 1, 1, 0, seven), "data.npz", "has 4 rows, expected 7"},
    {ARRAY("num_nodes_list", "<i8", 1, 1, 0, huge), "data.npz", "has 4 rows"},
    {ARRAY("num_edges_list", "<i8", 1, 1, 0, minus), "data.npz", "is no size of one graph"},
    {ARRAY("num_edges_list", "<i8", 1, 1, 0, seven), "data.npz", "is 2 x 6, expected 2 x 7"},
    {ARRAY("edge_index", "<i8", 2, 6, 2, ends), "data.npz", "is 6 x 2, expected 2 x 6"},
    {ARRAY("edge_index", "<i8", 1, 12, 0, ends), "data.npz", "has 1 dimension, expected 2"},
    {ARRAY("edge_index", "<i8", 2, 2, 6, outside), "data.npz", "column 5 is the edge 4 -> 2"},
    {ARRAY("edge_index", "<i8", 2, 2, 6, below), "data.npz", "column 3 is the edge 2 -> -1"},
    {ARRAY("edge_index", "<f8", 2, 2, 6, fractions), "data.npz", "1.5"},
    {ARRAY("edge_index", ">i8", 2, 2, 6, ends), "data.npz", "big endian"},
    {ARRAY("edge_index", "|S8", 2, 2, 6, ends), "data.npz", "edge_index"},
    {ARRAY("edge_index", "|O", 2, 2, 6, ends), "data.npz", "Python objects"},
    {ARRAY("edge_index", "<i8", 2, 2, 600, ends), "data.npz", "truncated"},
    {ARRAY("edge_index", "<i8", 2, 2, 5, ends), "data.npz", "announces only"},
    {ARRAY("node_feat", "<f4", 2, 2, 4, features), "data.npz", "node_feat"},
    {{"node_feat", "<f4", 2, {0, INT64_C(1) << 62}, features, 0}, "data.npz", "has 0 rows"},
    {ARRAY("node_feat", "<f4", 1, 8, 0, features), "data.npz", "has 1 dimension, expected 2"},
    {ARRAY("node_feat", "<f4", 2, 4, 2, unknown), "", "finite"},
    {ARRAY("node_label", "<f4", 2, 2, 2, labels), "node-label.npz", "node_label"},
    {ARRAY("node_label", "<f4", 2, 4, 1, strange), "", "labels: row 3"},
};

static void test_malformed(void **state)
{
    for (size_t k = 0; k < COUNT(bad); k++) {
        char name[16];
        snprintf(name, sizeof name, "bad%zu", k);
        format_refused(make_folder(*state, name, &bad[k].array), bad[k].file, bad[k].phrase);
    }
    printf("OGB arrays: %zu malformed folders refused\n", COUNT(bad));
}

static void test_truncated(void **state)
{
    const char *folder = make_folder(*state, "cut", NULL);
    format_truncated(folder, "raw/data.npz", "");
    write_archive(folder, "raw/data.npz", good, COUNT(good), NULL);
    format_truncated(folder, "raw/node-label.npz", "");
}

/* A number of vertices that no features, labels or edges confirm. */
static void test_huge(void **state)
{
    const struct array others[] = {ARRAY("edge_index", "<i8", 2, 2, 6, ends),
                                   ARRAY("num_edges_list", "<i8", 1, 1, 0, edge_count),
                                   ARRAY("num_nodes_list", "<i8", 1, 1, 0, huge)};
    const char *folder = files_path(*state, "huge");
    write_archive(folder, "raw/data.npz", others, COUNT(others), NULL);
    format_refused(folder, "data.npz", "2147483647 vertices with 6 edges");
}

/* ---- A real graph: more edges than one piece has ---- */

static void write_graph(const char *folder, const struct sl_dataset *from)
{
    const int64_t n = from->vertices, m = from->adjacency.indptr[n];
    int64_t *pairs = malloc((size_t)(2 * m) * sizeof *pairs);
    float *label = malloc((size_t)n * sizeof *label);
    assert_true(pairs && label);
    for (int64_t v = 0; v < n; v++) {
        label[v] = from->labels[v] < 0 ? NAN : (float)from->labels[v];
        for (int64_t k = from->adjacency.indptr[v]; k < from->adjacency.indptr[v + 1]; k++) {
            pairs[k] = v;
            pairs[m + k] = from->adjacency.indices[k];
        }
    }
    const struct array arrays[] = {
        {"edge_index", "<i8", 2, {2, m}, pairs, (size_t)(2 * m) * sizeof *pairs},
        {"num_nodes_list", "<i8", 1, {1}, &n, sizeof n},
        {"num_edges_list", "<i8", 1, {1}, &m, sizeof m},
    };
    const struct array of_labels = {"node_label", "<f4", 2,
                                    {n, 1},       label, (size_t)n * sizeof *label};
    write_archive(folder, "raw/data.npz", arrays, COUNT(arrays), NULL);
    write_archive(folder, "raw/node-label.npz", &of_labels, 1, NULL);
    free(pairs);
    free(label);
}

static void test_cora(void **state)
{
    struct sl_dataset data, wanted;
    open_ok(format_shared("cora"), &wanted);
    const char *folder = files_path(*state, "cora");
    write_graph(folder, &wanted);
    open_ok(folder, &data);
    format_same_graph(&data, &wanted);
    format_same_labels(&data, &wanted);
    sl_dataset_close(&data);
    sl_dataset_close(&wanted);
}

int main(void)
{
    sl_log_enable(false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_small, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_versions, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_forms, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_huge, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_malformed, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_truncated, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_cora, files_setup, files_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
