/* Links of validation and test: their draw among the edges of graphs of every kind, negatives,
 * directions, files, other ways through a dataset, errors. */
#include "data_files.h"

#include "data/links.h"
#include "data/relations.h"
#include "data/select.h"
#include "data/source.h"
#include "tests/fixtures.h"

static struct sl_runtime alone = {.ranks = 1};

static const struct sl_fixture typed = {SL_FIXTURE("relations", 41, 3, 2, 5),
                                        .directed = true,
                                        .weighted = true,
                                        .self_loops = true,
                                        .edge_features = 2,
                                        .relations = 4,
                                        .form = SL_FEATURES_DENSE,
                                        .seed = 21},
                               featured = {SL_FIXTURE("edge-features", 39, 3, 2, 6),
                                           .weighted = true, .edge_features = 3,
                                           .form = SL_FEATURES_DENSE, .seed = 22};

static const char *const kinds[] = {
    "undirected", "undirected-weighted",          "directed", "directed-weighted",
    "self-loops", "directed-weighted-self-loops", "isolated"};
enum { KINDS = sizeof kinds / sizeof *kinds, ALL_KINDS = KINDS + 2 };

static struct sl_dataset open_kind(int k)
{
    return sl_fixture_open(k < KINDS ? sl_fixture_find(kinds[k]) : k == KINDS ? &typed : &featured);
}

static const struct sl_link_rule usual = {
    .given = true, .shares = {70, 10, 20}, .negatives = 3, .seed = 5};

/* ---- Expectations, from a dense matrix ---- */

/* Which pairs have an entry, and which have been drawn, by (row, column). */
struct dense {
    int64_t n, links;
    bool undirected;
    char *entry, *drawn; // (n, n)
};

static struct dense dense_of(const struct sl_dataset *data)
{
    const int64_t n = data->vertices;
    struct dense d = {n, 0, true, calloc((size_t)(n * n + 1), 1), calloc((size_t)(n * n + 1), 1)};
    assert_true(d.entry && d.drawn);
    for (int64_t v = 0; v < n; v++)
        for (int64_t e = data->adjacency.indptr[v]; e < data->adjacency.indptr[v + 1]; e++)
            d.entry[v * n + data->adjacency.indices[e]] = 1;
    for (int64_t v = 0; v < n; v++)
        for (int64_t u = 0; u < n; u++)
            d.undirected = d.undirected && d.entry[v * n + u] == d.entry[u * n + v];
    for (int64_t v = 0; v < n; v++)
        for (int64_t u = 0; u < (d.undirected ? v : n); u++)
            d.links += u != v && d.entry[v * n + u];
    return d;
}

static void free_dense(struct dense *d)
{
    free(d->entry);
    free(d->drawn);
}

/* Check the links and negatives of a split, and mark the links as drawn. */
static void take_split(struct dense *d, const struct sl_source_links *links, enum sl_split split,
                       int64_t count, int64_t each)
{
    const struct sl_npy *pairs = &links->pairs[split], *negatives = &links->negatives[split];
    int64_t pair[2], no[2];
    assert_int_equal(pairs->data ? pairs->shape[0] : 0, count);
    assert_int_equal(negatives->data ? negatives->shape[0] : 0, count * each);
    for (int64_t k = 0; k < count; k++) {
        sl_links_get(pairs, k, pair);
        const int64_t at = pair[1] * d->n + pair[0], back = pair[0] * d->n + pair[1];
        assert_true(pair[0] != pair[1] && d->entry[at] && !d->drawn[at]);
        d->drawn[at] = 1;
        if (d->undirected)
            d->drawn[back] = 1;
        for (int64_t j = each * k; j < each * (k + 1); j++) {
            sl_links_get(negatives, j, no);
            assert_int_equal(no[0], pair[0]);
            assert_true(no[1] >= 0 && no[1] < d->n && no[1] != no[0]);
            assert_false(d->entry[no[1] * d->n + no[0]]);
            assert_false(d->undirected && d->entry[no[0] * d->n + no[1]]);
        }
    }
}

