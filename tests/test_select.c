/* Selections of vertices against plain loops, in every form of a source. What a selection is as a
 * dataset is read by sl_source_read, as training reads it. */
#include "data_files.h"

#include "data/generate/generate_community.h"
#include "tests/fixtures.h"
#include "tests/select_reference.h"

static struct sl_runtime alone = {.ranks = 1};

/* A dataset, the source it is selected from, and how. */
struct checking {
    const struct sl_dataset *data;
    const struct sl_source *source;
    const bool *inner; // (n)
    struct sl_selection_options options;
    char what[256];
};

#define CHECK(c, condition)                                     \
    do {                                                        \
        if (!(condition))                                       \
            fail_msg("%s: expected %s", (c)->what, #condition); \
    } while (0)

/* ---- What is expected ---- */

static void check_list(const struct checking *c, const int *hop, const struct sl_selection *got)
{
    int64_t at = 0;
    int deepest = 0;
    for (int64_t v = 0; v < c->data->vertices; v++)
        deepest = hop[v] > deepest ? hop[v] : deepest;
    CHECK(c, got->hops == deepest);
    for (int h = 0; h <= deepest; h++) {
        CHECK(c, got->hop_cut[h] == at);
        for (int64_t r = 0; r < c->data->vertices; r++) {
            const int64_t v = sl_source_vertex(c->source, r);
            if (hop[v] == h) {
                CHECK(c, at < got->source.vertices);
                CHECK(c, got->row[at++] == v);
            }
        }
        CHECK(c, sl_selection_within(got, h) == at);
    }
    CHECK(c, got->hop_cut[deepest + 1] == at);
    CHECK(c, got->source.vertices == at);
    CHECK(c, sl_selection_within(got, deepest + 3) == at);
}

static float weight(const struct sl_csr *a, int64_t e)
{
    return a->values ? a->values[e] : 1.0f;
}

/* Every edge among selected vertices, once, unless the row is an input alone. */
static void check_edges(const struct checking *c, const int *hop, const struct sl_selection *got,
                        const struct sl_csr *b)
{
    const struct sl_csr *a = &c->data->adjacency;
    const struct sl_npy *stored = &got->source.adjacency.indices; /* no copy to sort them */
    int32_t *number = calloc((size_t)c->data->vertices + 1, sizeof *number);
    for (int64_t k = 0; k < got->source.vertices; k++)
        number[got->row[k]] = (int32_t)k;
    for (int64_t k = 0; k < got->source.vertices; k++) {
        const int64_t v = got->row[k];
        const bool kept = c->options.keeps_last_rows || hop[v] != c->options.hops;
        int64_t expected = 0;
        for (int64_t e = a->indptr[v]; kept && e < a->indptr[v + 1]; e++) {
            const int32_t u = a->indices[e];
            if (hop[u] < 0)
                continue;
            expected++;
            int64_t found = 0;
            for (int64_t f = b->indptr[k]; f < b->indptr[k + 1]; f++)
                found += b->indices[f] == number[u] && weight(a, e) == weight(b, f);
            CHECK(c, found == 1);
        }
        for (int64_t f = b->indptr[k] + 1; f < b->indptr[k + 1]; f++)
            CHECK(c, sl_npy_integer(stored, f - 1) < sl_npy_integer(stored, f));
        CHECK(c, b->indptr[k + 1] - b->indptr[k] == expected);
    }
    free(number);
}

static void check_degrees(const struct checking *c, const struct sl_selection *got)
{
    const struct sl_csr *a = &c->data->adjacency;
    for (int64_t k = 0; k < got->source.vertices; k++) {
        const int64_t v = got->row[k];
        double sum = 0.0;
        for (int64_t e = a->indptr[v]; e < a->indptr[v + 1]; e++)
            sum += (double)weight(a, e);
        CHECK(c, got->source.selection.row_entries[k] == a->indptr[v + 1] - a->indptr[v]);
        CHECK(c, (got->source.selection.row_weight
                      ? got->source.selection.row_weight[k]
                      : (double)got->source.selection.row_entries[k]) == sum);
    }
}

static void check_split(const struct checking *c, const struct sl_selection *got,
                        const struct sl_index_set *all, const struct sl_index_set *own)
{
    const int64_t n = c->data->vertices;
    bool *mask = calloc((size_t)n + 1, sizeof *mask);
    int64_t at = 0;
    sl_fixture_mask(all, n, mask);
    for (int64_t k = 0; k < got->hop_cut[1]; k++)
        if (mask[got->row[k]]) {
            CHECK(c, at < own->count && own->ids[at] == k);
            at++;
        }
    CHECK(c, own->count == at);
    free(mask);
}

static void check_features(const struct checking *c, const struct sl_selection *got,
                           const struct sl_dataset *own)
{
    const struct sl_dataset *data = c->data;
    const struct sl_csr *x = &data->features_csr, *y = &own->features_csr;
    CHECK(c, own->features == data->features);
    for (int64_t k = 0; k < got->source.vertices; k++) {
        const int64_t v = got->row[k];
        if (data->feature_form == SL_FEATURES_DENSE)
            CHECK(c, memcmp(own->features_dense + k * data->features,
                            data->features_dense + v * data->features,
                            (size_t)data->features * sizeof(float)) == 0);
        if (data->feature_form != SL_FEATURES_CSR)
            continue;
        CHECK(c, y->indptr[k + 1] - y->indptr[k] == x->indptr[v + 1] - x->indptr[v]);
        for (int64_t e = 0; e < y->indptr[k + 1] - y->indptr[k]; e++) {
            CHECK(c, y->indices[y->indptr[k] + e] == x->indices[x->indptr[v] + e]);
            CHECK(c, weight(y, y->indptr[k] + e) == weight(x, x->indptr[v] + e));
        }
    }
}

static void check_vertices(const struct checking *c, const struct sl_selection *got,
                           const struct sl_dataset *own)
{
    const struct sl_dataset *data = c->data;
    for (int64_t k = 0; k < got->source.vertices; k++) {
        const int64_t v = got->row[k];
        const bool inner = k < got->hop_cut[1];
        CHECK(c, own->original[k] == (data->original ? data->original[v] : v));
        if (data->labels)
            CHECK(c, own->labels[k] == (inner ? data->labels[v] : -1));
        for (int64_t j = 0; data->multilabels && j < data->classes; j++) {
            const float expected = inner ? data->multilabels[v * data->classes + j] : NAN;
            const float found = own->multilabels[k * data->classes + j];
            CHECK(c, found == expected || (isnan(found) && isnan(expected)));
        }
    }
    check_split(c, got, &data->train, &own->train);
    check_split(c, got, &data->val, &own->val);
    check_split(c, got, &data->test, &own->test);
    check_features(c, got, own);
}

/* ---- A selection ---- */

static struct sl_selection select_inner(const struct checking *c)
{
    struct sl_selection got;
    int64_t *inner = calloc((size_t)c->data->vertices + 1, sizeof *inner), count = 0;
    for (int64_t v = c->data->vertices - 1; v >= 0; v--) /* any order */
        if (c->inner[v])
            inner[count++] = v;
    if (count)
        inner[count++] = inner[0]; /* and again */
    if (sl_select(c->source, inner, count, &c->options, &got))
        fail_msg("%s: %s", c->what, sl_error_message());
    free(inner);
    return got;
}

static void check_against(const struct checking *c, const struct sl_selection *got)
{
    struct sl_part part = {0};
    int *hop = calloc((size_t)c->data->vertices + 1, sizeof *hop);
    sl_reference_select(c->data, c->inner, &c->options, hop);
    check_list(c, hop, got);
    if (sl_source_read(&alone, &got->source, 0, got->source.vertices, &part))
        fail_msg("%s: %s", c->what, sl_error_message());
    check_edges(c, hop, got, &part.data.adjacency);
    check_degrees(c, got);
    check_vertices(c, got, &part.data);
    sl_part_close(&part);
    free(hop);
}

static void check_selection(struct checking *c)
{
    const struct sl_selection_options *o = &c->options;
    const size_t used = strlen(c->what);
    snprintf(c->what + used, sizeof c->what - used, ", %d hops, fanout %d, %d threads%s%s", o->hops,
             (int)o->fanout, o->threads, o->keeps_last_rows ? ", last rows" : "",
             c->source->order.vertex ? ", ordered" : "");
    struct sl_selection got = select_inner(c);
    check_against(c, &got);
    sl_selection_free(&got);
    c->what[used] = '\0';
}

/* ---- Every kind of graph ---- */

enum inner { NONE, ONE, SOME, MOST, ALL, INNERS };
static const char *const inner_names[] = {"none", "one", "some", "most", "all"};

static bool *choose_inner(int64_t n, enum inner which)
{
    static const int64_t share[] = {[SOME] = 20, [MOST] = 70, [ALL] = 100};
    bool *inner = calloc((size_t)n + 1, sizeof *inner);
    for (int64_t v = 0; v < n; v++)
        inner[v] = which == ONE ? v == n / 2 : which != NONE && v * 37 % 100 < share[which];
    return inner;
}

static void check_options(struct checking *c)
{
    static const int hops[] = {0, 1, 2, 3, SL_ALL_HOPS};
    static const int64_t fanouts[] = {0, 1, 3, 1000};
    for (int h = 0; h < 5; h++)
        for (int f = 0; f < 4; f++)
            for (int keeps = 0; keeps < 2; keeps++) {
                c->options = (struct sl_selection_options){.hops = hops[h],
                                                           .fanout = fanouts[f],
                                                           .seed = 3 + (uint64_t)f,
                                                           .draw = (uint32_t)h,
                                                           .keeps_last_rows = keeps,
                                                           .threads = 1 + h};
                check_selection(c);
            }
}

static void check_dataset(const struct sl_dataset *data, const char *name)
{
    for (enum inner which = NONE; which < INNERS; which++)
        for (int ordered = 0; ordered < 2; ordered++) {
            struct sl_source source;
            bool *inner = choose_inner(data->vertices, which);
            struct checking c = {.data = data, .source = &source, .inner = inner};
            assert_int_equal(sl_source_of(data, &source), SL_OK);
            source.undirected = data->symmetric;
            if (ordered)
                assert_int_equal(sl_source_order(&alone, &source, "random", 5), SL_OK);
            snprintf(c.what, sizeof c.what, "%s, %s inner", name, inner_names[which]);
            check_options(&c);
            sl_source_close(&source);
            free(inner);
        }
}

SL_TEST(test_every_graph)
{
    for (int f = 0; f < sl_fixture_count; f++) {
        struct sl_dataset data = sl_fixture_open(&sl_fixtures[f]);
        if (data.vertices) /* no source has none */
            check_dataset(&data, sl_fixtures[f].name);
        sl_fixture_close(&data);
    }
}

/* The numbers of a graph that was given another order key its draws. */
SL_TEST(test_numbers)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("directed-weighted"));
    int64_t *original = calloc((size_t)data.vertices, sizeof *original);
    for (int64_t v = 0; v < data.vertices; v++)
        original[v] = (v * 10 + 3) % data.vertices;
    data.original = original;
    check_dataset(&data, "other numbers");
    data.original = NULL;
    free(original);
    sl_fixture_close(&data);
}

