/* Reading a small dataset by parts: arrays of other types and orders, splits that are drawn, and
 * damaged arrays, which every rank must refuse and one must name. Run alone and by tests/parts.sh
 * on several ranks. */
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"
#include "data/part.h"
#include "data/source.h"
#include "tests/fixtures.h"
#include "tests/running.h"
#include "tests/unit.h"

/* ---- Files that are legal in another way ---- */

/* DATASET/FILE.npy; valid until the next call. */
static const char *array_path(const char *dataset, const char *array)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s.npy", dataset, array);
    return path;
}

static void write_array(const char *dataset, const char *array, const char *descr, size_t bytes,
                        int64_t count, const void *items)
{
    assert_int_equal(sl_npy_write(array_path(dataset, array), descr, bytes, 1, &count, items), 0);
}

/* The path 0 - 1 - … - 11 in a directory, four columns of features. */
enum { PATH_VERTICES = 12, PATH_ENTRIES = 22 };

static const char *write_path(const char *name)
{
    static int64_t indptr[PATH_VERTICES + 1], ids[PATH_VERTICES];
    static int32_t indices[PATH_ENTRIES], labels[PATH_VERTICES];
    static float features[4 * PATH_VERTICES], weights[PATH_ENTRIES];
    int64_t e = 0;
    for (int v = 0; v < PATH_VERTICES; v++) {
        if (v > 0)
            indices[e++] = v - 1;
        if (v + 1 < PATH_VERTICES)
            indices[e++] = v + 1;
        indptr[v + 1] = e;
        ids[v] = v;
        labels[v] = v % 3;
    }
    for (int i = 0; i < PATH_ENTRIES; i++)
        weights[i] = 2.0f;
    for (int i = 0; i < 4 * PATH_VERTICES; i++)
        features[i] = (float)i;
    const struct sl_dataset data = {
        .name = (char[]){"path"},
        .vertices = PATH_VERTICES,
        .features = 4,
        .classes = 3,
        .adjacency = {PATH_VERTICES, PATH_VERTICES, indptr, indices, weights},
        .symmetric = true,
        .feature_form = SL_FEATURES_DENSE,
        .features_dense = features,
        .labels = labels,
        .train = {ids, 6},
        .val = {ids + 6, 3},
        .test = {ids + 9, 3},
        .original = ids,
    };
    return sl_running_store(&data, name);
}

/* Opens, orders and reads it by equal parts. */
static int read_path(const char *path, const char *order, struct sl_source *source,
                     struct sl_part *part)
{
    *part = (struct sl_part){0};
    sl_runtime_agree(&sl_running, 0); /* rank 0 has changed it, if it does */
    int code = sl_source_open(&sl_running, path, source);
    if (!code)
        code = sl_source_order(&sl_running, source, order, 1);
    const int64_t first = source->vertices * sl_running.rank / sl_running.ranks;
    const int64_t end = source->vertices * (sl_running.rank + 1) / sl_running.ranks;
    return code ? code : sl_source_read(&sl_running, source, first, end - first, part);
}

static void close_path(struct sl_source *source, struct sl_part *part)
{
    sl_part_close(part);
    sl_source_close(source);
}

static int64_t sum_of(int64_t value)
{
    sl_runtime_sum(&sl_running, &value, 1);
    return value;
}

#define ITEMS(type, ...) ((const type[]){__VA_ARGS__})

/* Rows in any order with duplicates, splits in any order, other types: all as before. */
static void write_other_forms(const char *path)
{
    write_array(path, "indptr", "<u4", 4, 13,
                ITEMS(uint32_t, 0, 1, 3, 5, 7, 9, 11, 13, 15, 17, 20, 22, 23));
    write_array(
        path, "indices", "<i8", 8, 23,
        ITEMS(int64_t, 1, 2, 0, 3, 1, 4, 2, 5, 3, 4, 6, 7, 5, 8, 6, 9, 7, 10, 8, 10, 11, 9, 10));
    write_array(
        path, "weights", "<f8", 8, 23,
        ITEMS(double, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1.5, 2, .5, 2, 2, 2));
    write_array(path, "train_idx", "<i4", 4, 6, ITEMS(int32_t, 3, 5, 0, 4, 2, 1));
    char meta[300];
    snprintf(meta, sizeof meta, "%s/meta.json", path);
    FILE *file = fopen(meta, "w");
    assert_non_null(file);
    fputs("{}", file);
    assert_int_equal(fclose(file), 0);
}