/* Check that `rest` has the entries of `data` whose links are not drawn, and all that they have. */
static void assert_rest(const struct dense *d, const struct sl_dataset *data,
                        const struct sl_dataset *rest)
{
    const struct sl_csr *a = &data->adjacency, *b = &rest->adjacency;
    const int64_t width = data->edge_features;
    assert_int_equal(rest->symmetric, data->symmetric);
    assert_int_equal(rest->edge_features, width);
    assert_int_equal(rest->relations, data->relations);
    for (int64_t v = 0; v < d->n; v++) {
        int64_t at = b->indptr[v];
        for (int64_t e = a->indptr[v]; e < a->indptr[v + 1]; e++) {
            if (d->drawn[v * d->n + a->indices[e]])
                continue;
            assert_true(at < b->indptr[v + 1]);
            assert_int_equal(b->indices[at], a->indices[e]);
            assert_float_equal(value_at(b, (size_t)at), value_at(a, (size_t)e), 0.0f);
            if (data->edge)
                assert_memory_equal(rest->edge + at * width, data->edge + e * width,
                                    (size_t)width * sizeof *data->edge);
            at++;
        }
        assert_int_equal(at, b->indptr[v + 1]);
    }
}

static void split_ok(struct sl_source *source, const struct sl_link_rule *rule)
{
    if (sl_links_split(source, rule))
        fail_msg("%s: %s", source->path, sl_error_message());
}

static void source_ok(const struct sl_dataset *data, struct sl_source *source)
{
    if (sl_source_of(data, source))
        fail_msg("%s", sl_error_message());
}

static void assert_same_pairs(const struct sl_npy *a, const struct sl_npy *b,
                              const int64_t *original)
{
    int64_t x[2], y[2];
    assert_int_equal(a->data == NULL, b->data == NULL);
    if (!a->data)
        return;
    assert_int_equal(a->shape[0], b->shape[0]);
    for (int64_t k = 0; k < a->shape[0]; k++) {
        sl_links_get(a, k, x);
        sl_links_get(b, k, y);
        for (int end = 0; end < 2; end++)
            assert_int_equal(x[end], original ? original[y[end]] : y[end]);
    }
}

/* Compare with links whose rows have these original numbers; NULL: the same. */
static void assert_same_links(const struct sl_source_links *a, const struct sl_source_links *b,
                              const int64_t *original)
{
    for (int s = SL_SPLIT_VAL; s < SL_SPLITS; s++) {
        assert_same_pairs(&a->pairs[s], &b->pairs[s], original);
        assert_same_pairs(&a->negatives[s], &b->negatives[s], original);
    }
}

/* ---- The draw ---- */

SL_TEST(test_split)
{
    for (int k = 0; k < ALL_KINDS; k++) {
        struct sl_dataset data = open_kind(k), rest;
        struct dense d = dense_of(&data);
        struct sl_source source;
        source_ok(&data, &source);
        split_ok(&source, &usual);
        assert_int_equal(sl_dataset_of(&source, &rest), SL_OK);
        take_split(&d, &rest.links, SL_SPLIT_VAL, d.links * 10 / 100, usual.negatives);
        take_split(&d, &rest.links, SL_SPLIT_TEST, d.links * 20 / 100, usual.negatives);
        assert_rest(&d, &data, &rest);
        free_dense(&d);
        sl_dataset_close(&rest);
        sl_source_close(&source);
        sl_fixture_close(&data);
    }
}

