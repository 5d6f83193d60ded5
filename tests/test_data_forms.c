/* Datasets as users bring them: arrays of NumPy, PyTorch Geometric and OGB in their own forms, edge
 * lists with times, names and numbers from 1, and splits that are drawn. */
#include "data_files.h"

#include "core/log.h"
#include "data/identities.h"

/* ---- Files ---- */

/* An array of any shape and order in a dataset directory. */
static void put_array(const char *dir, const char *array, const char *descr, const char *shape,
                      bool fortran, const void *items, size_t bytes)
{
    char path[512], header[128];
    char *file = malloc(bytes + 256);
    assert_non_null(file);
    snprintf(path, sizeof path, "%s/%s.npy", dir, array);
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr,
             fortran ? "True" : "False", shape);
    const size_t size = npy_bytes(file, bytes + 256, header, items, bytes);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(file, 1, size, out), size);
    fclose(out);
    free(file);
}

#define PUT_TEXT(dir, array, descr, shape, text) \
    put_array(dir, array, descr, shape, false, text, sizeof(text) - 1)
#define PUT(dir, array, descr, shape, items) \
    put_array(dir, array, descr, shape, false, items, sizeof(items))

/* Longer than files_path keeps it. */
static const char *make_dataset(const struct files *files, const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s", files_dataset(files, name));
    return path;
}

static void drop_array(const char *dir, const char *array)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.npy", dir, array);
    assert_int_equal(unlink(path), 0);
}

static void expect_labels(const char *dir, const int32_t expected[4], int64_t classes)
{
    struct sl_dataset data;
    open_ok(dir, &data);
    assert_int_equal(data.classes, classes);
    assert_null(data.multilabels);
    assert_memory_equal(data.labels, expected, 4 * sizeof *expected);
    sl_dataset_close(&data);
}

static void expect_set(const struct sl_index_set *set, const int64_t *ids, int64_t count)
{
    assert_int_equal(set->count, count);
    for (int64_t k = 0; k < count; k++)
        assert_int_equal(set->ids[k], ids[k]);
}

static void refuse(const char *path, int code, const char *phrase,
                   const struct sl_read_options *options)
{
    struct sl_dataset data;
    assert_int_equal(sl_dataset_open_with(path, options, &data), code);
    if (!strstr(sl_error_message(), phrase))
        fail_msg("\"%s\" lacks \"%s\"", sl_error_message(), phrase);
}

/* ---- Labels ---- */

static void test_label_columns(void **state)
{
    const char *dir = make_dataset(*state, "columns");
    const int64_t column[] = {1, 0, 2, 1};
    PUT(dir, "labels", "<i8", "(4, 1)", column);
    char meta[512];
    snprintf(meta, sizeof meta, "%s/meta.json", dir);
    FILE *file = fopen(meta, "w");
    fputs("{\"nodes\": 4}", file);
    fclose(file);
    expect_labels(dir, (int32_t[]){1, 0, 2, 1}, 3);

    const float holes[] = {1, NAN, 0, NAN};
    PUT(dir, "labels", "<f4", "(4, 1)", holes);
    expect_labels(dir, (int32_t[]){1, -1, 0, -1}, 2);
}

static void test_label_names(void **state)
{
    static const uint32_t names[4][2] = {{'b', 0}, {'a', 'z'}, {0, 0}, {0xFC, 0x1F426}};
    const char *dir = make_dataset(*state, "names");
    struct sl_dataset data;
    PUT(dir, "labels", "<U2", "(4,)", names);
    refuse(dir, SL_ERR_DATA, "the names of 3 classes, expected 2", NULL);
    const char meta[] = "{\"nodes\": 4}";
    files_write(*state, "names/meta.json", meta, sizeof meta - 1);
    expect_labels(dir, (int32_t[]){1, 0, -1, 2}, 3);
    open_ok(dir, &data);
    assert_string_equal(data.meaning.class_names[0], "az");
    assert_string_equal(data.meaning.class_names[1], "b");
    assert_string_equal(data.meaning.class_names[2], "\xc3\xbc\xf0\x9f\x90\xa6");
    assert_null(data.meaning.class_names[3]);

    /* In another order, and stored. */
    assert_int_equal(sl_dataset_reorder(&data, "random", 5), SL_OK);
    assert_string_equal(data.meaning.class_names[1], "b");
    for (int64_t r = 0; r < 4; r++)
        assert_int_equal(data.labels[r], ((int32_t[]){1, 0, -1, 2})[data.original[r]]);
    const char *copy = files_path(*state, "names_copy");
    assert_int_equal(sl_dataset_write(&data, copy), SL_OK);
    sl_dataset_close(&data);
    open_ok(copy, &data);
    assert_string_equal(data.meaning.class_names[2], "\xc3\xbc\xf0\x9f\x90\xa6");
    assert_null(data.meaning.class_names[3]);
    sl_dataset_close(&data);

    PUT_TEXT(dir, "labels", "|S2", "(4, 1)", "q\0p\0q\0pp");
    expect_labels(dir, (int32_t[]){2, 0, 2, 1}, 3);
    PUT_TEXT(dir, "labels", "|S2", "(4, 2)", "q\0p\0q\0ppq\0p\0q\0pp");
    refuse(dir, SL_ERR_DATA, "2 columns of text, expected one", NULL);
}

