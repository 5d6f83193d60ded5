/* Datasets that are right: round trips, published files, legal oddities, complete
 * writing or none. */
#include "data_files.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

#include <jansson.h>
#include <zlib.h>

#include "core/log.h"
#include "data/statistics.h"

/* --- the project's layout
 * --------------------------------------------------------------------------------- */

static const char *shared_data(void)
{
    static char path[512];
    const char *given = getenv("SL_SHARED_DATA"), *source = getenv("srcdir");
    if (given)
        snprintf(path, sizeof path, "%s", given);
    else
        snprintf(path, sizeof path, "%s/../shared/data", source ? source : ".");
    if (access(path, R_OK) != 0) {
        print_message("no published datasets at %s (set SL_SHARED_DATA): skipped\n", path);
        skip();
    }
    return path;
}

static void check_against_meta(const struct sl_dataset *data, const json_t *meta)
{
    struct sl_graph_statistics s;
    assert_int_equal(sl_graph_statistics_compute(data, &s), SL_OK);
    assert_int_equal(s.vertices, json_integer_value(json_object_get(meta, "nodes")));
    assert_int_equal(s.edges, json_integer_value(json_object_get(meta, "edges")));
    assert_int_equal(s.degree_max, json_integer_value(json_object_get(meta, "max_degree")));
    assert_int_equal(s.labelled, json_integer_value(json_object_get(meta, "labelled")));
    const json_t *components = json_object_get(meta, "components");
    if (json_is_integer(components))
        assert_int_equal(s.components, json_integer_value(components));
    const json_t *homophily = json_object_get(meta, "edge_homophily");
    if (json_is_number(homophily) && data->labels)
        assert_float_equal(s.edge_homophily, json_number_value(homophily), 5e-5);
    const json_t *split = json_object_get(meta, "split");
    assert_int_equal(data->train.count, json_integer_value(json_object_get(split, "train")));
    assert_int_equal(data->val.count, json_integer_value(json_object_get(split, "val")));
    assert_int_equal(data->test.count, json_integer_value(json_object_get(split, "test")));
    sl_graph_statistics_free(&s);
}

static void test_shared_directories(void **state)
{
    const char *root = shared_data();
    DIR *dir = opendir(root);
    assert_non_null(dir);
    int found = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%.200s/meta.json", root, entry->d_name);
        json_t *meta = json_load_file(path, 0, NULL);
        if (!meta)
            continue;
        struct sl_dataset data;
        snprintf(path, sizeof path, "%s/%.200s", root, entry->d_name);
        open_ok(path, &data);
        assert_string_equal(data.name, entry->d_name);
        assert_true(data.symmetric);
        check_against_meta(&data, meta);
        if (entries(&data) < 200000)
            assert_round_trip(*state, &data);
        sl_dataset_close(&data);
        json_decref(meta);
        found++;
    }
    closedir(dir);
    assert_true(found > 0);
}

/* --- files as published
 * ----------------------------------------------------------------------------------- */

static const struct published {
    const char *file;
    int64_t vertices, entries, features, classes, train;
    bool symmetric, weighted;
} published[] = {
    {"cora_npz/cora.npz", 2708, 5429, 1433, 7, 0, false, false},
    {"cora_ml_npz/cora_ml.npz", 2995, 8416, 2879, 7, 0, false, false},
    {"citeseer_npz/citeseer.npz", 3312, 4715, 3703, 6, 0, false, false},
    {"gowalla_scipy_npz/s_adj_mat.npz", 70839, 1620256, 70839, 0, 0, true, false},
    {"minesweeper_npz/minesweeper.npz", 10000, 78804, 7, 2, 5000, true, false},
    {"chameleon_filtered_directed_npz/chameleon_filtered_directed.npz", 890, 13584, 2325, 5, 409,
     false, false},
    {"converted_graphsaint_cora_ml/adj_full.npz", 2995, 16316, 2995, 0, 0, true, false},
    {"pubmed_mtx/pubmed.mtx", 19717, 88651, 19717, 0, 0, true, false},
    {"pubmed_mtx/cora.mtx", 2708, 13264, 2708, 0, 0, true, false},
    {"pubmed_mtx/citeseer.mtx", 3327, 9228, 3327, 0, 0, true, false},
    {"ca_astroph_mtx/ca-AstroPh.mtx", 18772, 396160, 18772, 0, 0, true, false},
    {"ca_astroph_mtx/ca-GrQc.mtx", 5242, 28980, 5242, 0, 0, true, false},
    {"bips98_606_mtx/bips98_606.mtx", 7135, 34738, 7135, 0, 0, false, true},
    {"metis_4elt/4elt.graph", 15606, 91756, 15606, 0, 0, true, false},
    {"metis_4elt/test.mgraph", 766, 2628, 766, 0, 0, true, false},
    {"gnutella08_edgelist/p2p-Gnutella08.edgelist", 6301, 20777, 6301, 0, 0, false, false},
    {"snap_email_eu_core/email-Eu-core.txt", 1005, 25571, 1005, 0, 0, false, false},
    {"snap_facebook_combined/facebook_combined.txt", 4039, 88234, 4039, 0, 0, false, false},
    {"musae_facebook/facebook_edges.csv", 22470, 171002, 22470, 0, 0, false, false},
    {"arxiv2023_csvgz/edges.csv.gz", 33868, 305672, 33868, 0, 0, false, false},
    {"cora_libsvm_like/net.txt", 2708, 10556, 2708, 0, 0, true, false},
    {"converted_ogb_cora/raw/edge.csv.gz", 2708, 5278, 2708, 0, 0, false, false},
};

