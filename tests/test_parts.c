/* Reading a dataset by parts: what each rank gets, row by row, against the whole; and damaged
 * files, which every rank must refuse and one must name. Run alone and by tests/parts.sh on several
 * ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "assembly/partition.h"
#include "core/error.h"
#include "core/log.h"
#include "core/spread.h"
#include "tests/fixtures.h"
#include "tests/running.h"

/* ---- Messages between ranks ---- */

/* Rank s has (3 s + r) % 4 items for rank r, none for the last one: each says whose it is and
 * which. */
static int64_t items_for(int64_t s, int64_t r)
{
    return r == sl_running.ranks - 1 && r > 0 ? 0 : (3 * s + r) % 4;
}

static void test_exchange(void **state)
{
    (void)state;
    const int ranks = sl_running.ranks, rank = sl_running.rank;
    int64_t first[64] = {0}, items[256][3], *received, count, k = 0;
    assert_true(ranks < 64);
    for (int r = 0; r < ranks; r++) {
        first[r + 1] = first[r] + items_for(rank, r);
        for (int64_t i = 0; i < items_for(rank, r); i++)
            memcpy(items[first[r] + i], (int64_t[]){rank, r, i}, sizeof *items);
    }
    assert_int_equal(
        sl_runtime_exchange(&sl_running, items, first, sizeof *items, (void **)&received, &count),
        0);
    for (int s = 0; s < ranks; s++)
        for (int64_t i = 0; i < items_for(s, rank); i++, k++)
            assert_memory_equal(received + 3 * k, ((int64_t[]){s, rank, i}), sizeof *items);
    assert_int_equal(k, count);
    free(received);
}

/* More than one message can hold: pieces must keep their order. */
static void test_large_messages(void **state)
{
    (void)state;
    enum { COUNT = (5 << 20) + 3 }; /* of 4 bytes: more than 16 MiB */
    const int next = (sl_running.rank + 1) % sl_running.ranks;
    const int last = (sl_running.rank + sl_running.ranks - 1) % sl_running.ranks;
    int32_t *items = malloc(COUNT * sizeof *items), *received;
    int64_t first[64], count;
    for (int r = 0; r <= sl_running.ranks; r++)
        first[r] = r <= next ? 0 : COUNT;
    for (int32_t i = 0; i < COUNT; i++)
        items[i] = 7 * i + sl_running.rank;
    assert_int_equal(
        sl_runtime_exchange(&sl_running, items, first, sizeof *items, (void **)&received, &count),
        0);
    assert_int_equal(count, COUNT);
    for (int32_t i = 0; i < COUNT; i++)
        if (received[i] != 7 * i + last)
            fail_msg("item %d is %d", (int)i, (int)received[i]);
    sl_runtime_broadcast(&sl_running, sl_running.ranks - 1, items, COUNT * sizeof *items);
    for (int32_t i = 0; i < COUNT; i++)
        if (items[i] != 7 * i + sl_running.ranks - 1)
            fail_msg("item %d is %d after the broadcast", (int)i, (int)items[i]);
    free(items);
    free(received);
}

/* ---- Parts of valid datasets ---- */

/* A path that all ranks have, in the directory of rank 0. */
static const char *shared_path(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s", sl_running_path(name));
    sl_runtime_broadcast(&sl_running, 0, path, sizeof path);
    return path;
}

/* The directory of a dataset, written by rank 0. */
static const char *store(const struct sl_dataset *data, const char *name)
{
    const char *path = shared_path(name);
    const int code = sl_running.rank == 0 ? sl_dataset_write(data, path) : 0;
    assert_int_equal(sl_runtime_agree(&sl_running, code), 0);
    return path;
}

/* A rank's part, and the whole that it is compared with: dense, in the order of the files. */
struct whole {
    const struct sl_dataset *data;
    double *adjacency; // (n, n)
    double *features;  // (n, f)
    const struct sl_source *source;
    struct sl_partition partition;
    struct sl_part part;
};

static void check_csr_row(const struct sl_csr *csr, int64_t k, const double *expected,
                          const int32_t *vertex)
{
    int64_t stored = 0;
    for (int64_t c = 0; c < csr->cols; c++)
        stored += expected[c] != 0.0;
    assert_int_equal(csr->indptr[k + 1] - csr->indptr[k], stored);
    for (int64_t e = csr->indptr[k]; e < csr->indptr[k + 1]; e++) {
        const int32_t c = csr->indices[e];
        assert_true(e == csr->indptr[k] || csr->indices[e - 1] < c);
        assert_true((csr->values ? (double)csr->values[e] : 1.0) ==
                    expected[vertex ? vertex[c] : c]);
    }
}