/* Weights that differ in both directions leave an undirected graph one. */
SL_TEST(test_values_do_not_direct)
{
    static const int64_t indptr[] = {0, 2, 4, 6, 8};
    static const int32_t indices[] = {1, 3, 0, 2, 1, 3, 0, 2};
    static const float values[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const struct sl_dataset data = {
        .vertices = 4, .features = 4, .adjacency = {4, 4, indptr, indices, values}};
    struct sl_link_rule rule = {.given = true, .shares = {50, 25, 25}};
    struct dense d = dense_of(&data);
    struct sl_source source;
    struct sl_dataset rest;
    source_ok(&data, &source);
    split_ok(&source, &rule);
    assert_int_equal(sl_dataset_of(&source, &rest), SL_OK);
    take_split(&d, &rest.links, SL_SPLIT_VAL, 1, 1);
    take_split(&d, &rest.links, SL_SPLIT_TEST, 1, 1);
    assert_int_equal(entries(&rest), 4);
    assert_rest(&d, &data, &rest);
    free_dense(&d);
    sl_dataset_close(&rest);
    sl_source_close(&source);
}

/* A random order of the rows moves nothing: neither in a stored dataset, nor in a source. */
SL_TEST(test_orders)
{
    for (int k = 0; k < ALL_KINDS; k++) {
        struct sl_dataset data = open_kind(k), ordered = data, rest;
        struct sl_source source, moved, turned;
        assert_int_equal(sl_dataset_reorder(&ordered, "random", 3), SL_OK);
        source_ok(&data, &source);
        source_ok(&ordered, &moved);
        source_ok(&data, &turned);
        split_ok(&source, &usual);
        split_ok(&moved, &usual);
        assert_same_links(&source.links, &moved.links, ordered.original);
        assert_int_equal(sl_source_order(&alone, &turned, "random", 4), SL_OK);
        split_ok(&turned, &usual);
        assert_same_links(&source.links, &turned.links, NULL);
        assert_int_equal(sl_dataset_of(&turned, &rest), SL_OK);
        assert_same_links(&source.links, &rest.links, rest.original);
        sl_dataset_close(&rest);
        sl_source_close(&source);
        sl_source_close(&moved);
        sl_source_close(&turned);
        sl_block_free_all(&ordered.blocks);
        sl_fixture_close(&data);
    }
}

/* Other shares and numbers of negatives leave the order of links, and the first negatives. */
SL_TEST(test_prefixes)
{
    struct sl_dataset data = open_kind(0);
    const struct sl_link_rule few = {.given = true, .shares = {90, 0, 10}, .seed = 5},
                              other = {.given = true, .shares = {90, 0, 10}, .seed = 6};
    struct sl_source source, small, seeded;
    int64_t x[2], y[2], z[2], differ = 0;
    source_ok(&data, &source);
    source_ok(&data, &small);
    source_ok(&data, &seeded);
    split_ok(&source, &usual);
    split_ok(&small, &few);
    split_ok(&seeded, &other);
    const struct sl_npy *a = &source.links.pairs[SL_SPLIT_TEST],
                        *b = &small.links.pairs[SL_SPLIT_TEST];
    assert_null(small.links.pairs[SL_SPLIT_VAL].data);
    assert_true(b->shape[0] > 0 && b->shape[0] < a->shape[0]);
    for (int64_t k = 0; k < b->shape[0]; k++) {
        sl_links_get(a, k, x);
        sl_links_get(b, k, y);
        sl_links_get(&seeded.links.pairs[SL_SPLIT_TEST], k, z);
        assert_memory_equal(x, y, sizeof x);
        differ += memcmp(x, z, sizeof x) != 0;
        sl_links_get(&source.links.negatives[SL_SPLIT_TEST], 3 * k, x);
        sl_links_get(&small.links.negatives[SL_SPLIT_TEST], k, y);
        assert_memory_equal(x, y, sizeof x);
    }
    assert_true(differ > 0);
    sl_source_close(&source);
    sl_source_close(&small);
    sl_source_close(&seeded);
    sl_fixture_close(&data);
}

/* Factors of relations count the entries that are left. */
SL_TEST(test_relations)
{
    struct sl_dataset data = open_kind(KINDS), rest;
    struct sl_source source;
    struct sl_part part;
    float features[SL_RELATION_FEATURES];
    source_ok(&data, &source);
    assert_int_equal(sl_relations_count(&source), SL_OK); /* in rows that a split changes */
    split_ok(&source, &usual);
    assert_int_equal(sl_dataset_of(&source, &rest), SL_OK);
    source.reads_edges = SL_READS_RELATIONS;
    assert_int_equal(sl_relations_count(&source), SL_OK);
    assert_int_equal(sl_source_read_adjacency(&alone, &source, 0, source.vertices, &part), SL_OK);
    const struct sl_csr *a = &part.data.adjacency;
    const int64_t width = rest.edge_features;
    assert_int_equal(a->indptr[a->rows], entries(&rest));
    for (int64_t v = 0; v < a->rows; v++)
        for (int64_t e = a->indptr[v]; e < a->indptr[v + 1]; e++) {
            const float relation = rest.edge[e * width + width - 1];
            int64_t count = 0;
            for (int64_t o = a->indptr[v]; o < a->indptr[v + 1]; o++)
                count += rest.edge[o * width + width - 1] == relation;
            sl_relations_read(&source, (uint32_t)a->edges[e], features);
            assert_float_equal(features[SL_RELATION], relation, 0.0f);
            assert_float_equal(features[SL_RELATION_FACTOR], 1.0f / (float)count, 0.0f);
        }
    sl_part_close(&part);
    sl_dataset_close(&rest);
    sl_source_close(&source);
    sl_fixture_close(&data);
}

/* Two vertices have an undirected link, whatever relations join them each way: here two and one. */
SL_TEST(test_relations_both_ways)
{
    static const int64_t indptr[] = {0, 2, 4, 5, 5};
    static const int32_t indices[] = {1, 1, 0, 2, 1};
    static const float relations[] = {0, 1, 0, 1, 0};
    const struct sl_dataset data = {.vertices = 4,
                                    .features = 4,
                                    .adjacency = {4, 4, indptr, indices, NULL},
                                    .edge_features = 1,
                                    .relations = 2,
                                    .edge = relations};
    const struct sl_link_rule rule = {.given = true, .shares = {50, 0, 50}};
    struct dense d = dense_of(&data);
    struct sl_source source;
    struct sl_dataset rest;
    assert_true(d.undirected && d.links == 2);
    source_ok(&data, &source);
    split_ok(&source, &rule);
    assert_int_equal(sl_dataset_of(&source, &rest), SL_OK);
    take_split(&d, &rest.links, SL_SPLIT_TEST, 1, 1);
    assert_rest(&d, &data, &rest);
    free_dense(&d);
    sl_dataset_close(&rest);
    sl_source_close(&source);
}

/* A ring of 10,000 edges, each way. */
SL_TEST(test_exact_shares)
{
    enum { N = 10000 };
    int64_t *indptr = calloc(N + 1, sizeof *indptr);
    int32_t *indices = calloc(2 * N, sizeof *indices);
    assert_true(indptr && indices);
    for (int32_t v = 0; v < N; v++) {
        const int32_t before = (v + N - 1) % N, after = (v + 1) % N;
        indptr[v + 1] = 2 * (v + 1);
        indices[2 * v] = before < after ? before : after;
        indices[2 * v + 1] = before < after ? after : before;
    }
    const struct sl_dataset data = {
        .vertices = N, .features = N, .adjacency = {N, N, indptr, indices, NULL}};
    struct sl_link_rule rule;
    struct sl_source source;
    assert_true(sl_link_rule_read("98.74/0.57/0.69", &rule));
    source_ok(&data, &source);
    split_ok(&source, &rule);
    assert_int_equal(source.links.pairs[SL_SPLIT_VAL].shape[0], 57);
    assert_int_equal(source.links.pairs[SL_SPLIT_TEST].shape[0], 69);
    assert_int_equal(source.adjacency.indices.count, 2 * (N - 126));
    /* sources of a graph that is not bipartite are the smaller vertex in about half of the links */
    int64_t pair[2], smaller = 0;
    for (int64_t k = 0; k < 69; k++) {
        sl_links_get(&source.links.pairs[SL_SPLIT_TEST], k, pair);
        smaller += pair[0] < pair[1];
    }
    assert_true(smaller > 20 && smaller < 49);
    sl_source_close(&source);
    free(indptr);
    free(indices);
}

/* ---- Directions ---- */

enum { USERS = 6, ITEMS = 9, BOTH = USERS + ITEMS };

/* User u and item i are joined where (u + 2 i) % 3 is 0, but the first two items are isolated.
 * `ways`: 1: users aggregate from items; 2: items from users; 3: both. */
static struct sl_dataset bipartite(int ways, int64_t *indptr, int32_t *indices)
{
    int64_t at = 0;
    for (int32_t v = 0; v < BOTH; v++) {
        for (int32_t w = 0; w < BOTH; w++) {
            const int32_t u = v < w ? v : w, i = v < w ? w : v;
            const bool joined = u < USERS && i >= USERS + 2 && (u + 2 * i) % 3 == 0;
            if (joined && (v == u ? ways & 1 : ways & 2))
                indices[at++] = w;
        }
        indptr[v + 1] = at;
    }
    return (struct sl_dataset){
        .vertices = BOTH, .features = BOTH, .adjacency = {BOTH, BOTH, indptr, indices, NULL}};
}

/* Return the first target, before and after a split, which must agree. */
static int64_t first_target(struct sl_source *source, bool undirected)
{
    struct sl_part part;
    assert_int_equal(sl_source_read_adjacency(&alone, source, 0, source->vertices, &part), SL_OK);
    assert_int_equal(sl_links_are_undirected(&alone, &part), undirected);
    const int64_t first = sl_links_first_target(&alone, source, &part, undirected);
    sl_part_close(&part);
    return first;
}

static void expect_bipartite(struct sl_source *source, int ways)
{
    const struct sl_link_rule rule = {
        .given = true, .shares = {10, 45, 45}, .negatives = 9, .seed = 1};
    const int64_t wanted = ways & 2 ? USERS + 2 : 0;
    int64_t pair[2];
    assert_int_equal(first_target(source, ways == 3), wanted);
    split_ok(source, &rule);
    assert_int_equal(first_target(source, ways == 3), wanted);
    for (int s = SL_SPLIT_VAL; s < SL_SPLITS; s++) {
        for (int64_t k = 0; k < source->links.pairs[s].shape[0]; k++) {
            sl_links_get(&source->links.pairs[s], k, pair);
            const int64_t from = sl_source_number(source, pair[0]),
                          to = sl_source_number(source, pair[1]);
            assert_true(ways & 2 ? from < USERS && to >= USERS : from >= USERS && to < USERS);
        }
        for (int64_t k = 0; k < source->links.negatives[s].shape[0]; k++) {
            sl_links_get(&source->links.negatives[s], k, pair);
            assert_true(sl_source_number(source, pair[1]) >= wanted);
        }
    }
}

SL_TEST(test_bipartite)
{
    int64_t indptr[BOTH + 1] = {0};
    int32_t indices[BOTH * BOTH];
    for (int ways = 1; ways <= 3; ways++)
        for (int ordered = 0; ordered < 2; ordered++) {
            struct sl_dataset data = bipartite(ways, indptr, indices);
            struct sl_source source;
            if (ordered)
                assert_int_equal(sl_dataset_reorder(&data, "random", 2), SL_OK);
            source_ok(&data, &source);
            expect_bipartite(&source, ways);
            sl_source_close(&source);
            sl_block_free_all(&data.blocks);
        }
}

/* ---- Files ---- */

/* Write an array of pairs into a folder. `descr`, `shape`: as NumPy spells them. */
static void write_pairs(const struct files *files, const char *folder, const char *array,
                        const char *descr, bool fortran, const char *shape, const void *items,
                        size_t bytes)
{
    char header[160], name[80], out[1024];
    snprintf(header, sizeof header,
             "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }                         \n",
             descr, fortran ? "True" : "False", shape);
    snprintf(name, sizeof name, "%s/%s.npy", folder, array);
    files_write(files, name, out, npy_bytes(out, sizeof out, header, items, bytes));
}

/* int32 and int64, C and Fortran order: what is read is written as int64. */
static void test_round_trip(void **state)
{
    const struct files *files = *state;
    static const int32_t val[] = {0, 1, 2, 3, 0, 3}; /* columns 0, 1, 2 and 3, 0, 3 */
    static const int64_t test[] = {3, 1}, no[] = {0, 2, 3, 0, 1, 1, 2, 0};
    static const int64_t rows[] = {0, 3, 1, 0, 2, 3};
    struct sl_dataset data, again, ordered;
    const char *path;
    files_dataset(files, "links");
    write_pairs(files, "links", "val_links", "<i4", true, "(3, 2)", val, sizeof val);
    write_pairs(files, "links", "val_negatives", "<i4", false, "(3, 2)", val, sizeof val);
    write_pairs(files, "links", "test_links", "<i8", false, "(1, 2)", test, sizeof test);
    write_pairs(files, "links", "test_negatives", "<i8", false, "(4, 2)", no, sizeof no);
    open_ok(files_path(files, "links"), &data);
    path = files_path(files, "again");
    assert_int_equal(sl_dataset_write(&data, path), SL_OK);
    open_ok(path, &again);
    assert_same_dataset(&data, &again);
    assert_same_links(&data.links, &again.links, NULL);
    assert_memory_equal(again.links.pairs[SL_SPLIT_VAL].data, rows, sizeof rows);
    assert_memory_equal(again.links.negatives[SL_SPLIT_TEST].data, no, sizeof no);
    assert_int_equal(sl_dataset_reorder(&again, "random", 1), SL_OK);
    path = files_path(files, "ordered");
    assert_int_equal(sl_dataset_write(&again, path), SL_OK);
    open_ok(path, &ordered);
    assert_same_links(&data.links, &ordered.links, ordered.original);
    sl_dataset_close(&data);
    sl_dataset_close(&again);
    sl_dataset_close(&ordered);
}

static const struct {
    const char *array, *descr, *shape;
    int64_t items[4];
    size_t bytes;
    const char *file, *phrase;
} wrong[] = {
    {"val_links", "<i8", "(1, 3)", {0, 1, 2}, 24, "val_links.npy", "expected a matrix of two"},
    {"val_links", "<i8", "(2,)", {0, 1}, 16, "val_links.npy", "expected a matrix of two columns"},
    {"val_links", "<i8", "(1, 2, 1)", {0, 1}, 16, "val_links.npy", "expected a matrix of two"},
    {"val_links", "<f8", "(1, 2)", {0, 1}, 16, "val_links.npy", "expected integers"},
    {"val_links", "|b1", "(1, 2)", {0, 1}, 2, "val_links.npy", "expected integers"},
    {"val_links",
     "<i8",
     "(2, 2)",
     {0, 1, 2, 4},
     32,
     "val_links.npy",
     "row 1, column 1 is vertex 4"},
    {"val_links", "<i8", "(1, 2)", {-1, 1}, 16, "val_links.npy", "is vertex -1, expected 0 to 3"},
    {"val_links", "<i8", "(9, 2)", {0, 1}, 16, "val_links.npy", ""},
    {"val_links", "<i8", "(0, 2)", {0}, 0, "val_links.npy", "is empty, expected links, since"},
    {"val_negatives", "<i8", "(1, 2)", {4, 0}, 16, "val_negatives.npy", "row 0, column 0"},
    {"val_negatives", "<i8", "(0, 2)", {0}, 0, "val_negatives.npy", "is empty, expected pairs"},
    {"test_links", "<i8", "(1, 2)", {0, 1}, 16, "test_negatives.npy", "is missing, expected pairs"},
    {"test_negatives", "<i8", "(1, 2)", {0, 1}, 16, "test_links.npy", "is missing, expected links"},
};

static void test_wrong_files(void **state)
{
    static const int64_t good[] = {0, 3};
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        struct sl_dataset data;
        char name[24];
        snprintf(name, sizeof name, "wrong%zu", w);
        const char *path = files_dataset(*state, name);
        write_pairs(*state, name, "val_links", "<i8", false, "(1, 2)", good, sizeof good);
        write_pairs(*state, name, "val_negatives", "<i8", false, "(1, 2)", good, sizeof good);
        write_pairs(*state, name, wrong[w].array, wrong[w].descr, false, wrong[w].shape,
                    wrong[w].items, wrong[w].bytes);
        if (sl_dataset_open(path, &data) != SL_ERR_DATA)
            fail_msg("%zu: expected a refusal with \"%s\"", w, wrong[w].phrase);
        if (!strstr(sl_error_message(), wrong[w].file) ||
            !strstr(sl_error_message(), wrong[w].phrase))
            fail_msg("%zu: \"%s\" lacks \"%s\" or \"%s\"", w, sl_error_message(), wrong[w].file,
                     wrong[w].phrase);
    }
}

