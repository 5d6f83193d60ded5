/* Edge lists whose edges are not held, because the file is large, against the same file with edges
 * that are held: the same graph, and the same sentence where it is refused. */
#include "format_files.h"

#include "data/formats/edges.h"

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

/* ---- Columns, headers and names ---- */

/* Return the edges that were read as "source>target:weight", sources in order. */
static const struct read {
    const char *file, *text, *edges;
    enum sl_weight_column weights;
} readings[] = {
    {"index.csv", ",source,target\n0,10,11\n1,11,12\n2,12,10\n", "10>11 11>12 12>10", 0},
    {"index_other.csv", ",a,b\n0,10,11\n1,11,12\n", "10>11 11>12", 0},
    {"unnamed.csv", "Unnamed: 0,from,to\n0,1,2\n1,2,0\n", "1>2 2>0", 0},
    {"row_names.txt", "\"from\" \"to\"\n\"1\" 0 1\n\"2\" 1 2\n", "0>1 1>2", 0},
    {"weight_first.csv", "weight,source,target\n0.5,0,1\n0.25,1,2\n2,2,0\n",
     "0>1:0.5 1>2:0.25 2>0:2", 0},
    {"target_first.csv", "Target,Source\n1,0\n2,1\n", "0>1 1>2", 0},
    {"third_named.csv", "source,target,time\n0,1,7\n1,2,8\n", "0>1 1>2", 0},
    {"third_forced.csv", "source,target,time\n0,1,7\n1,2,8\n", "0>1:7 1>2:8", SL_WEIGHTS_THIRD},
    {"fourth.csv", "0,1,7,x\n1,2,8,y\n", "0>1:7 1>2:8", SL_WEIGHTS_THIRD},
    {"doubled.txt", "0 1\n1 2\n0 1\n0 1\n", "0>1 1>2", 0},
    {"doubled_weights.txt", "0 1 2\n1 2 1\n0 1 0.5\n", "0>1:2.5 1>2:1", 0},
    {"tabs.tsv", "New York\tBoston\nSan Francisco\tChicago\n",
     "New York>Boston San Francisco>Chicago", SL_WEIGHTS_NONE},
    {"quoted.csv", "\"New York, NY\",Boston\nBoston,\"say \"\"x\"\"\"\n",
     "New York, NY>Boston Boston>say \"x\"", 0},
    {"quoted.txt", "\"New York\" Boston\n", "New York>Boston", 0},
    {"bracket.txt", "\"f(x)\" g\n", "f(x)>g", 0},
    {"semicolons.csv", "source;target;weight\n0;1;0.5\n", "0>1:0.5", 0},
    {"blanks.txt", "0 1\t7\n1  2 8\n", "0>1:7 1>2:8", 0},
    {"first_is_edge.txt", "u v\nv w\nw u\n", "u>v v>w w>u", 0},
    {"first_is_header.txt", "from to\nann bob\nbob carl\n", "ann>bob bob>carl", 0},
    {"head_tail.txt", "head body\nbody tail\ntail head\n", "head>body body>tail tail>head", 0},
    {"comment.txt", "0 1 # first\n1 2\n2 0\n", "0>1 1>2 2>0", 0},
    {"ends_as_header.txt", "i j 0.5\nj k 0.25\nk i 2\n", "i>j:0.5 j>k:0.25 k>i:2", 0},
    {"bars.tsv", "sp|P1|A_HUMAN\tsp|P2|B_HUMAN\t0.5\n", "sp|P1|A_HUMAN>sp|P2|B_HUMAN:0.5", 0},
    {"titles.tsv", "Python_(programming_language)\tC++\n", "Python_(programming_language)>C++", 0},
    {"magic.txt", "PAR1 ARROW1\nARROW1 BZh91\n", "PAR1>ARROW1 ARROW1>BZh91", 0},
    {"bzip.txt", "BZhang Li\nLi digraph\n", "BZhang>Li Li>digraph", 0},
    {"digraph.txt", "digraph tree\n", "digraph>tree", 0},
    {"p.txt", "p 3 4\n3 q 5\n", "p>3:4 3>q:5", 0},
    {"mixed.cites", "100157 364207\n100157 bradshaw97\n", "100157>364207 100157>bradshaw97", 0},
    {"mark.txt",
     "\xEF\xBB\xBF"
     "0 1\n1 2\n",
     "0>1 1>2", 0},
    {"mark.csv", "\xEF\xBB\xBFsource,target\n0,1\n", "0>1", 0},
    {"out.konect", "% sym positive\n% 2 3 3\n1 2 5 1082\n2 3 1 1083\n", "1>2:5 2>3:1", 0},
};