static void check_row(const struct whole *w, int64_t k)
{
    const struct sl_dataset *own = &w->part.data;
    const int64_t n = w->data->vertices, f = w->data->features;
    const int64_t v = sl_source_vertex(w->source, w->part.first + k);
    check_csr_row(&own->adjacency, k, w->adjacency + v * n, w->source->vertex);
    if (own->feature_form == SL_FEATURES_CSR)
        check_csr_row(&own->features_csr, k, w->features + v * f, NULL);
    else if (own->feature_form == SL_FEATURES_DENSE)
        assert_memory_equal(own->features_dense + k * f, w->data->features_dense + v * f,
                            (size_t)f * sizeof(float));
    assert_int_equal(own->labels[k], w->data->labels[v]);
    if (own->original)
        assert_int_equal(own->original[k], v);
    else
        assert_null(w->source->vertex);
}

/* Every own vertex of the set is there, and no other. */
static void check_split(const struct whole *w, const struct sl_index_set *own,
                        const struct sl_index_set *all)
{
    bool *in = calloc((size_t)w->data->vertices, sizeof *in);
    int64_t at = 0;
    sl_fixture_mask(all, w->data->vertices, in);
    for (int64_t k = 0; k < w->part.data.adjacency.rows; k++)
        if (in[sl_source_vertex(w->source, w->part.first + k)]) {
            assert_true(at < own->count);
            assert_int_equal(own->ids[at++], w->part.first + k);
        }
    assert_int_equal(at, own->count);
    free(in);
}

static void adjacency_row(const void *part, int64_t r, int64_t *count, const int32_t **columns,
                          const float **values)
{
    const struct sl_part *own = part;
    const struct sl_csr *a = &own->data.adjacency;
    const int64_t first = a->indptr[r - own->first];
    *count = a->indptr[r - own->first + 1] - first;
    *columns = a->indices + first;
    *values = a->values ? a->values + first : NULL;
}

static int row_owner(const void *partition, int i, int k)
{
    const struct sl_partition *p = partition;
    int rank = 0;
    (void)k;
    while (i >= p->rank_cut[rank + 1])
        rank++;
    return rank;
}

/* Rows of the transpose are columns of the whole. */
static void check_transpose(struct whole *w)
{
    const int64_t n = w->data->vertices;
    const struct sl_csr *a = &w->part.data.adjacency;
    double *column = calloc((size_t)n, sizeof *column);
    const struct sl_spread_source source = {
        .first = w->part.first,
        .end = w->part.first + a->rows,
        .row = adjacency_row,
        .context = &w->part,
        .transposed = true,
        .tile_rows = w->partition.tiles,
        .tile_cols = 1,
        .row_cut = w->partition.row_cut,
        .col_cut = (const int64_t[]){0, n},
        .owner = row_owner,
        .owner_context = &w->partition,
    };
    struct sl_spread spread;
    assert_int_equal(sl_spread_create(&sl_running, &source, &spread), 0);
    assert_int_equal(spread.rows, a->rows);
    const struct sl_csr transposed = {spread.rows, n, spread.indptr, spread.columns, spread.values};
    for (int64_t k = 0; k < spread.rows; k++) {
        const int64_t v = sl_source_vertex(w->source, w->part.first + k);
        for (int64_t u = 0; u < n; u++)
            column[u] = w->adjacency[u * n + v];
        check_csr_row(&transposed, k, column, w->source->vertex);
    }
    sl_spread_free(&spread);
    free(column);
}