SL_TEST(test_several_labels)
{
    struct sl_dataset data = sl_fixture_open(sl_fixture_find("undirected"));
    const int32_t *labels = data.labels;
    float *several = calloc((size_t)(data.vertices * data.classes), sizeof *several);
    for (int64_t i = 0; i < data.vertices * data.classes; i++)
        several[i] = i % 7 == 3 ? NAN : (float)(i % 3 == 1);
    data.labels = NULL;
    data.multilabels = several;
    check_dataset(&data, "several labels");
    data.labels = labels;
    data.multilabels = NULL;
    free(several);
    sl_fixture_close(&data);
}

/* ---- The same set ---- */

static struct sl_dataset community(void)
{
    const struct sl_community_options options = {.vertices = 5003,
                                                 .classes = 5,
                                                 .degree = 9,
                                                 .features = 3,
                                                 .seed = 4,
                                                 .homophily = 0.8,
                                                 .feature_noise = 1};
    struct sl_dataset data;
    assert_int_equal(sl_generate_community(&options, &data), SL_OK);
    return data;
}

SL_TEST(test_threads)
{
    struct sl_dataset data = community();
    struct sl_source source;
    bool *inner = choose_inner(data.vertices, SOME);
    assert_int_equal(sl_source_of(&data, &source), SL_OK);
    struct checking c = {.data = &data, .source = &source, .inner = inner, .what = "community"};
    for (int64_t fanout = 0; fanout < 3; fanout += 2) {
        c.options = (struct sl_selection_options){
            .hops = 2, .fanout = fanout, .seed = 9, .keeps_last_rows = true, .threads = 1};
        struct sl_selection one = select_inner(&c);
        check_against(&c, &one);
        for (int threads = 2; threads < 8; threads += 5) {
            c.options.threads = threads;
            struct sl_selection other = select_inner(&c);
            sl_assert_equal_selections(&one, &other);
            sl_selection_free(&other);
        }
        sl_selection_free(&one);
    }
    free(inner);
    sl_source_close(&source);
    sl_dataset_close(&data);
}