SL_TEST(test_other_forms)
{
    static const char *const orders[] = {"none", "random"};
    const char *path = write_path("forms");
    if (sl_running.rank == 0)
        write_other_forms(path);
    for (int o = 0; o < 2; o++) {
        struct sl_source source;
        struct sl_part part;
        if (read_path(path, orders[o], &source, &part))
            fail_msg("%s", sl_error_message());
        assert_int_equal(part.entries, PATH_ENTRIES);
        assert_int_equal(part.data.merged_edges, 1);
        assert_int_equal(part.data.classes, 3);
        assert_true(part.data.symmetric);
        assert_int_equal(sum_of(part.data.train.count), 6);
        for (int64_t e = 0; e < part.data.adjacency.indptr[part.data.adjacency.rows]; e++)
            assert_true(part.data.adjacency.values[e] == 2.0f);
        for (int64_t k = 0; k < part.data.train.count; k++)
            assert_true(sl_source_vertex(&source, part.data.train.ids[k]) < 6);
        close_path(&source, &part);
    }
}

/* Features in Fortran order, labels that are names, masks: as NumPy's users write them. */
static void write_numpy_forms(const char *path)
{
    static const char header[] =
        "{'descr': '<f4', 'fortran_order': True, 'shape': (12, 4), }            \n";
    const uint16_t length = sizeof header - 1;
    uint32_t names[PATH_VERTICES];
    bool train[PATH_VERTICES];
    uint8_t val[PATH_VERTICES];
    for (int v = 0; v < PATH_VERTICES; v++) {
        names[v] = (uint32_t) "yxz"[v % 3];
        train[v] = v % 4 == 1;
        val[v] = v % 4 == 3;
    }
    write_array(path, "labels", "<U1", 4, PATH_VERTICES, names);
    write_array(path, "train_idx", "|b1", 1, PATH_VERTICES, train);
    assert_int_equal(unlink(array_path(path, "val_idx")), 0);
    write_array(path, "val_mask", "|u1", 1, PATH_VERTICES, val);
    assert_int_equal(unlink(array_path(path, "test_idx")), 0);
    FILE *file = fopen(array_path(path, "features"), "wb");
    assert_non_null(file);
    fwrite("\x93NUMPY\x01\x00", 1, 8, file);
    fwrite(&length, sizeof length, 1, file);
    fwrite(header, 1, length, file);
    for (int j = 0; j < 4; j++)
        for (int v = 0; v < PATH_VERTICES; v++)
            fwrite(&(float){(float)(4 * v + j)}, sizeof(float), 1, file);
    assert_int_equal(fclose(file), 0);
}

static void check_numpy_row(const struct sl_source *source, const struct sl_part *part, int64_t k)
{
    const int64_t v = sl_source_vertex(source, part->first + k);
    assert_int_equal(part->data.labels[k], ((int32_t[]){1, 0, 2})[v % 3]);
    for (int64_t j = 0; j < 4; j++)
        assert_true(part->data.features_dense[4 * k + j] == (float)(4 * v + j));
}

SL_TEST(test_numpy_forms)
{
    static const char *const orders[] = {"none", "random"};
    const char *path = write_path("numpy");
    if (sl_running.rank == 0)
        write_numpy_forms(path);
    for (int o = 0; o < 2; o++) {
        struct sl_source source;
        struct sl_part part;
        if (read_path(path, orders[o], &source, &part))
            fail_msg("%s", sl_error_message());
        assert_int_equal(source.classes, 3);
        assert_string_equal(source.targets.class_names[0], "x");
        assert_string_equal(source.targets.class_names[2], "z");
        for (int64_t k = 0; k < part.data.adjacency.rows; k++)
            check_numpy_row(&source, &part, k);
        assert_int_equal(sum_of(part.data.train.count), 3);
        assert_int_equal(sum_of(part.data.val.count), 3);
        assert_int_equal(sum_of(part.data.test.count), 0);
        for (int64_t k = 0; k < part.data.train.count; k++)
            assert_int_equal(sl_source_vertex(&source, part.data.train.ids[k]) % 4, 1);
        for (int64_t k = 0; k < part.data.val.count; k++)
            assert_int_equal(sl_source_vertex(&source, part.data.val.ids[k]) % 4, 3);
        close_path(&source, &part);
    }
}