SL_TEST(test_published_files)
{
    const char *root = shared_data();
    for (size_t k = 0; k < sizeof published / sizeof *published; k++) {
        const struct published *p = &published[k];
        struct sl_dataset data;
        char path[1024];
        snprintf(path, sizeof path, "%s/original/%s", root, p->file);
        if (access(path, R_OK) != 0) {
            print_message("skip  %s: absent\n", path);
            continue;
        }
        open_ok(path, &data);
        assert_int_equal(data.vertices, p->vertices);
        assert_int_equal(entries(&data), p->entries);
        assert_int_equal(data.features, p->features);
        assert_int_equal(data.classes, p->classes);
        assert_int_equal(data.train.count, p->train);
        assert_int_equal(data.symmetric, p->symmetric);
        assert_int_equal(data.adjacency.values != NULL, p->weighted);
        assert_int_equal(data.merged_edges, 0);
        sl_dataset_close(&data);
    }
}

/* The published archive and our layout's copy of it, made by another program, are the same graph.
 */
SL_TEST(test_archive_equals_layout)
{
    const char *root = shared_data();
    char path[1024];
    struct sl_dataset archive, layout;
    snprintf(path, sizeof path, "%s/original/minesweeper_npz/minesweeper.npz", root);
    open_ok(path, &archive);
    snprintf(path, sizeof path, "%s/minesweeper", root);
    open_ok(path, &layout);
    assert_same_dataset(&archive, &layout);
    sl_dataset_close(&archive);
    sl_dataset_close(&layout);
    const struct sl_read_options options = {.symmetrize = true};
    snprintf(path, sizeof path, "%s/original/cora_ml_npz/cora_ml.npz", root);
    assert_int_equal(sl_dataset_open_with(path, &options, &archive), SL_OK);
    snprintf(path, sizeof path, "%s/cora_ml", root);
    open_ok(path, &layout);
    assert_same_csr(&archive.adjacency, &layout.adjacency);
    assert_same_csr(&archive.features_csr, &layout.features_csr);
    assert_memory_equal(archive.labels, layout.labels, (size_t)layout.vertices * 4);
    sl_dataset_close(&archive);
    sl_dataset_close(&layout);
}

SL_TEST(test_pickled_archive)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/original/amazon_photo_object_npz/amazon_photo.npz",
             shared_data());
    struct sl_dataset data;
    assert_int_equal(sl_dataset_open(path, &data), SL_ERR_DATA);
    assert_non_null(strstr(sl_error_message(), "amazon_photo.npz"));
    assert_non_null(strstr(sl_error_message(), "pickled"));
    assert_null(data.blocks);
}

/* --- legal oddities
 * ---------------------------------------------------------------------------------------- */