static void test_class_names(void **state)
{
    const char *dir = make_dataset(*state, "called");
    static const char *const metas[][2] = {
        {"{\"class_names\": [\"x\", \"y\"]}", NULL},
        {"{\"classes\": 0, \"class_names\": [\"x\", \"y\"]}", NULL},
        {"{\"classes\": 0, \"class_names\": [\"x\"]}", "2 classes, expected the 1 that have names"},
        {"{\"classes\": 3, \"class_names\": [\"x\", \"y\"]}", "has 2 items, expected"},
        {"{\"class_names\": \"xy\"}", "has 0 items, expected"},
        {"{\"class_names\": [\"x\", 1]}", "the name of class 1"},
    };
    for (size_t k = 0; k < sizeof metas / sizeof *metas; k++) {
        struct sl_dataset data;
        files_write(*state, "called/meta.json", metas[k][0], strlen(metas[k][0]));
        if (metas[k][1]) {
            refuse(dir, SL_ERR_DATA, metas[k][1], NULL);
            continue;
        }
        open_ok(dir, &data);
        assert_string_equal(data.meaning.class_names[1], "y");
        sl_dataset_close(&data);
    }
}

/* ---- Masks ---- */

static void test_masks(void **state)
{
    const char *dir = make_dataset(*state, "masks");
    struct sl_dataset data;
    const bool train[] = {true, false, false, true}, val[4][2] = {{0, 1}, {1, 1}, {0, 0}, {0, 1}};
    const uint8_t test[] = {0, 0, 1, 0};
    PUT(dir, "train_idx", "|b1", "(4,)", train);
    drop_array(dir, "val_idx");
    PUT(dir, "val_mask", "|b1", "(4, 2)", val);
    drop_array(dir, "test_idx");
    PUT(dir, "test_mask", "|u1", "(4,)", test);
    const bool columns[] = {0, 1, 0, 0, 1, 1, 0, 1};
    put_array(dir, "val_mask", "|b1", "(4, 2)", true, columns, sizeof columns);
    open_ok(dir, &data);
    expect_set(&data.val, (int64_t[]){1}, 1);
    sl_dataset_close(&data);
    const bool second[] = {0, 1, 0, 1, 1, 0, 0, 0}; /* by rows, that would be vertex 2 alone */
    put_array(dir, "val_mask", "|b1", "(4, 2)", true, second, sizeof second);
    refuse(dir, SL_ERR_DATA, "vertex 3 is in both train_idx and val_idx", NULL);
    PUT(dir, "val_mask", "|b1", "(4, 2)", val);
    open_ok(dir, &data);
    expect_set(&data.train, (int64_t[]){0, 3}, 2);
    expect_set(&data.val, (int64_t[]){1}, 1);
    expect_set(&data.test, (int64_t[]){2}, 1);
    assert_int_equal(sl_dataset_reorder(&data, "random", 3), SL_OK);
    assert_int_equal(data.train.count, 2);
    for (int64_t k = 0; k < 2; k++)
        assert_int_equal(data.original[data.train.ids[k]] % 3, 0);
    sl_dataset_close(&data);

    PUT_TEXT(dir, "test_mask", "|u1", "(2,)", "\0\1");
    refuse(dir, SL_ERR_DATA, "test_mask.npy: is no mask, expected an item for each of the 4", NULL);
    PUT_TEXT(dir, "test_mask", "|b1", "(4,)", "\0\1\1\0");
    refuse(dir, SL_ERR_DATA, "vertex 1 is in both val_idx and test_idx", NULL);
    const int64_t numbers[] = {0, 0, 1, 0};
    PUT(dir, "test_idx", "<i8", "(4,)", numbers);
    refuse(dir, SL_ERR_DATA, "vertex 0 is there twice (expected vertices; a mask is of type bool",
           NULL);
}

