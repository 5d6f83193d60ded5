/* Reading a dataset by parts: what each rank gets, row by row, against the whole, and what it
 * touches. Run alone and by tests/parts.sh on several ranks. */
#include <unistd.h>

#include "assembly/partition.h"
#include "core/error.h"
#include "core/log.h"
#include "core/spread.h"
#include "tests/fixtures.h"
#include "tests/running.h"
#include "tests/unit.h"

/* ---- Messages between ranks ---- */

/* Rank s has (3 s + r) % 4 items for rank r, none for the last one: each says whose it is and
 * which. */
static int64_t items_for(int64_t s, int64_t r)
{
    return r == sl_running.ranks - 1 && r > 0 ? 0 : (3 * s + r) % 4;
}

SL_TEST(test_exchange)
{
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
SL_TEST(test_large_messages)
{
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
    check_csr_row(&own->adjacency, k, w->adjacency + v * n, w->source->order.vertex);
    if (own->feature_form == SL_FEATURES_CSR)
        check_csr_row(&own->features_csr, k, w->features + v * f, NULL);
    else if (own->feature_form == SL_FEATURES_DENSE)
        assert_memory_equal(own->features_dense + k * f, w->data->features_dense + v * f,
                            (size_t)f * sizeof(float));
    assert_int_equal(own->labels[k], w->data->labels[v]);
    if (own->original)
        assert_int_equal(own->original[k], v);
    else
        assert_null(w->source->order.vertex);
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
        check_csr_row(&transposed, k, column, w->source->order.vertex);
    }
    sl_spread_free(&spread);
    free(column);
}

static void check_part(struct whole *w, int64_t tiles)
{
    const int rank = sl_running.rank;
    const struct sl_partition_options options = {
        .balance = SL_BALANCE_NNZ, .tiles = tiles, .cores = 1, .workers = 1, .width = 16};
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

/* The dataset in memory and stored, in any order. */
static void check_orders(struct whole *w, const char *name)
{
    static const char *const orders[] = {"none", "random", "rabbit"};
    const char *path = sl_running_store(w->data, name);
    for (int o = 0; o < 3; o++) {
        check_dataset(w, NULL, orders[o]);
        check_dataset(w, path, orders[o]);
    }
}

/* CSR features once more, stored dense: they are read as CSR. */
static void check_lying_dense(const struct whole *csr)
{
    struct sl_dataset data = *csr->data;
    struct whole w = *csr;
    const int64_t count = data.vertices * data.features;
    char name[80];
    float *x = calloc((size_t)count, sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)w.features[i];
    data.feature_form = SL_FEATURES_DENSE;
    data.features_dense = x;
    w.data = &data;
    snprintf(name, sizeof name, "%s-dense", data.name);
    check_orders(&w, name);
    free(x);
}

SL_TEST(test_parts)
{
    for (int f = 0; f < sl_fixture_count; f++) {
        const int64_t n = sl_fixtures[f].vertices;
        if (n == 0)
            continue;
        struct sl_dataset data = sl_fixture_open(&sl_fixtures[f]);
        struct whole w = {.data = &data,
                          .adjacency = calloc((size_t)(n * n), sizeof *w.adjacency),
                          .features = calloc((size_t)(n * data.features), sizeof *w.features)};
        sl_fixture_dense_adjacency(&data, w.adjacency);
        sl_fixture_dense_features(&data, w.features);
        check_orders(&w, sl_fixtures[f].name);
        if (data.feature_form == SL_FEATURES_CSR)
            check_lying_dense(&w);
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
        .balance = SL_BALANCE_NNZ, .tiles = 8 * ranks, .cores = 1, .workers = 1, .width = 16};
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
    if (!source.order.vertex)
        assert_true(heap < 0.1 * share && pages > 0.7 * share);
    sl_part_close(&part);
    sl_partition_destroy(&p);
    sl_source_close(&source);
}

SL_TEST(test_share)
{
    const int64_t n = 300000, degree = 30, features = 40;
    const int64_t all = n * (8 + 4 + 8 + 4 * features) + 4 * (n / 4 * 5 * degree);
    struct sl_dataset data = make_chain(n, degree, features);
    const char *path = sl_running_store(&data, "chain");
    sl_block_free_all(&data.blocks);
    check_share(path, "none", all);
    check_share(path, "random", all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_large_messages),
        cmocka_unit_test(test_parts),
    };
    sl_log_enable(false);
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
