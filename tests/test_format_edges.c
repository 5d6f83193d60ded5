/* Edge lists whose edges are not held, because the file is large, against the same file with edges
 * that are held: the same graph, and the same sentence where it is refused. */
#include "format_files.h"

static int open_as(const char *path, int64_t large_file, int64_t first, bool both,
                   enum sl_weight_column weights, struct sl_dataset *data)
{
    const struct sl_read_options options = {
        .large_file = large_file, .first_vertex = first, .symmetrize = both, .weights = weights};
    return sl_dataset_open_with(path, &options, data);
}

static void compare(const char *path, int64_t first, bool both, enum sl_weight_column weights)
{
    struct sl_dataset held, streamed;
    char refusal[512] = "";
    const int code = open_as(path, INT64_MAX, first, both, weights, &held);
    if (code)
        snprintf(refusal, sizeof refusal, "%s", sl_error_message());
    assert_int_equal(open_as(path, 1, first, both, weights, &streamed), code);
    if (code) {
        assert_string_equal(sl_error_message(), refusal);
        return;
    }
    assert_same_csr(&held.adjacency, &streamed.adjacency);
    assert_int_equal(held.adjacency.values == NULL, streamed.adjacency.values == NULL);
    assert_int_equal(held.symmetric, streamed.symmetric);
    if (!both)
        assert_int_equal(held.merged_edges, streamed.merged_edges);
    assert_int_equal(held.vertex_ids.data == NULL, streamed.vertex_ids.data == NULL);
    for (int64_t v = 0; held.vertex_ids.data && v < held.vertices; v++)
        assert_int_equal(sl_npy_integer(&held.vertex_ids, v),
                         sl_npy_integer(&streamed.vertex_ids, v));
    sl_dataset_close(&held);
    sl_dataset_close(&streamed);
}

static const char *const texts[] = {
    "0 1\n1 2\n2 0\n2 2\n0 1\n",
    "# a comment\nsource,target\n0,3\n3,1\n1,0\n5,5\n",
    "1 2 0.5\n2 1 0.25\n2 3 1e-3\n1 2 2\n3 3 -1\n",
    "1\t2\n2\t3\n3\t1\n",
    "4 3\n0 1\n1 2\n2 3\n",                               /* a size in front */
    "9 9\n4 3\n0 1\n1 2\n2 3\n",                          /* in the second line */
    "0 100000\n100000 7\n7 0\n",                          /* large numbers are renumbered */
    "a b\nb c\nc a\n",                                    /* names */
    "0 1\n1 0\n2 1\n3 0\n4 1\n5 0\n6 1\n7 0\n8 1\n9 0\n", /* labels */
    "0 1 9\n1 2 9\n2 0 9\n",
    "0 1\n1 x\n",
    "0 1\n1 2 3\n",
    "0 1\n-1 2\n",
    "0 1\n1 99999999999999999999\n",
    "0 1 1\n1 2 nan\n",
    "0 1\n\n1 2\r\n2 3\r3 0\n",
    "",
    "0 0\n",
};

static void test_texts(void **state)
{
    for (size_t k = 0; k < COUNT(texts); k++) {
        char name[32];
        snprintf(name, sizeof name, "edges%zu.txt", k);
        const char *path = files_text(*state, name, texts[k]);
        for (int way = 0; way < 12; way++)
            compare(path, way % 2, way / 2 % 2, (enum sl_weight_column)(way / 4));
    }
}

static void test_real(void **state)
{
    (void)state;
    static const char *const names[] = {
        "original/gnutella08_edgelist/p2p-Gnutella08.edgelist",
        "original/snap_email_eu_core/email-Eu-core.txt",
        "original/snap_facebook_combined/facebook_combined.txt",
        "original/musae_facebook/facebook_edges.csv",
        "original/cora_libsvm_like/net.txt",
        "original/arxiv2023_csvgz/edges.csv.gz",
    };
    for (size_t k = 0; k < COUNT(names); k++)
        for (int both = 0; both < 2; both++)
            compare(format_shared(names[k]), 0, both, SL_WEIGHTS_AUTO);
}

/* A random graph: the rows are what a direct count has. */
static void test_reference(void **state)
{
    enum { N = 40, EDGES = 3000 };
    static char text[EDGES * 8];
    static int times[N][N];
    size_t used = 0;
    for (unsigned k = 0; k < EDGES; k++) {
        const unsigned u = k * k * 7919u % 1009u % N, v = k * 104729u % 2003u % N;
        times[u][v]++;
        used += (size_t)snprintf(text + used, sizeof text - used, "%u,%u\n", u, v);
    }
    struct sl_dataset data;
    int64_t different = 0;
    assert_int_equal(
        open_as(files_text(*state, "random.csv", text), 1, 0, false, SL_WEIGHTS_AUTO, &data),
        SL_OK);
    assert_int_equal(data.vertices, N);
    for (int u = 0; u < N; u++) {
        int64_t at = data.adjacency.indptr[u];
        for (int v = 0; v < N; v++)
            if (times[u][v]) {
                assert_int_equal(data.adjacency.indices[at++], v);
                different++;
            }
        assert_int_equal(at, data.adjacency.indptr[u + 1]);
    }
    assert_int_equal(data.merged_edges, EDGES - different);
    sl_dataset_close(&data);
}

int main(void)
{
    sl_log_enable(false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_texts, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_reference, files_setup, files_teardown),
        cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
