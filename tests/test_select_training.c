/* Training on an exact selection is training on the whole graph: losses, gradients, parameters,
 * and the logits of inner vertices, with dropout. The inner vertices are all that train, and some
 * others. An L-layer network needs L hops, or L - 1 where the selection has Â·X from the whole
 * graph. tests/parts.sh runs this on several ranks, too. */
#include "core/error.h"
#include "data/select.h"
#include "tests/fixtures.h"
#include "tests/running.h"
#include "tests/trained.h"
#include "tests/unit.h"

enum { VERTICES = 211 };
static const double ROUNDING = 1e-5; /* sums in another order: tests/trained.h */

/* Sparse, so that a selection is far from whole; few vertices train. */
static struct sl_dataset open_graph(struct sl_fixture fixture)
{
    fixture.vertices = VERTICES;
    fixture.features = 12;
    fixture.classes = 5;
    fixture.degree = 2;
    fixture.seed = 17;
    struct sl_dataset data = sl_fixture_open(&fixture);
    data.train.count = data.train.count < 9 ? data.train.count : 9;
    return data;
}

static struct sl_selection select_training(const struct sl_source *source,
                                           const struct sl_dataset *data, int hops, bool keeps)
{
    struct sl_selection got;
    int64_t inner[16], count = 0;
    for (; count < data->train.count; count++)
        inner[count] = data->train.ids[count];
    inner[count++] = 3;
    inner[count++] = 200;
    const struct sl_selection_options options = {.hops = hops, .keeps_last_rows = keeps};
    if (sl_select(source, inner, count, &options, &got))
        fail_msg("%s", sl_error_message());
    return got;
}

/* Only inner vertices of either run are compared. */
static void drop_outer(const struct sl_selection *selection, int64_t classes,
                       struct sl_trained *run)
{
    float *logit = calloc((size_t)(selection->hop_cut[1] * classes), sizeof *logit);
    for (int64_t k = 0; k < selection->hop_cut[1]; k++)
        memcpy(logit + k * classes, run->logit + selection->row[k] * classes,
               (size_t)classes * sizeof *logit);
    free(run->logit);
    run->logit = logit;
    run->logits = selection->hop_cut[1] * classes;
}

static void train(struct sl_source *source, const char *line, struct sl_trained *out)
{
    int32_t part[VERTICES];
    if (strstr(line, "halo") &&
        (sl_source_find_parts(&sl_running, source, sl_running.ranks, 1, NULL, part) ||
         sl_source_order_by_parts(source, sl_running.ranks, part)))
        fail_msg("%s: %s", line, sl_error_message());
    if (sl_train(&sl_running, source, line, false, out))
        fail_msg("%s: %s", line, sl_error_message());
}

/* `ordered`: the selection has another order, and keeps all edges. `aggregated`: it has Â·X from
 * the whole graph. */
static double compare(const struct sl_dataset *data, const char *line, int hops, bool aggregated,
                      bool ordered)
{
    struct sl_source source;
    struct sl_trained whole, part;
    assert_int_equal(sl_source_of(data, &source), SL_OK);
    struct sl_selection selection = select_training(&source, data, hops, ordered);
    assert_true(selection.source.vertices < data->vertices * 3 / 4);
    selection.source.selection.aggregated_from = aggregated ? &source : NULL;
    selection.source.selection.aggregated_row = selection.row;
    if (ordered)
        assert_int_equal(sl_source_order(&sl_running, &selection.source, "random", 2), SL_OK);
    train(&source, line, &whole);
    train(&selection.source, line, &part);
    double difference = 0.0;
    if (sl_running.rank == 0) {
        drop_outer(&selection, data->classes, &whole);
        drop_outer(&selection, data->classes, &part);
        difference = sl_trained_difference(&part, &whole);
    }
    sl_trained_free(&whole);
    sl_trained_free(&part);
    sl_selection_free(&selection);
    sl_source_close(&source);
    return difference;
}

static const struct {
    int layers;
    const char *line;
    bool aggregated;
} lines[] = {
    {2, "", false},
    {2, "--norm row --no-cache-aggregate", false},
    {3, "--product-order spmm --input-dropout 0", false},
    {1, "--product-order gemm", false},
    {2, "--model sage", false},
    {2, "--model sage --aggregator max", false},
    {2, "--model gat --heads 2", false},
    {2, "--model gin", false},
    {1, "--input-dropout 0", true},
    {2, "--input-dropout 0 --norm row --normalize-features l2", true},
    {3, "--input-dropout 0 --normalize-features l1", true},
    {3, "--model sage --input-dropout 0", true},
    {2, "--model sage --input-dropout 0 --normalize-features l2", true},
    {2, "--model gin --input-dropout 0", true},
};