static void check_part(struct whole *w, int64_t tiles)
{
    const int rank = sl_running.rank;
    const struct sl_partition_options options = {
        .balance = "nnz", .tiles = tiles, .cores = 1, .workers = 1, .width = 16};
    assert_int_equal(sl_partition_create(&sl_running, &w->partition, w->source, &options), 0);
    const int64_t first = w->partition.row_cut[w->partition.rank_cut[rank]];
    const int64_t end = w->partition.row_cut[w->partition.rank_cut[rank + 1]];
    if (sl_source_read(&sl_running, w->source, first, end - first, &w->part))
        fail_msg("%s: %s", w->data->name, sl_error_message());
    assert_int_equal(w->part.first, first);
    assert_int_equal(w->part.data.adjacency.rows, end - first);
    assert_int_equal(w->part.data.symmetric, w->data->symmetric);
    assert_int_equal(w->part.entries, w->data->adjacency.indptr[w->data->vertices]);
    for (int64_t k = 0; k < end - first; k++)
        check_row(w, k);
    check_split(w, &w->part.data.train, &w->data->train);
    check_split(w, &w->part.data.val, &w->data->val);
    check_split(w, &w->part.data.test, &w->data->test);
    check_transpose(w);
    sl_partition_measure(&sl_running, &w->partition, &w->part);
    assert_true(w->partition.tile_imbalance >= 1.0 && w->partition.rank_imbalance >= 1.0);
    sl_part_close(&w->part);
    sl_partition_destroy(&w->partition);
}

/* `path` NULL: in memory. */
static void check_dataset(struct whole *w, const char *path, const char *order)
{
    const int64_t tiles[] = {1, 3, sl_running.ranks, w->data->vertices};
    struct sl_source source;
    int code = path ? sl_source_open(&sl_running, path, &source) : sl_source_of(w->data, &source);
    if (!code)
        code = sl_source_order(&sl_running, &source, order, 7);
    if (code)
        fail_msg("%s: %s", w->data->name, sl_error_message());
    w->source = &source;
    for (size_t t = 0; t < sizeof tiles / sizeof *tiles; t++)
        check_part(w, tiles[t]);
    sl_source_close(&source);
}

static void test_parts(void **state)
{
    (void)state;
    static const char *const orders[] = {"none", "random", "rabbit"};
    for (int f = 0; f < sl_fixture_count; f++) {
        const int64_t n = sl_fixtures[f].vertices;
        if (n == 0)
            continue;
        struct sl_dataset data = sl_fixture_open(&sl_fixtures[f]);
        const char *path = store(&data, sl_fixtures[f].name);
        struct whole w = {.data = &data,
                          .adjacency = calloc((size_t)(n * n), sizeof *w.adjacency),
                          .features = calloc((size_t)(n * data.features), sizeof *w.features)};
        sl_fixture_dense_adjacency(&data, w.adjacency);
        sl_fixture_dense_features(&data, w.features);
        for (int o = 0; o < 3; o++) {
            check_dataset(&w, NULL, orders[o]);
            check_dataset(&w, path, orders[o]);
        }
        free(w.adjacency);
        free(w.features);
        sl_fixture_close(&data);
    }
}

/* ---- What a rank touches ---- */

/* Bytes of the files in a directory that are in this process's memory. */
static int64_t resident_bytes(const char *directory)
{
    char line[1024];
    bool inside = false;
    unsigned long start, end;
    long kilobytes;
    int64_t sum = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx", &start, &end) == 2) /* a mapping's first line */
            inside = strstr(line, directory) != NULL;
        else if (inside && sscanf(line, "Rss: %ld kB", &kilobytes) == 1)
            sum += kilobytes * 1024;
    }
    fclose(maps);
    return sum;
}

static int64_t heap_bytes(const struct sl_block *block)
{
    int64_t sum = 0;
    for (; block; block = block->next)
        sum += block->mapped ? 0 : (int64_t)block->bytes;
    return sum;
}

/* Vertex v has the `degree` neighbours after it, and twice as many if v is below n / 4; the last
 * ones have the first vertices instead. */
static struct sl_dataset make_chain(int64_t n, int64_t degree, int64_t features)
{
    struct sl_dataset data = {.name = (char *)"chain",
                              .vertices = n,
                              .features = features,
                              .classes = 2,
                              .feature_form = SL_FEATURES_DENSE};
    int64_t *indptr = sl_block_array(&data.blocks, n + 1, sizeof *indptr);
    int32_t *indices = sl_block_array(&data.blocks, 2 * n * degree, sizeof *indices);
    int32_t *labels = sl_block_array(&data.blocks, n, sizeof *labels);
    int64_t *train = sl_block_array(&data.blocks, n, sizeof *train);
    float *x = sl_block_array(&data.blocks, n * features, sizeof *x);
    assert_true(indptr && indices && labels && train && x);
    indptr[0] = 0;
    for (int64_t v = 0; v < n; v++) {
        const int64_t count = v < n / 4 ? 2 * degree : degree;
        for (int64_t k = 0; k < count; k++)
            indices[indptr[v] + k] = (int32_t)(v + count < n ? v + 1 + k : k);
        indptr[v + 1] = indptr[v] + count;
        labels[v] = (int32_t)(v % 2);
        train[v] = v;
    }
    for (int64_t i = 0; i < n * features; i++)
        x[i] = (float)(i % 9);
    data.adjacency = (struct sl_csr){n, n, indptr, indices, NULL};
    data.features_dense = x;
    data.labels = labels;
    data.train = (struct sl_index_set){train, n};
    return data;
}