/* ---- Splits that are drawn ---- */

/* split[v]: that of every vertex, added up over the ranks. */
static void draw_splits(struct sl_runtime *rt, const char *path, const char *rule,
                        const char *order, int64_t split[PATH_VERTICES])
{
    struct sl_source source;
    struct sl_part part;
    assert_int_equal(sl_source_open(rt, path, &source), 0);
    assert_int_equal(sl_split_rule_parse(rule, 11, &source.splits.split_rule), 0);
    assert_int_equal(sl_source_order(rt, &source, order, 1), 0);
    const int64_t first = PATH_VERTICES * rt->rank / rt->ranks;
    const int64_t end = PATH_VERTICES * (rt->rank + 1) / rt->ranks;
    assert_int_equal(sl_source_read(rt, &source, first, end - first, &part), 0);
    const struct sl_index_set *sets[] = {&part.data.train, &part.data.val, &part.data.test};
    memset(split, 0, PATH_VERTICES * sizeof *split);
    for (int s = 0; s < 3; s++)
        for (int64_t k = 0; k < sets[s]->count; k++)
            split[sl_source_vertex(&source, sets[s]->ids[k])] += s + 1;
    sl_runtime_sum(rt, split, PATH_VERTICES);
    close_path(&source, &part);
}

/* One rank and several draw the same, whatever the order. */
SL_TEST(test_drawn_splits)
{
    static const char *const rules[] = {"1/2/rest", "2/0/rest", "50/25/25", "20/10/5"};
    const char *path = write_path("drawn");
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        struct sl_runtime alone = {.ranks = 1};
        int64_t expected[PATH_VERTICES], split[PATH_VERTICES], train = 0;
        draw_splits(&alone, path, rules[r], "none", expected);
        for (int v = 0; v < PATH_VERTICES; v++)
            train += expected[v] == 1;
        assert_int_equal(train, ((int64_t[]){3, 6, 6, 2})[r]);
        draw_splits(&sl_running, path, rules[r], "none", split);
        assert_memory_equal(split, expected, sizeof split);
        draw_splits(&sl_running, path, rules[r], "random", split);
        assert_memory_equal(split, expected, sizeof split);
    }
}

/* Weights that are all 1 are none; one that is not, in any part, makes all of them count. */
SL_TEST(test_weights)
{
    float weights[PATH_ENTRIES];
    const char *path = write_path("weights");
    for (int i = 0; i < PATH_ENTRIES; i++)
        weights[i] = 1.0f;
    for (int last = 1; last <= 2; last++) {
        struct sl_source source;
        struct sl_part part;
        weights[PATH_ENTRIES - 2] = weights[PATH_ENTRIES - 1] = (float)last;
        if (sl_running.rank == 0)
            write_array(path, "weights", "<f4", 4, PATH_ENTRIES, weights);
        assert_int_equal(read_path(path, "none", &source, &part), 0);
        assert_int_equal(part.data.adjacency.values != NULL, last != 1);
        close_path(&source, &part);
        sl_runtime_agree(&sl_running, 0); /* nobody reads any more */
    }
}

/* ---- Damage ---- */