static const char *const distributions[] = {"1d", "halo", "vertex-cut"};
static const char *const whole_rows[] = {"1d", "halo", "cover"}; /* with Â·X from the whole graph */

static void check_graph(const struct sl_fixture *fixture)
{
    const bool alone = sl_running.ranks == 1;
    struct sl_dataset data = open_graph(*fixture);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[256];
        const bool aggregated = lines[i].aggregated;
        const int hops = lines[i].layers - aggregated;
        const char *const *kinds = aggregated ? whole_rows : distributions;
        snprintf(line, sizeof line, "--layers %d --dropout 0.4 --distribution %s %s",
                 lines[i].layers, alone ? "1d" : kinds[(i + fixture->form) % 3], lines[i].line);
        for (int ordered = 0; ordered < 2; ordered++) {
            const double difference = compare(&data, line, hops, aggregated, ordered);
            if (!(difference <= ROUNDING))
                fail_msg("%s, %s: %g apart", fixture->name, line, difference);
        }
        if (hops > 0 && alone) /* the test sees what is missing */
            assert_true(compare(&data, line, hops - 1, aggregated, false) > 10 * ROUNDING);
    }
    sl_fixture_close(&data);
}

/* Training on a sample is the same whether layers know hops or compute all rows. */
static double compare_sample(const struct sl_dataset *data, const char *line)
{
    struct sl_source source;
    struct sl_trained with, without;
    struct sl_selection selection;
    int64_t inner[VERTICES], count = 0;
    for (int64_t v = 0; v < data->vertices; v += 5)
        inner[count++] = v;
    assert_int_equal(sl_source_of(data, &source), SL_OK);
    const struct sl_selection_options options = {
        .hops = 4, .fanout = 1, .seed = 5, .keeps_last_rows = true};
    assert_int_equal(sl_select(&source, inner, count, &options, &selection), SL_OK);
    selection.source.selection.row_entries = NULL;
    selection.source.selection.row_weight = NULL;
    assert_true(selection.hops > 1 && selection.source.selection.hop_cut);
    train(&selection.source, line, &with);
    selection.source.selection.hop_cut = NULL;
    train(&selection.source, line, &without);
    double difference = 0.0;
    if (sl_running.rank == 0) {
        drop_outer(&selection, data->classes, &with);
        drop_outer(&selection, data->classes, &without);
        difference = sl_trained_difference(&with, &without);
    }
    sl_trained_free(&with);
    sl_trained_free(&without);
    sl_selection_free(&selection);
    sl_source_close(&source);
    return difference;
}

SL_TEST(test_samples)
{
    static const char *const models[] = {"gcn --layers 2", "gcn --layers 3",
                                         "sage --aggregator max --layers 2", "gat --layers 3"};
    struct sl_dataset data =
        open_graph((struct sl_fixture){.name = "sampled", .degree = 3, .form = SL_FEATURES_DENSE});
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (int k = 0; k < (sl_running.ranks > 1 ? 3 : 1); k++) {
            char line[256];
            snprintf(line, sizeof line, "--dropout 0.4 --distribution %s --tiles 40 --model %s",
                     distributions[k], models[m]);
            const double difference = compare_sample(&data, line);
            if (!(difference <= ROUNDING))
                fail_msg("%s: %g apart", line, difference);
        }
    sl_fixture_close(&data);
}

SL_TEST(test_undirected)
{
    check_graph(&(struct sl_fixture){.name = "undirected", .form = SL_FEATURES_DENSE});
}

SL_TEST(test_directed_weighted)
{
    check_graph(&(struct sl_fixture){.name = "directed, weighted",
                                     .directed = true,
                                     .weighted = true,
                                     .self_loops = true,
                                     .form = SL_FEATURES_CSR});
}

SL_TEST(test_identity)
{
    check_graph(&(struct sl_fixture){.name = "identity", .form = SL_FEATURES_IDENTITY});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undirected),
        cmocka_unit_test(test_directed_weighted),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_samples),
    };
    return cmocka_run_group_tests(tests, sl_running_start, sl_running_stop);
}