static const struct legal {
    const char *name, *text;
    int64_t vertices, entries, merged;
    bool symmetric;
    float first_weight; /* 0: unweighted */
} legal[] = {
    {"plain.txt", "0 1\n1 2\n", 3, 2, 0, false, 0},
    {"no_newline.txt", "0 1\n1 0", 2, 2, 0, true, 0},
    {"duplicates.txt", "# twice\n0 1\n0 1\n1 0\n", 2, 2, 1, true, 0},
    {"weights_sum.txt", "0 1 0.5\n0 1 2\n", 2, 1, 1, false, 2.5f},
    {"self_loop.txt", "0 0\n", 1, 1, 0, true, 0},
    {"zero_degree.txt", "5 5\n", 6, 1, 0, true, 0},
    {"header.csv", "source,target,weight\r\n0,1,2.5\r\n", 2, 1, 0, false, 2.5f},
    {"names.csv", "from,to\nann,bob\nbob, carl\n", 3, 2, 0, false, 0},
    {"mixed_names.txt", "7\tann\nann\t7\n", 2, 2, 0, true, 0},
    {"words_later.txt", "0 1\n1 2\nhello world\n", 5, 3, 0, false, 0},
    {"sparse_ids.txt", "1000000000000 5\n5 7\n", 3, 2, 0, false, 0},
    {"unknown.zzz", "0 1\n", 2, 1, 0, false, 0},
    {"general.mtx", "%%MatrixMarket matrix coordinate real general\n%\n3 3 2\n1 2 0.5\n3 1 4\n", 3,
     2, 0, false, 4.0f},
    {"symmetric.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n", 3, 3,
     0, true, 0},
    {"no_edges.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 0\n", 2, 0, 0, true, 0},
    {"one_vertex.graph", "1 0\n\n", 1, 0, 0, true, 0},
    {"path.graph", "% c\n3 2\n2\n1 3\n2\n", 3, 4, 0, true, 0},
    {"weighted.graph", "3 2 011 2\n9 9 2 5\n9 9 1 5 3 7\n% c\n9 9 2 7\n", 3, 4, 0, true, 5},
    {"isolated.graph", "3 1\n3\n\n1\n", 3, 2, 0, true, 0},
};

static void check_legal(const char *path, const struct legal *expected)
{
    struct sl_dataset data;
    open_ok(path, &data);
    assert_int_equal(data.vertices, expected->vertices);
    assert_int_equal(entries(&data), expected->entries);
    assert_int_equal(data.merged_edges, expected->merged);
    assert_int_equal(data.symmetric, expected->symmetric);
    assert_int_equal(data.adjacency.values != NULL, expected->first_weight != 0.0f);
    if (data.adjacency.values)
        assert_float_equal(data.adjacency.values[0], expected->first_weight, 0.0f);
    assert_int_equal(data.feature_form, SL_FEATURES_IDENTITY);
    assert_int_equal(data.train.count, 0);
    sl_dataset_close(&data);
}

static void test_legal_text(void **state)
{
    const struct files *files = *state;
    for (size_t k = 0; k < sizeof legal / sizeof *legal; k++)
        check_legal(files_text(files, legal[k].name, legal[k].text), &legal[k]);
    const char *path = files_path(files, "packed.txt.gz");
    gzFile file = gzopen(path, "wb");
    gzputs(file, legal[0].text);
    gzclose(file);
    check_legal(path, &legal[0]);
}

static void test_vertex_numbers(void **state)
{
    struct sl_dataset data;
    open_ok(files_text(*state, "sparse.txt", "1000000000000 5\n5 7\n"), &data);
    const int32_t sparse[] = {2, 0}; /* 5 is 0, 7 is 1, the large one is 2 */
    assert_int_equal(data.adjacency.indptr[1], 1);
    assert_memory_equal(data.adjacency.indices, sparse, sizeof sparse);
    sl_dataset_close(&data);
    open_ok(files_text(*state, "names.txt", "zoe ann\nann bob\n"), &data);
    const int32_t named[] = {0, 1}; /* as they appear */
    assert_int_equal(data.adjacency.indptr[1], 0);
    assert_memory_equal(data.adjacency.indices, named, sizeof named);
    sl_dataset_close(&data);
}