/* ---- Fortran order ---- */

/* An array of nothing has no address. */
SL_TEST(test_nothing)
{
    const struct sl_npy none = sl_npy_view("none", SL_NPY_INT64, 1, 0, 0, NULL);
    int64_t out[] = {7};
    assert_int_equal(sl_npy_copy(&none, SL_NPY_INT64, 0, 0, out), SL_OK);
    assert_int_equal(sl_npy_copy(&none, SL_NPY_INT64, 0, 0, NULL), SL_OK);
    assert_int_equal(out[0], 7);
}

static void test_fortran(void **state)
{
    const char *dir = make_dataset(*state, "fortran");
    struct sl_dataset data;
    const double columns[] = {1, 3, 5, 7, 2, 4, 6, 8};
    put_array(dir, "features", "<f8", "(4, 2)", true, columns, sizeof columns);
    open_ok(dir, &data);
    for (int i = 0; i < 8; i++)
        assert_float_equal(data.features_dense[i], i + 1, 0);
    sl_dataset_close(&data);
    const uint8_t several[] = {1, 0, 1, 1, 0, 0, 1, 0};
    put_array(dir, "labels", "|u1", "(4, 2)", true, several, sizeof several);
    open_ok(dir, &data);
    for (int64_t v = 0; v < 4; v++)
        for (int64_t c = 0; c < 2; c++)
            assert_float_equal(data.multilabels[2 * v + c], several[4 * c + v], 0);
    sl_dataset_close(&data);
}

/* More rows and columns than are read at a time, in the order of the file and in another one. */
static void test_large_fortran(void **state)
{
    enum { N = 700, F = 37 };
    static float columns[F][N];
    static int64_t indptr[N + 1];
    static const int32_t none[1];
    struct sl_dataset data = {.name = (char[]){"large"},
                              .vertices = N,
                              .features = N,
                              .adjacency = {N, N, indptr, none, NULL},
                              .symmetric = true};
    const char *dir = files_path(*state, "large_fortran");
    assert_int_equal(sl_dataset_write(&data, dir), SL_OK);
    for (int j = 0; j < F; j++)
        for (int v = 0; v < N; v++)
            columns[j][v] = (float)(1000 * j + v);
    put_array(dir, "features", "<f4", "(700, 37)", true, columns, sizeof columns);
    const char meta[] = "{\"nodes\": 700}";
    files_write(*state, "large_fortran/meta.json", meta, sizeof meta - 1);
    open_ok(dir, &data);
    for (int ordered = 0; ordered < 2; ordered++) {
        for (int64_t r = 0; r < N; r++)
            for (int64_t j = 0; j < F; j++)
                assert_float_equal(data.features_dense[r * F + j],
                                   columns[j][ordered ? data.original[r] : r], 0);
        struct sl_source source;
        if (ordered)
            break;
        /* The order is given while reading. */
        sl_dataset_close(&data);
        struct sl_runtime alone = {.ranks = 1};
        struct sl_part part;
        assert_int_equal(sl_source_open(&alone, dir, &source), SL_OK);
        assert_int_equal(sl_source_order(&alone, &source, "random", 4), SL_OK);
        assert_int_equal(sl_source_read(&alone, &source, 0, N, &part), SL_OK);
        for (int64_t r = 0; r < N; r++)
            for (int64_t j = 0; j < F; j++)
                assert_float_equal(part.data.features_dense[r * F + j],
                                   columns[j][part.data.original[r]], 0);
        sl_part_close(&part);
        sl_source_close(&source);
        open_ok(dir, &data);
        assert_int_equal(sl_dataset_reorder(&data, "random", 4), SL_OK);
    }
    sl_dataset_close(&data);
}

/* ---- Lines ---- */