/* --reverse turns links with the edges; a selection has no links; a loan has all. */
static void test_ways(void **state)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed")), split = data, turned;
    const struct sl_read_options reverse = {.reverse = true};
    struct sl_source source, loan;
    struct sl_selection some;
    int64_t x[2], y[2];
    assert_int_equal(sl_dataset_split_links(&split, &usual), SL_OK);
    const char *path = files_path(*state, "split");
    assert_int_equal(sl_dataset_write(&split, path), SL_OK);
    assert_int_equal(sl_dataset_open_with(path, &reverse, &turned), SL_OK);
    for (int64_t k = 0; k < split.links.pairs[SL_SPLIT_TEST].shape[0]; k++) {
        sl_links_get(&split.links.pairs[SL_SPLIT_TEST], k, x);
        sl_links_get(&turned.links.pairs[SL_SPLIT_TEST], k, y);
        assert_true(x[0] == y[1] && x[1] == y[0]);
    }
    assert_int_equal(sl_source_open(&alone, path, &source), SL_OK);
    assert_int_equal(sl_source_borrow(&source, &loan), SL_OK);
    assert_same_links(&split.links, &loan.links, NULL);
    const struct sl_selection_options options = {.hops = 1, .keeps_last_rows = true};
    assert_int_equal(sl_select(&source, &(int64_t){0}, 1, &options, &some), SL_OK);
    assert_false(sl_links_given(&some.source.links));
    assert_int_equal(sl_links_split(&loan, &usual), SL_ERR_USAGE);
    assert_non_null(strstr(sl_error_message(), "has val_links.npy already"));
    sl_selection_free(&some);
    sl_source_close(&loan);
    sl_source_close(&source);
    sl_dataset_close(&turned);
    sl_block_free_all(&split.blocks);
    sl_fixture_close(&data);
}