static int64_t shared(const struct sl_selection *a, const struct sl_selection *b)
{
    int64_t count = 0;
    for (int64_t k = 0; k < a->source.vertices; k++)
        for (int64_t l = 0; l < b->source.vertices; l++)
            count += a->row[k] == b->row[l];
    return count;
}

/* Another seed or resampling draws others. */
SL_TEST(test_draws)
{
    struct sl_dataset data = community();
    struct sl_source source;
    bool *inner = choose_inner(data.vertices, SOME);
    assert_int_equal(sl_source_of(&data, &source), SL_OK);
    struct checking c = {.data = &data, .source = &source, .inner = inner, .what = "community"};
    c.options = (struct sl_selection_options){.hops = 1, .fanout = 1, .seed = 1};
    struct sl_selection first = select_inner(&c);
    c.options.draw = 1;
    struct sl_selection second = select_inner(&c);
    c.options = (struct sl_selection_options){.hops = 1, .fanout = 1, .seed = 2};
    struct sl_selection third = select_inner(&c);
    const int64_t outer = first.source.vertices - first.hop_cut[1];
    assert_true(outer > 500);
    assert_true(shared(&first, &second) - first.hop_cut[1] < outer / 2);
    assert_true(shared(&first, &third) - first.hop_cut[1] < outer / 2);
    assert_true(shared(&second, &third) - first.hop_cut[1] < outer / 2);
    sl_selection_free(&first);
    sl_selection_free(&second);
    sl_selection_free(&third);
    free(inner);
    sl_source_close(&source);
    sl_dataset_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_graph),    cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_several_labels), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_draws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