static void test_symmetrize(void **state)
{
    const struct sl_read_options options = {.symmetrize = true};
    struct sl_dataset data;
    const char *path = files_text(*state, "directed.txt", "0 1 3\n1 0 5\n1 2 2\n2 2 4\n");
    assert_int_equal(sl_dataset_open_with(path, &options, &data), SL_OK);
    const int64_t indptr[] = {0, 1, 3, 5};
    const int32_t indices[] = {1, 0, 2, 1, 2};
    const float weights[] = {5, 5, 2, 2, 4};
    assert_true(data.symmetric);
    assert_memory_equal(data.adjacency.indptr, indptr, sizeof indptr);
    assert_memory_equal(data.adjacency.indices, indices, sizeof indices);
    assert_memory_equal(data.adjacency.values, weights, sizeof weights);
    assert_int_equal(sl_dataset_edge_count(&data), 3);
    assert_round_trip(*state, &data);
    sl_dataset_close(&data);
    const struct sl_read_options sum = {.symmetrize = SL_SYMMETRIZE_SUM},
                                 mean = {.symmetrize = SL_SYMMETRIZE_MEAN};
    const float sums[] = {8, 8, 2, 2, 4}, means[] = {4, 4, 2, 2, 4};
    assert_int_equal(sl_dataset_open_with(path, &sum, &data), SL_OK);
    assert_memory_equal(data.adjacency.values, sums, sizeof sums);
    sl_dataset_close(&data);
    assert_int_equal(sl_dataset_open_with(path, &mean, &data), SL_OK);
    assert_memory_equal(data.adjacency.values, means, sizeof means);
    sl_dataset_close(&data);
}

/* Edges without weights that are there twice, in files and in a directory; one of them has weights
 * anyway. */
static void count_one(const char *path, float first)
{
    const struct sl_read_options options = {.count_duplicates = true};
    struct sl_dataset data;
    if (sl_dataset_open_with(path, &options, &data) != SL_OK)
        fail_msg("%s", sl_error_message());
    assert_int_equal(data.merged_edges, first > 1.0f);
    assert_int_equal(data.adjacency.values != NULL, first > 1.0f);
    for (int64_t e = 0; data.adjacency.values && e < entries(&data); e++)
        assert_float_equal(data.adjacency.values[e], e == 0 ? first : 1.0f, 0.0f);
    sl_dataset_close(&data);
}

static void write_array(const char *dir, const char *array, const char *descr, size_t item_bytes,
                        int64_t count, const void *items)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s.npy", dir, array);
    assert_int_equal(sl_npy_write(path, descr, item_bytes, 1, &count, items), SL_OK);
}

static void test_duplicates_count(void **state)
{
    static const char mtx[] = "%%MatrixMarket matrix coordinate pattern general\n3 3 4\n1 2\n1 2\n"
                              "1 2\n2 3\n";
    count_one(files_text(*state, "once.txt", "0 1\n1 2\n"), 1.0f);
    count_one(files_text(*state, "twice.txt", "0 1\n0 1\n1 2\n"), 2.0f);
    count_one(files_text(*state, "weights.txt", "0 1 2\n0 1 3\n1 2 1\n"), 5.0f);
    struct sl_dataset data;
    const struct sl_read_options options = {.count_duplicates = true, .symmetrize = true};
    assert_int_equal(sl_dataset_open_with(files_text(*state, "thrice.mtx", mtx), &options, &data),
                     0);
    assert_int_equal(data.merged_edges, 2);
    assert_float_equal(data.adjacency.values[0], 3.0f, 0.0f);
    assert_float_equal(data.adjacency.values[1], 3.0f, 0.0f); /* the reverse */
    sl_dataset_close(&data);
    char meta[256];
    const char *dir = files_dataset(*state, "doubled");
    const int64_t indptr[] = {0, 2, 2, 3, 3};
    const int32_t indices[] = {1, 1, 2};
    write_array(dir, "indptr", "<i8", 8, 5, indptr);
    write_array(dir, "indices", "<i4", 4, 3, indices);
    snprintf(meta, sizeof meta, "%s/meta.json", dir);
    FILE *file = fopen(meta, "w");
    fputs("{\"nodes\": 4}", file);
    fclose(file);
    count_one(dir, 2.0f);
    open_ok(dir, &data);
    assert_null(data.adjacency.values);
    sl_dataset_close(&data);
}