/* A rank of P reads a P-th of the bytes, touches a P-th of the pages, and copies no more. */
static void check_share(const char *path, const char *order, int64_t all)
{
    const int ranks = sl_running.ranks, rank = sl_running.rank;
    struct sl_source source;
    struct sl_part part;
    struct sl_partition p;
    const struct sl_partition_options options = {
        .balance = "nnz", .tiles = 8 * ranks, .cores = 1, .workers = 1, .width = 16};
    assert_int_equal(sl_source_open(&sl_running, path, &source), 0);
    assert_int_equal(sl_source_order(&sl_running, &source, order, 1), 0);
    assert_int_equal(sl_partition_create(&sl_running, &p, &source, &options), 0);
    const int64_t first = p.row_cut[p.rank_cut[rank]];
    const int64_t rows = p.row_cut[p.rank_cut[rank + 1]] - first;
    assert_int_equal(sl_source_read(&sl_running, &source, first, rows, &part), 0);
    const double share = (double)all / ranks, pages = (double)resident_bytes(path),
                 heap = (double)heap_bytes(part.data.blocks);
    const double read = (double)part.bytes_read;
    printf("order %s, rank %d of %d: %.1f MB read, %.1f MB of the files in memory, %.1f MB copied, "
           "of %.1f MB in all\n",
           order, rank, ranks, 1e-6 * read, 1e-6 * pages, 1e-6 * heap, 1e-6 * (double)all);
    /* Work is balanced, not bytes: the ranks with short rows have more features. Where a part ends,
     * the system may bring 2 MiB of a file at once. */
    assert_true(read < 1.3 * share && read > 0.7 * share);
    assert_true(pages < 1.3 * share + 4 * (2 << 20));
    assert_true(heap < 1.3 * share);
    if (!source.vertex)
        assert_true(heap < 0.1 * share && pages > 0.7 * share);
    sl_part_close(&part);
    sl_partition_destroy(&p);
    sl_source_close(&source);
}

static void test_share(void **state)
{
    (void)state;
    const int64_t n = 300000, degree = 30, features = 40;
    const int64_t all = n * (8 + 4 + 8 + 4 * features) + 4 * (n / 4 * 5 * degree);
    struct sl_dataset data = make_chain(n, degree, features);
    const char *path = store(&data, "chain");
    sl_block_free_all(&data.blocks);
    check_share(path, "none", all);
    check_share(path, "random", all);
}

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
    return store(&data, name);
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

static void test_other_forms(void **state)
{
    (void)state;
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

static void test_numpy_forms(void **state)
{
    (void)state;
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
        assert_string_equal(source.class_names[0], "x");
        assert_string_equal(source.class_names[2], "z");
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
    assert_int_equal(sl_split_rule_parse(rule, 11, &source.split_rule), 0);
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
static void test_drawn_splits(void **state)
{
    (void)state;
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
static void test_weights(void **state)
{
    (void)state;
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
    {"indices", 20, 4, ITEMS(int32_t, 1), "edge"},
    {"indices", 2, 4, ITEMS(int32_t, 9), "edge"},
    {"weights", 21, 4, ITEMS(uint32_t, 0x7F800000), "weights.npy: row 11, column 10 is inf"},
    {"weights", 12, 4, ITEMS(float, 3), "reverse edge of equal weight"},
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

/* What is there in exchange. */
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
static void test_damage(void **state)
{
    (void)state;
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
        cmocka_unit_test(test_share),          cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_large_messages), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_other_forms),    cmocka_unit_test(test_numpy_forms),
        cmocka_unit_test(test_drawn_splits),   cmocka_unit_test(test_weights),
        cmocka_unit_test(test_damage),
    };
    sl_log_enable(false);
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