/* ---- Rules and errors ---- */

SL_TEST(test_rules)
{
    static const char *const bad[] = {"85/5",     "85/5/10/",   "85/5/11",    "80/5/10",
                                      "0/50/50",  "20/30/rest", "50/50/rest", "a/b/c",
                                      "85/5/10 ", "",           "-5/95/10"};
    struct sl_link_rule rule;
    assert_true(sl_link_rule_read(NULL, &rule));
    assert_false(rule.given);
    assert_true(sl_link_rule_read("84.9/5.05/10.05", &rule));
    assert_true(rule.given && rule.negatives == 1);
    assert_near(rule.shares[0], 84.9, 1e-12);
    assert_near(rule.shares[1], 5.05, 1e-12);
    assert_near(rule.shares[2], 10.05, 1e-12);
    assert_true(sl_link_rule_read("100/0/0", &rule));
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
        if (sl_link_rule_read(bad[b], &rule))
            fail_msg("\"%s\" is a rule", bad[b]);
}

static void refuse(const struct sl_dataset *data, const char *phrase)
{
    struct sl_source source;
    source_ok(data, &source);
    assert_int_equal(sl_links_split(&source, &usual), SL_ERR_DATA);
    if (!strstr(sl_error_message(), phrase))
        fail_msg("\"%s\" lacks \"%s\"", sl_error_message(), phrase);
    assert_false(sl_links_given(&source.links));
    sl_source_close(&source);
}