/* Rows out of order, with duplicates and other integer types; splits out of order. */
static void test_directory_is_mended(void **state)
{
    struct sl_dataset data;
    const char *dir = files_dataset(*state, "mended");
    const uint32_t indptr[] = {0, 2, 4, 6, 7};
    const int16_t indices[] = {1, 1, 2, 0, 3, 1, 2};
    const int8_t labels[] = {1, 0, -1, 1};
    const int64_t train[] = {3, 0};
    write_array(dir, "indptr", "<u4", 4, 5, indptr);
    write_array(dir, "indices", "<i2", 2, 7, indices);
    write_array(dir, "labels", "|i1", 1, 4, labels);
    write_array(dir, "train_idx", "<i8", 8, 2, train);
    char meta[256];
    snprintf(meta, sizeof meta, "%s/meta.json", dir);
    FILE *file = fopen(meta, "w");
    fputs("{\"nodes\": 4, \"features\": {\"bag_of_words\": true}}", file);
    fclose(file);
    open_ok(dir, &data);
    const int64_t expected_indptr[] = {0, 1, 3, 5, 6}, expected_train[] = {0, 3};
    const int32_t expected_indices[] = {1, 0, 2, 1, 3, 2}, expected_labels[] = {1, 0, -1, 1};
    assert_memory_equal(data.adjacency.indptr, expected_indptr, sizeof expected_indptr);
    assert_memory_equal(data.adjacency.indices, expected_indices, sizeof expected_indices);
    assert_memory_equal(data.labels, expected_labels, sizeof expected_labels);
    assert_memory_equal(data.train.ids, expected_train, sizeof expected_train);
    assert_int_equal(data.merged_edges, 1);
    assert_int_equal(data.classes, 2);
    assert_true(data.columns.bag_of_words);
    assert_round_trip(*state, &data);
    sl_dataset_close(&data);
}

/* Labels of uint8 whose -1 became 255, a mark of byte order, and nothing said about the arrays. */
static void test_labels_of_bytes(void **state)
{
    struct sl_dataset data;
    const char *dir = files_dataset(*state, "bytes");
    const uint8_t labels[] = {1, 255, 0, 255}, classes[] = {1, 254, 0, 255};
    const int32_t expected[] = {1, -1, 0, -1};
    write_array(dir, "labels", "|u1", 1, 4, labels);
    files_text(*state, "bytes/meta.json", "\xEF\xBB\xBF{}");
    open_ok(dir, &data);
    assert_int_equal(data.classes, 2);
    assert_memory_equal(data.labels, expected, sizeof expected);
    sl_dataset_close(&data);
    write_array(dir, "labels", "|u1", 1, 4, classes);
    open_ok(dir, &data);
    assert_int_equal(data.labels[3], 255);
    sl_dataset_close(&data);
    write_array(dir, "labels", "|u1", 1, 4, labels);
    files_text(*state, "bytes/meta.json", "{\"classes\": 256}");
    open_ok(dir, &data);
    assert_int_equal(data.labels[3], 255);
    sl_dataset_close(&data);
}

static void test_multilabel_round_trip(void **state)
{
    static const int64_t indptr[] = {0, 1, 1};
    static const int32_t indices[] = {1};
    static const float weights[] = {0.25f}, multilabels[] = {0, 1, 1, 1, 0, 0};
    const struct sl_csr graph = {2, 2, indptr, indices, weights},
                        words = {2, 5, indptr, indices, NULL};
    struct sl_dataset data = {.name = (char[]){"multi"},
                              .vertices = 2,
                              .features = 5,
                              .classes = 3,
                              .adjacency = graph,
                              .feature_form = SL_FEATURES_CSR,
                              .features_csr = words,
                              .multilabels = multilabels};
    assert_round_trip(*state, &data);
    static const float known[] = {0, NAN, 1, 1, 0, 0}, numbers[] = {0, NAN, 1.5f, 1, -3e9f, 0},
                       usual[] = {0, 1, 1, 0, 0, 1};
    data.multilabels = known;
    assert_round_trip(*state, &data);
    data.meaning.regression = true;
    assert_round_trip(*state, &data);
    data.multilabels = numbers;
    assert_round_trip(*state, &data);
    data.multilabels = usual; /* numbers, because meta.json says so */
    assert_round_trip(*state, &data);
}