/* One item of an array replaced: the file at fault, and what must be said. */
static const struct {
    const char *array;
    int64_t item;
    size_t bytes;
    const void *value;
    const char *phrase;
} damages[] = {
    {"indptr", 0, 8, ITEMS(int64_t, 1), "indptr.npy: starts at 1"},
    {"indptr", 12, 8, ITEMS(int64_t, 21), "indptr.npy: ends at 21"},
    {"indptr", 10, 8, ITEMS(int64_t, 3), "indptr.npy: falls from 17 to 3 at row 9"},
    {"indptr", 10, 8, ITEMS(int64_t, INT64_MAX), "9223372036854775807"},
    {"indptr", 8, 8, ITEMS(int64_t, INT64_MAX), "9223372036854775807"}, /* where parts of 3 meet */
    {"indptr", 6, 8, ITEMS(int64_t, INT64_MAX), "9223372036854775807"}, /* of 2 */
    {"indptr", 2, 8, ITEMS(int64_t, INT64_MIN), "-9223372036854775808"},
    {"indices", 21, 4, ITEMS(int32_t, 12), "indices.npy: row 11 has column 12"},
    {"indices", 0, 4, ITEMS(int32_t, -1), "indices.npy: row 0 has column -1"},
    {"indices", 20, 4, ITEMS(int32_t, 1), "has the neighbour"},
    {"indices", 2, 4, ITEMS(int32_t, 9), "has the neighbour"},
    {"weights", 21, 4, ITEMS(uint32_t, 0x7F800000), "weights.npy: row 11, column 10 is inf"},
    {"weights", 12, 4, ITEMS(float, 3), "other way round with equal weight"},
    {"features", 4 * 11 + 1, 4, ITEMS(uint32_t, 0x7FC00000), "features.npy: row 11, column 1 is"},
    {"features", 2, 4, ITEMS(uint32_t, 0x7F800000), "features.npy: row 0, column 2 is inf"},
    {"labels", 10, 4, ITEMS(int32_t, 3), "labels.npy: label 3 of vertex 10"},
    {"labels", 1, 4, ITEMS(int32_t, -2), "labels.npy: label -2 of vertex 1"},
    {"train_idx", 5, 8, ITEMS(int64_t, 12), "train_idx.npy: item 5 is vertex 12"},
    {"train_idx", 0, 8, ITEMS(int64_t, -1), "train_idx.npy: item 0 is vertex -1"},
    {"train_idx", 5, 8, ITEMS(int64_t, 4), "train_idx.npy: vertex 4 is there twice"},
    {"train_idx", 0, 8, ITEMS(int64_t, 4), "train_idx.npy: vertex 4 is there twice"},
    {"train_idx", 2, 8, ITEMS(int64_t, 1), "train_idx.npy: vertex 1 is there twice"},
    {"train_idx", 3, 8, ITEMS(int64_t, 2), "train_idx.npy: vertex 2 is there twice"},
    {"test_idx", 0, 8, ITEMS(int64_t, 8), "vertex 8 is in both val_idx and test_idx"},
    {"test_idx", 0, 8, ITEMS(int64_t, 2), "vertex 2 is in both test_idx and train_idx"},
    {"original_ids", 11, 8, ITEMS(int64_t, 12), "original_ids.npy: item 11 is vertex 12"},
    {"original_ids", 11, 8, ITEMS(int64_t, 3), "original_ids.npy: vertex"},
};

/* Swap an item of an array file with *value. */
static void exchange_item(const char *dataset, const char *array, int64_t item, void *value,
                          size_t bytes)
{
    char old[8];
    FILE *file = fopen(array_path(dataset, array), "r+b");
    assert_non_null(file);
    const long at = 128 + item * (long)bytes;
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fread(old, bytes, 1, file), 1);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fwrite(value, bytes, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    memcpy(value, old, bytes);
}

/* All ranks refuse, and one says why. */
static void assert_refused(const char *path, const char *order, const char *phrase)
{
    struct sl_source source;
    struct sl_part part;
    const int code = read_path(path, order, &source, &part);
    const char *message = sl_error_message();
    if (code != SL_ERR_DATA)
        fail_msg("order %s: expected a refusal with \"%s\"", order, phrase);
    if (*message && (!strstr(message, phrase) || !strstr(message, path)))
        fail_msg("order %s: \"%s\" lacks \"%s\"", order, message, phrase);
    assert_int_equal(sum_of(*message != '\0'), 1);
    close_path(&source, &part);
}

/* Under the last order rank 0 finds damaged edges before the others read any. */
SL_TEST(test_damage)
{
    static const char *const orders[] = {"none", "random", "rcm"};
    const char *path = write_path("damage");
    for (size_t d = 0; d < sizeof damages / sizeof *damages; d++) {
        char value[8];
        memcpy(value, damages[d].value, damages[d].bytes);
        if (sl_running.rank == 0)
            exchange_item(path, damages[d].array, damages[d].item, value, damages[d].bytes);
        for (int o = 0; o < 3; o++)
            assert_refused(path, orders[o], damages[d].phrase);
        if (sl_running.rank == 0)
            exchange_item(path, damages[d].array, damages[d].item, value, damages[d].bytes);
    }
    struct sl_source source;
    struct sl_part part;
    assert_int_equal(read_path(path, "none", &source, &part), 0); /* all of it is mended */
    close_path(&source, &part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_forms),  cmocka_unit_test(test_numpy_forms),
        cmocka_unit_test(test_drawn_splits), cmocka_unit_test(test_weights),
        cmocka_unit_test(test_damage),
    };
    sl_log_enable(false);
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