/* Return the name of vertex v. */
static void name_of(const struct sl_dataset *data, int64_t v, char out[64])
{
    if (data->vertex_ids.data && sl_npy_is_text(&data->vertex_ids))
        sl_npy_text(&data->vertex_ids, v, out);
    else
        snprintf(out, 64, "%d",
                 (int)(data->vertex_ids.data ? sl_npy_integer(&data->vertex_ids, v) : v));
}

static void list_edges(const struct sl_dataset *data, char *out, size_t size)
{
    struct sl_block *blocks = NULL;
    struct sl_csr turned, *a = &turned; /* row v of the adjacency has the sources of edges to v */
    char source[64] = "", target[64] = "";
    assert_int_equal(sl_csr_transpose(&data->adjacency, &blocks, a), SL_OK);
    out[0] = '\0';
    for (int64_t v = 0; v < a->rows; v++)
        for (int64_t k = a->indptr[v]; k < a->indptr[v + 1]; k++) {
            const size_t used = strlen(out);
            name_of(data, v, source);
            name_of(data, a->indices[k], target);
            snprintf(out + used, size - used, "%s%s>%s", used ? " " : "", source, target);
            if (a->values)
                snprintf(out + strlen(out), size - strlen(out), ":%g", (double)a->values[k]);
        }
    sl_block_free_all(&blocks);
}

static void test_layouts(void **state)
{
    for (size_t k = 0; k < COUNT(readings); k++) {
        const struct read *r = &readings[k];
        const char *path = files_text(*state, r->file, r->text);
        for (int64_t large = 1; large <= 1000; large *= 1000) { /* streamed, and held */
            struct sl_dataset data;
            char edges[256];
            if (open_as(path, large, 0, false, r->weights, &data) != SL_OK)
                fail_msg("%s", sl_error_message());
            list_edges(&data, edges, sizeof edges);
            if (strcmp(edges, r->edges) != 0)
                fail_msg("%s: read as \"%s\", expected \"%s\"", r->file, edges, r->edges);
            sl_dataset_close(&data);
        }
    }
}

/* Ends of edges in column 3, without and with numbers of rows before the header's columns. */
static void test_forced_weights(void **state)
{
    static const char *const texts[] = {"weight,source,target\n1,0,1\n",
                                        "source,target\n0,3,1\n1,1,2\n"};
    for (size_t k = 0; k < COUNT(texts); k++) {
        const char *path = files_text(*state, "forced.csv", texts[k]);
        struct sl_dataset data;
        assert_int_equal(open_as(path, 1000, 0, false, SL_WEIGHTS_THIRD, &data), SL_ERR_DATA);
        assert_non_null(strstr(sl_error_message(), "column 3, 'target', is an end of edges"));
    }
}

/* One separator in the whole file. */
static void test_separators(void **state)
{
    const char *path = files_text(*state, "two.txt", "0\t1\n1 2\n");
    struct sl_dataset data;
    assert_int_equal(open_as(path, 1000, 0, false, 0, &data), SL_ERR_DATA);
    assert_non_null(strstr(sl_error_message(), "line 2: '1 2' has two numbers, expected one "
                                               "separator in the whole file"));
}