SL_TEST(test_errors)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("no-edges"));
    refuse(&data, "leaves no link to train on, of 0");
    sl_fixture_close(&data);
    enum { N = 6 };
    int64_t indptr[N + 1] = {0}, twice[N] = {0, 1, 2, 2, 4, 5}, beyond[N] = {0, 1, 2, 3, 4, 6};
    int32_t indices[N * N];
    for (int32_t v = 0, at = 0; v < N; v++) {
        for (int32_t u = 0; u < N; u++)
            if (u != v)
                indices[at++] = u;
        indptr[v + 1] = at;
    }
    data = (struct sl_dataset){
        .vertices = N, .features = N, .adjacency = {N, N, indptr, indices, NULL}};
    refuse(&data, "is joined to nearly all");
    data.original = twice;
    refuse(&data, "item 3 is vertex 2, expected every vertex from 0 to 5 once");
    data.original = beyond;
    refuse(&data, "item 5 is vertex 6");
    data.original = NULL;
    indices[3] = 77;
    refuse(&data, "has column 77");
}

/* Entries that are there twice are one link, and are counted as merged. */
SL_TEST(test_duplicates)
{
    static const int64_t indptr[] = {0, 0, 3, 4, 4, 4};
    static const int32_t indices[] = {0, 4, 0, 3};
    const struct sl_link_rule rule = {.given = true, .shares = {34, 33, 33}};
    const struct sl_dataset data = {
        .vertices = 5, .features = 5, .adjacency = {5, 5, indptr, indices, NULL}};
    struct sl_source source;
    source_ok(&data, &source);
    split_ok(&source, &rule);
    assert_null(source.links.pairs[SL_SPLIT_VAL].data); /* 0.99 of 3 links */
    assert_int_equal(source.adjacency.indices.count, 3);
    assert_int_equal(source.merged_edges, 1);
    sl_source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_values_do_not_direct),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_relations),
        cmocka_unit_test(test_relations_both_ways),
        cmocka_unit_test(test_exact_shares),
        cmocka_unit_test(test_bipartite),
        cmocka_unit_test_setup_teardown(test_round_trip, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_wrong_files, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_ways, files_setup, files_teardown),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_duplicates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