/* The kind of labels follows from meta.json, and from the labels' type, shape and values. */
static void test_label_kinds(void **state)
{
    static const float classes[] = {1, 0, NAN, 1}, numbers[] = {1, 0.25f, NAN, 1},
                       several[] = {0, 1, NAN, NAN, 1, 1, 0, 0},
                       matrix[] = {0, 1, NAN, 2.5f, 1, 1, 0, 0};
    static const int32_t column[] = {0, 1, 1, 0};
    static const struct {
        const char *meta, *descr;
        const void *items;
        int64_t columns;
        bool several, regression;
    } kinds[] = {
        {"{}", "<f4", classes, 0, false, false},
        {"{}", "<f4", numbers, 0, true, true},
        {"{}", "<f4", numbers, 1, true, true},
        {"{}", "<f4", several, 2, true, false},
        {"{}", "<f4", matrix, 2, true, true},
        {"{}", "<i4", column, 1, false, false},
        {"{\"classes\": 2}", "<f4", matrix, 2, true, true},
        {"{\"classes\": 2, \"regression\": true}", "<f4", numbers, 0, true, true},
        {"{\"regression\": true}", "<f4", several, 2, true, true},
        {"{\"regression\": false}", "<f4", classes, 0, false, false},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        char name[32], file[64];
        struct sl_dataset data;
        snprintf(name, sizeof name, "kind%zu", k);
        const char *dir = files_dataset(*state, name);
        snprintf(file, sizeof file, "%s/meta.json", name);
        files_text(*state, file, kinds[k].meta);
        snprintf(file, sizeof file, "%s/labels.npy", name);
        const int64_t shape[] = {4, kinds[k].columns};
        assert_int_equal(sl_npy_write(files_path(*state, file), kinds[k].descr, 4,
                                      kinds[k].columns ? 2 : 1, shape, kinds[k].items),
                         SL_OK);
        open_ok(dir, &data);
        assert_int_equal(data.multilabels != NULL, kinds[k].several);
        assert_int_equal(data.labels != NULL, !kinds[k].several);
        assert_int_equal(data.meaning.regression, kinds[k].regression);
        if (kinds[k].several) {
            assert_int_equal(data.classes, kinds[k].columns ? kinds[k].columns : 1);
            assert_memory_equal(data.multilabels, kinds[k].items,
                                (size_t)(4 * data.classes) * sizeof(float));
        }
        sl_dataset_close(&data);
    }
}

/* --- writing
 * -----------------------------------------------------------------------------------------------
 */

static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = -2; /* "." and ".." */
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static void test_write_needs_vacancy(void **state)
{
    const struct files *files = *state;
    struct sl_dataset data;
    open_ok(files_dataset(files, "once"), &data);
    assert_int_equal(sl_dataset_write(&data, files_path(files, "once")), SL_ERR_USAGE);
    assert_non_null(strstr(sl_error_message(), "not empty"));
    assert_int_equal(sl_dataset_write(&data, files_path(files, "once/meta.json")), SL_ERR_SYSTEM);
    assert_int_equal(mkdir(files_path(files, "empty"), 0777), 0);
    assert_int_equal(sl_dataset_write(&data, files_path(files, "empty//")), SL_OK);
    assert_int_equal(sl_dataset_write(&data, files_path(files, "no/such/parent")), SL_ERR_SYSTEM);
    sl_dataset_close(&data);
}

/* A disk that fills up leaves nothing behind. */
static void test_write_is_all_or_nothing(void **state)
{
    const struct files *files = *state;
    struct sl_dataset data;
    open_ok(files_dataset(files, "small"), &data);
    const char *parent = files_path(files, "full");
    assert_int_equal(mkdir(parent, 0777), 0);
    struct rlimit before, tight = {100, 100};
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    tight.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_FSIZE, &tight);
    const int rc = sl_dataset_write(&data, files_path(files, "full/out"));
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(rc, SL_ERR_SYSTEM);
    assert_non_null(strstr(sl_error_message(), "cannot write"));
    assert_int_equal(count_entries(parent), 0);
    sl_dataset_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_directories),
        cmocka_unit_test(test_published_files),
        cmocka_unit_test(test_archive_equals_layout),
        cmocka_unit_test(test_pickled_archive),
        cmocka_unit_test(test_legal_text),
        cmocka_unit_test(test_vertex_numbers),
        cmocka_unit_test(test_symmetrize),
        cmocka_unit_test(test_duplicates_count),
        cmocka_unit_test(test_directory_is_mended),
        cmocka_unit_test(test_labels_of_bytes),
        cmocka_unit_test(test_multilabel_round_trip),
        cmocka_unit_test(test_label_kinds),
        cmocka_unit_test(test_write_needs_vacancy),
        cmocka_unit_test(test_write_is_all_or_nothing),
    };
    sl_log_enable(false);
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