/* The weight of an edge that goes both ways. */
static void test_ways(void **state)
{
    static const struct {
        enum sl_symmetrize way;
        const char *edges;
    } ways[] = {
        {SL_SYMMETRIZE_MAX, "0>1:0.5 1>0:0.5 1>2:4 2>1:4 2>2:3"},
        {SL_SYMMETRIZE_SUM, "0>1:0.25 1>0:0.25 1>2:4 2>1:4 2>2:3"},
        {SL_SYMMETRIZE_MEAN, "0>1:0.125 1>0:0.125 1>2:4 2>1:4 2>2:3"},
    };
    const char *path = files_text(*state, "both.txt", "0 1 0.5\n1 0 -0.25\n1 2 4\n2 2 3\n");
    for (size_t k = 0; k < COUNT(ways); k++) {
        const struct sl_read_options options = {.symmetrize = ways[k].way};
        struct sl_dataset data;
        char edges[256];
        assert_int_equal(sl_dataset_open_with(path, &options, &data), SL_OK);
        list_edges(&data, edges, sizeof edges);
        assert_string_equal(edges, ways[k].edges);
        sl_dataset_close(&data);
    }
}

static const char *const texts[] = {
    "0 1\n1 2\n2 0\n2 2\n0 1\n",
    "# a comment\nsource,target\n0,3\n3,1\n1,0\n5,5\n",
    "1 2 0.5\n2 1 0.25\n2 3 1e-3\n1 2 2\n3 3 -1\n",
    "1\t2\n2\t3\n3\t1\n",
    "4 3\n0 1\n1 2\n2 3\n",                                /* a size in front */
    "9 9\n4 3\n0 1\n1 2\n2 3\n",                           /* in the second line */
    "0 100000\n100000 7\n7 0\n",                           /* large numbers are renumbered */
    "0 9223372036854775807\n9223372036854775807 1\n2 1\n", /* the largest */
    "source,target\n",                                     /* no edge */
    "a b\nb c\nc a\n",                                     /* names */
    "0 1\n1 0\n2 1\n3 0\n4 1\n5 0\n6 1\n7 0\n8 1\n9 0\n",  /* labels */
    "0 1 9\n1 2 9\n2 0 9\n",
    "0 1\n1 x\n",
    "0 1\n1 2 3\n",
    "0 1\n-1 2\n",
    "0 1\n1 99999999999999999999\n",
    "0 1 1\n1 2 nan\n",
    "0 1\n\n1 2\r\n2 3\r3 0\n",
    "",
    "0 0\n",
    "0 1\n1 0\n0 1\n0 1 # and again\n",
    "% sym unweighted\n1 2\n2 3\n2 3\n",
    "source,target,time\n0,1,7\n1,2,8\n",
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

/* A list of names without a name has no address. */
SL_TEST(test_no_names)
{
    const struct sl_string_ids names = {.count = 0};
    struct sl_dataset data = {.vertices = 1};
    assert_int_equal(sl_edges_keep_names("none", &names, &data), SL_OK);
    assert_int_equal(data.vertices, 0);
    sl_dataset_close(&data);
}

SL_TEST(test_real)
{
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

/* A random graph: the rows are what a direct count has, a row for each target. */
static void test_reference(void **state)
{
    enum { N = 40, EDGES = 3000 };
    static char text[EDGES * 8];
    static int times[N][N];
    size_t used = 0;
    for (unsigned k = 0; k < EDGES; k++) {
        const unsigned u = k * k * 7919u % 1009u % N, v = k * 104729u % 2003u % N;
        times[v][u]++;
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
        cmocka_unit_test_setup_teardown(test_layouts, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_forced_weights, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_separators, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_ways, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_texts, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_reference, files_setup, files_teardown),
        cmocka_unit_test(test_no_names),
        cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