static void expect_graph(const char *path, const struct sl_read_options *options, int64_t vertices,
                         int64_t edges, bool weighted)
{
    struct sl_dataset data;
    if (sl_dataset_open_with(path, options, &data) != SL_OK)
        fail_msg("%s", sl_error_message());
    assert_int_equal(data.vertices, vertices);
    assert_int_equal(entries(&data), edges);
    assert_int_equal(data.adjacency.values != NULL, weighted);
    sl_dataset_close(&data);
}

static void test_line_ends(void **state)
{
    static const char *const texts[] = {"0 1\n1 2\n2 0\n",   "0 1\r1 2\r2 0\r",
                                        "0 1\r1 2\r2 0",     "0 1\r\n1 2\r\n2 0\r\n",
                                        "0 1\r1 2\n2 0\r\n", "0 1\r\r\n\r1 2\n\n2 0"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        expect_graph(files_text(*state, "lines.txt", texts[k]), NULL, 3, 3, false);
    /* More than a buffer holds: every line end comes to lie at its border. */
    enum { LINES = 30000, LONGEST = 8 };
    char *text = malloc(LINES * LONGEST + 64);
    for (int shift = 0; shift < 2 * LONGEST; shift++) {
        size_t size = 0;
        text[size++] = '#';
        for (int s = 0; s < shift; s++)
            text[size++] = '-';
        for (int line = 0; line < LINES; line++)
            size += (size_t)sprintf(text + size, "%s%d %d", shift % 2 ? "\r" : "\r\n", line % 97,
                                    line % 89);
        const char *path = files_write(*state, "long.txt", text, size);
        struct sl_dataset data;
        open_ok(path, &data);
        assert_int_equal(data.merged_edges + entries(&data), LINES);
        sl_dataset_close(&data);
    }
    free(text);
}

/* ---- Columns and numbers ---- */

static void test_weight_columns(void **state)
{
    const struct sl_read_options none = {.weights = SL_WEIGHTS_NONE},
                                 third = {.weights = SL_WEIGHTS_THIRD};
    const char *times = files_text(*state, "times.txt", "0 1 1217567877\n1 2 1217573801\n");
    expect_graph(times, NULL, 3, 2, true);
    expect_graph(times, &third, 3, 2, true);
    expect_graph(times, &none, 3, 2, false);
    const char *pairs = files_text(*state, "pairs.txt", "0 1\n1 2\n");
    expect_graph(pairs, &none, 3, 2, false);
    refuse(pairs, SL_ERR_DATA, "line 1 has 2 columns, expected 3 (--weights 3)", &third);
    const char *rated =
        files_text(*state, "rated.csv", "0,1,4,1289241911\n1,2,x,1289241941\n2,0\n");
    refuse(rated, SL_ERR_DATA, "too many columns, expected 2, or 3 with weights (--weights none",
           NULL);
    expect_graph(rated, &none, 3, 3, false);
    const char *named = files_text(*state, "named.csv", "source,target,kind\na,b,x\nb,c,y\n");
    expect_graph(named, NULL, 3, 2, false);
    refuse(named, SL_ERR_DATA, "weight 'x' is no finite number", &third);
    const char *kinds = files_text(*state, "kinds.csv", "a,b,x\nb,c,y\n");
    refuse(kinds, SL_ERR_DATA, "(--weights none ignores this column)", NULL);
    expect_graph(named, &none, 3, 2, false);
    refuse(files_text(*state, "one.txt", "0 1 2\n1\n"), SL_ERR_DATA,
           "line 2 has 1 columns, expected at least 2", &none);
    refuse(files_dataset(*state, "none"), SL_ERR_USAGE, "is no edge list (expected no --weights)",
           &none);
}

static void test_first_vertex(void **state)
{
    const struct sl_read_options from_one = {.first_vertex = 1};
    const char *path = files_text(*state, "one_based.txt", "1 2\n2 3\n3 1\n");
    expect_graph(path, NULL, 4, 3, false);
    expect_graph(path, &from_one, 3, 3, false);
    struct sl_dataset data;
    assert_int_equal(sl_dataset_open_with(path, &from_one, &data), SL_OK);
    assert_int_equal(data.adjacency.indices[data.adjacency.indptr[2]], 1);
    for (int64_t v = 0; v < 3; v++)
        assert_int_equal(sl_npy_integer(&data.vertex_ids, v), v + 1);
    sl_dataset_close(&data);
    /* The largest number may be the size of the graph then. */
    expect_graph(files_text(*state, "sized.txt", "3 2\n1 2\n2 3\n"), &from_one, 3, 2, false);
    refuse(files_text(*state, "zero.txt", "1 2\n0 3\n"), SL_ERR_DATA,
           "line 2: vertex 0, expected none before --first-vertex 1", &from_one);
    const char *mtx = files_text(*state, "one.mtx",
                                 "%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n");
    refuse(mtx, SL_ERR_USAGE, "is no edge list (expected no --first-vertex)", &from_one);
}

/* ---- What vertices are called ---- */

static void expect_ids(const struct sl_dataset *data, const char *const *expected)
{
    assert_non_null(data->vertex_ids.data);
    for (int64_t r = 0; r < data->vertices; r++) {
        const char *wanted = expected[data->original ? data->original[r] : r];
        char text[64];
        if (sl_npy_is_text(&data->vertex_ids))
            sl_npy_text(&data->vertex_ids, r, text);
        else
            snprintf(text, sizeof text, "%lld", (long long)sl_npy_integer(&data->vertex_ids, r));
        assert_string_equal(text, wanted);
    }
}

/* Names of vertices stay in another order, and in a stored dataset. */
static void check_ids(const struct files *files, const char *path, const char *const *expected)
{
    struct sl_dataset data;
    static int number;
    char name[32];
    snprintf(name, sizeof name, "ids%d", number++);
    const char *copy = files_path(files, name);
    open_ok(path, &data);
    expect_ids(&data, expected);
    assert_int_equal(sl_dataset_reorder(&data, "random", 2), SL_OK);
    expect_ids(&data, expected);
    assert_int_equal(sl_dataset_write(&data, copy), SL_OK);
    sl_dataset_close(&data);
    open_ok(copy, &data);
    expect_ids(&data, expected);
    sl_dataset_close(&data);

    /* Predictions come in the order of the file, and so do ids beside them. */
    struct sl_runtime alone = {.ranks = 1};
    struct sl_source source;
    struct sl_identities identities;
    assert_int_equal(sl_source_open(&alone, copy, &source), SL_OK);
    assert_int_equal(sl_identities_take(&source, &identities), SL_OK);
    data = (struct sl_dataset){.vertices = source.vertices, .vertex_ids = identities.ids};
    expect_ids(&data, expected);
    sl_identities_free(&identities);
    sl_source_close(&source);
}

static void test_vertex_ids(void **state)
{
    struct sl_dataset data;
    const char *path = files_text(*state, "sparse.txt", "5000000000 7\n7 123456\n");
    check_ids(*state, path, (const char *const[]){"7", "123456", "5000000000"});
    path = files_text(*state, "people.txt", "j\xc3\xb6rg bob\nbob \xe6\xbc\xa2\nX\xff \xc3\n");
    check_ids(*state, path,
              (const char *const[]){"j\xc3\xb6rg", "bob", "\xe6\xbc\xa2", "X\xc3\xbf", "\xc3\x83"});
    open_ok(files_text(*state, "plain.txt", "0 1\n1 2\n"), &data);
    assert_null(data.vertex_ids.data);
    sl_dataset_close(&data);

    const char *dir = make_dataset(*state, "wrong_ids");
    const float reals[] = {1, 2, 3, 4};
    PUT(dir, "vertex_ids", "<f4", "(4,)", reals);
    refuse(dir, SL_ERR_DATA, "vertex_ids.npy: expected integers or text", NULL);
    PUT_TEXT(dir, "vertex_ids", "|S4", "(3,)", "aaaabbbbcccc");
    refuse(dir, SL_ERR_DATA, "vertex_ids.npy: has 3 rows, expected 4", NULL);
}

/* ---- Labels that are taken for a graph ---- */

static void test_label_files(void **state)
{
    static const char *const labels[][2] = {
        {"a.txt", "0 0\n1 1\n2 0\n3 1\n4 0\n5 1\n6 0\n7 1\n"},
        {"a.csv", "1,2\n2,1\n3,1\n4,1\n5,2\n6,2\n7,1\n8,2\n"},
        {"labels.txt", "90 0\n81 0\n72 1\n63 1\n54 1\n45 1\n36 1\n27 1\n"},
        {"b.txt", "p1 AI\np2 DB\np3 DB\np4 AI\np5 AI\np6 AI\np7 DB\np8 DB\n"},
        {"c.txt", "31 AI\n32 DB\n39 DB\n34 AI\n35 AI\n36 AI\n37 DB\n38 DB\n"},
        {"d.csv", "id,label\n0,1\n1,0\n"},
    };
    static const char *const graphs[] = {
        "0 0\n1 1\n2 0\n3 1\n4 0\n5 1\n6 0\n6 1\n", /* a source is there twice */
        "1 0\n2 0\n3 0\n4 0\n5 1\n6 1\n7 1\n8 1\n9 2\n10 2\n11 2\n12 2\n", /* a tree */
        "0 1\n1 2\n2 3\n3 4\n4 5\n5 6\n6 7\n7 0\n",                        /* a circle */
        "p1 p2\np2 p3\np3 p1\np4 p1\np5 p1\np6 p1\np7 p1\np8 p1\n",        /* targets are sources */
        "1 0\n2 0\n3 0\n4 0\n5 0\n6 0\n7 0\n8 0\n9 0\n",                   /* a star */
    };
    struct sl_dataset data;
    for (size_t k = 0; k < sizeof labels / sizeof *labels; k++)
        refuse(files_text(*state, labels[k][0], labels[k][1]), SL_ERR_DATA, "labels, not edges",
               NULL);
    for (size_t k = 0; k < sizeof graphs / sizeof *graphs; k++) {
        open_ok(files_text(*state, "graph.txt", graphs[k]), &data);
        sl_dataset_close(&data);
    }
}

/* ---- Splits that are drawn ---- */

/* 3 classes of 100, 10 and 3 vertices, and 7 without a label. */
enum { SPLIT_VERTICES = 120 };

static int32_t split_label(int64_t v)
{
    return v % 17 == 3 ? -1 : v % 11 == 5 ? 1 : v % 37 == 30 ? 2 : 0;
}

static const char *write_split_data(const struct files *files, const char *name)
{
    static int64_t indptr[SPLIT_VERTICES + 1];
    static int32_t labels[SPLIT_VERTICES];
    static const int32_t none[1];
    for (int64_t v = 0; v < SPLIT_VERTICES; v++)
        labels[v] = split_label(v);
    const struct sl_dataset data = {
        .name = (char[]){"split"},
        .vertices = SPLIT_VERTICES,
        .features = SPLIT_VERTICES,
        .classes = 3,
        .adjacency = {SPLIT_VERTICES, SPLIT_VERTICES, indptr, none, NULL},
        .symmetric = true,
        .labels = labels,
    };
    const char *path = files_path(files, name);
    assert_int_equal(sl_dataset_write(&data, path), SL_OK);
    return path;
}

/* Find the split of every vertex of the files. */
static void draw(const char *path, const char *rule, int64_t seed, const char *order,
                 uint8_t split[SPLIT_VERTICES])
{
    struct sl_read_options options = {0};
    struct sl_dataset data;
    assert_int_equal(sl_split_rule_parse(rule, seed, &options.split), SL_OK);
    if (sl_dataset_open_with(path, &options, &data) != SL_OK)
        fail_msg("%s", sl_error_message());
    assert_int_equal(sl_dataset_reorder(&data, order, 1), SL_OK);
    const struct sl_index_set *sets[] = {&data.train, &data.val, &data.test};
    memset(split, 0, SPLIT_VERTICES);
    for (int s = 0; s < 3; s++)
        for (int64_t k = 0; k < sets[s]->count; k++) {
            const int64_t r = sets[s]->ids[k], v = data.original ? data.original[r] : r;
            assert_int_equal(split[v], 0);
            split[v] = (uint8_t)(s + 1);
        }
    sl_dataset_close(&data);
}

static void count_splits(const uint8_t *split, int64_t count[4][4])
{
    memset(count, 0, 16 * sizeof **count);
    for (int64_t v = 0; v < SPLIT_VERTICES; v++)
        count[split_label(v) + 1][split[v]]++;
}

static void test_drawn_splits(void **state)
{
    const char *path = write_split_data(*state, "drawn");
    uint8_t first[SPLIT_VERTICES], again[SPLIT_VERTICES];
    int64_t count[4][4], labelled[3], all = 0;
    draw(path, "6/5/rest", 1, "none", first);
    count_splits(first, count);
    assert_int_equal(count[0][1] + count[0][2] + count[0][3], 0); /* no label, no split */
    for (int c = 0; c < 3; c++) {
        const int64_t *of = count[c + 1], size = of[0] + of[1] + of[2] + of[3];
        labelled[c] = size;
        all += size;
        assert_int_equal(of[0], 0);
        assert_int_equal(of[1], size < 6 ? size : 6);
        assert_int_equal(of[2], size < 6 ? 0 : size < 11 ? size - 6 : 5);
    }
    assert_true(labelled[0] > 11 && labelled[1] > 6 && labelled[1] < 11 && labelled[2] < 6);

    draw(path, "6/5/rest", 1, "random", again);
    assert_memory_equal(first, again, sizeof first);
    draw(path, "6/5/rest", 2, "none", again);
    assert_memory_not_equal(first, again, sizeof first);

    draw(path, "60/20/20", 1, "none", first);
    count_splits(first, count);
    for (int s = 1; s <= 3; s++) {
        const int64_t got = count[1][s] + count[2][s] + count[3][s];
        const double wanted = (s == 1 ? 0.6 : 0.2) * (double)all;
        assert_near((double)got, wanted, 1.0);
    }
    assert_int_equal(count[1][0] + count[2][0] + count[3][0], 0);
    draw(path, "10/0.5/0", 1, "none", first);
    count_splits(first, count);
    assert_int_equal(count[1][3] + count[2][3] + count[3][3], 0);
}

/* Stored in another order, vertices are in the splits that they were in before. */
static void test_splits_of_ordered_files(void **state)
{
    struct sl_dataset data;
    uint8_t plain[SPLIT_VERTICES], stored[SPLIT_VERTICES];
    const char *path = write_split_data(*state, "unordered");
    draw(path, "60/20/20", 9, "none", plain);
    open_ok(path, &data);
    assert_int_equal(sl_dataset_reorder(&data, "random", 8), SL_OK);
    const char *ordered = files_path(*state, "ordered");
    assert_int_equal(sl_dataset_write(&data, ordered), SL_OK);
    sl_dataset_close(&data);
    draw(ordered, "60/20/20", 9, "none", stored);
    assert_memory_equal(plain, stored, sizeof plain);
}

SL_TEST(test_split_rules)
{
    static const char *const wrong[] = {"",           "20",        "20/30",       "20/30/all",
                                        "60/20/20/",  "60/20/21",  "0/50/50",     "a/b/c",
                                        "1.5/2/rest", "-1/2/rest", "20/30/rest/", "1e1/2/3"};
    struct sl_split_rule rule;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        assert_int_equal(sl_split_rule_parse(wrong[k], 0, &rule), SL_ERR_USAGE);
        assert_non_null(strstr(sl_error_message(), "--split"));
    }
    assert_int_equal(sl_split_rule_parse(NULL, 3, &rule), SL_OK);
    assert_false(rule.given);
    int64_t cut[3];
    assert_int_equal(sl_split_rule_parse("33.3/33.3/33.4", 0, &rule), SL_OK);
    sl_split_rule_cut(&rule, 10, cut);
    assert_int_equal(cut[0], 3);
    assert_int_equal(cut[1], 7);
    assert_int_equal(cut[2], 10);
}

static void test_splits_need_labels(void **state)
{
    struct sl_read_options options = {0};
    const char *text = files_text(*state, "unlabelled.txt", "0 1\n1 2\n");
    assert_int_equal(sl_split_rule_parse("60/20/20", 0, &options.split), SL_OK);
    refuse(text, SL_ERR_DATA, "--split needs labels, and there are none", &options);
    const char *dir = make_dataset(*state, "several");
    const float several[] = {1, 0, 1, 1, 0, 0, 1, 0};
    PUT(dir, "labels", "<f4", "(4, 2)", several);
    assert_int_equal(sl_split_rule_parse("1/1/rest", 0, &options.split), SL_OK);
    refuse(dir, SL_ERR_DATA, "--split needs labels of one class per vertex", &options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_label_columns, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_label_names, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_class_names, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_masks, files_setup, files_teardown),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test_setup_teardown(test_fortran, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_large_fortran, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_line_ends, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_weight_columns, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_first_vertex, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_vertex_ids, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_label_files, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_drawn_splits, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_splits_of_ordered_files, files_setup, files_teardown),
        cmocka_unit_test(test_split_rules),
        cmocka_unit_test_setup_teardown(test_splits_need_labels, files_setup, files_teardown),
    };
    sl_log_enable(false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
