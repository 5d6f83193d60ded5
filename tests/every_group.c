/* Train small graphs with groups of ranks, in one process for each rank: every model, batches, 2, 3
 * and 5 layers, and every distribution inside the groups. Losses, gradients and parameters are
 * those of one rank, to rounding. tests/every-group.sh runs this program on 2, 3 and 4 ranks.
 * `every_group all` checks all cases, else some of them; a second word takes the cases alone whose
 * options have it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "recipe/edges.h"
#include "tests/fixtures.h"
#include "tests/trained.h"
#include "train/trainer.h"

enum { EPOCHS = 3, SOME = 29 /* one case in so many is checked otherwise */ };
static const double TOLERANCE = 1e-4; /* one term that is missing is over 1e-3 */

static const int layers[] = {2, 3, 5};

static const char *const models[] = {
    "gcn",
    "gcn --norm row --no-bias",
    "sage --aggregator mean",
    "sage --aggregator gcn",
    "sage --aggregator sum",
    "sage --aggregator max",
    "sage --aggregator min",
    "gat --heads 2",
    "gatv2 --heads 2 --attention-dropout 0.3 --classifier linear",
    "transformer --heads 2 --classifier linear",
    "gcn --norm-layers row",
    "gcn --residual linear --classifier linear --norm-layers batch",
    "sage --aggregator mean --norm-layers batch",
    "gat --heads 2 --norm-layers row",
    "gat --heads 2 --residual linear --classifier linear",
    "gcn --encoder linear --activation elu --dropout 0.2",
    "gcn --layers 3 --residual identity --jump sum --dropout 0.2",
    "sage --layers 3 --residual identity --jump concat",
    "sage --layers 3 --norm-layers row --jump max --dropout 0.2",
    "gat --heads 2 --layers 3 --residual identity --jump concat",
    "resgcn --block-norm row",
    "resgcn --block-norm batch",
    "resgcn --aggregator mean",
    "gin",
    "gat --heads 2 --edge-features auto",
    "gatv2 --heads 2 --classifier linear --edge-features auto",
    "transformer --heads 2 --classifier linear --edge-features auto",
    "transformer --heads 2 --classifier linear --edge-features auto --batches co:3 --max-hop 1",
    "gine --encoder linear",
    "gine --encoder linear --batches clusters:7,3",
    "rgcn",
    "rgcn --encoder linear --norm-layers batch",
    "rgcn --batches co:3 --max-hop 1",
    "rgcn --batches clusters:7,3",
    "sgc",
    "appnp --hops 3",
    "jknet",
    "gcn --batches co:3",
    "sage --aggregator max --batches co:4 --fanout 2 --resample 1",
    "gat --heads 2 --batches co:3 --max-hop 1",
    "gatv2 --heads 3 --batches co:3 --max-hop 1",
    "resgcn --block-norm row --batches clusters:7,3",
};

/* Options that groups do not take (docs/GROUPS.md). Several groups have other batches than one
 * rank. Rows are not cut for the columns of a grid where edges have relations. */
static bool is_left_out(const char *model, const char *way)
{
    if (strstr(model, "rgcn") && (strstr(way, "2d") || strstr(way, "--grid 1x2x")))
        return true;
    return strstr(model, "--batches") && !strstr(way, "--groups 1x");
}

/* How so many ranks share a graph. */
static const struct {
    int ranks;
    const char *options;
} ways[] = {
    {2, "--groups 1x2 --distribution 1d"},
    {2, "--groups 1x2 --distribution halo"},
    {2, "--groups 1x2 --distribution cover"},
    {2, "--groups 1x2 --distribution vertex-cut"},
    {2, "--groups 1x2 --grid 1x2x1"},
    {2, "--groups 1x2 --grid 1x1x2"},
    {2, "--groups 2x1"},
    {2, "--groups 2x1 --distribution 1d"},
    {2, "--groups 2x1 --distribution cover"},
    {2, "--groups 2x1 --distribution vertex-cut"},
    {2, "--groups 2x1 --preload-hops 1"},
    {2, "--groups 2x1 --preload-hops 2 --distribution 1d"},
    {3, "--groups 3x1"},
    {3, "--groups 3x1 --distribution 1d"},
    {3, "--groups 3x1 --distribution vertex-cut"},
    {3, "--groups 3x1 --preload-hops 1"},
    {3, "--groups 3x1 --preload-hops 2 --distribution cover"},
    {3, "--groups 3x1 --preload-hops 1 --distribution vertex-cut"},
    {4, "--groups 2x2 --distribution 1d"},
    {4, "--groups 2x2 --distribution 1.5d"},
    {4, "--groups 2x2 --distribution halo"},
    {4, "--groups 2x2 --distribution cover"},
    {4, "--groups 2x2 --distribution vertex-cut"},
    {4, "--groups 2x2 --grid 1x2x1"},
    {4, "--groups 2x2 --preload-hops 1 --distribution 1d"},
    {4, "--groups 2x2 --preload-hops 2 --distribution 1.5d"},
    {4, "--groups 2x2 --preload-hops 1 --distribution halo"},
    {4, "--groups 2x2 --preload-hops 2 --distribution cover"},
    {4, "--groups 2x2 --preload-hops 1 --distribution vertex-cut"},
    {4, "--groups 2x2 --preload-hops 2 --distribution vertex-cut"},
    {4, "--groups 2x2 --preload-hops 1 --grid 1x2x1"},
    {4, "--groups 2x2 --preload-hops 2 --grid 1x2x1"},
    {4, "--groups 1x4 --distribution 1d"},
    {4, "--groups 1x4 --distribution 1.5d"},
    {4, "--groups 1x4 --distribution 2d"},
    {4, "--groups 1x4 --grid 2x1x2"},
    {4, "--groups 1x4 --grid 1x2x2"},
    {4, "--groups 1x4 --distribution halo"},
    {4, "--groups 1x4 --distribution cover"},
    {4, "--groups 1x4 --distribution vertex-cut"},
};

static const struct sl_fixture fixtures[] = {
    {SL_FIXTURE("undirected", 61, 9, 5, 2.5), .isolated = 3, .form = SL_FEATURES_DENSE, .seed = 71},
    {SL_FIXTURE("directed", 67, 11, 3, 2.5), .directed = true, .weighted = true, .self_loops = true,
     .form = SL_FEATURES_CSR, .seed = 72},
    {SL_FIXTURE("relations, the last one but one", 61, 9, 5, 2.5), .directed = true,
     .self_loops = true, .isolated = 3, .relations = 4, .form = SL_FEATURES_DENSE, .seed = 74},
    {SL_FIXTURE("edge features, the last one", 61, 9, 5, 2.5), .directed = true, .self_loops = true,
     .isolated = 3, .edge_features = 3, .form = SL_FEATURES_DENSE, .seed = 73},
};

/* Numbers of all layers. */
struct numbers {
    int64_t count;
    float *value; // (count)
};

/* Results of a run: the losses on each rank. On rank 0, the parameters, and sums of their
 * gradients, which are the state of plain steps with momentum. */
struct run {
    double loss[EPOCHS];
    struct numbers parameters, gradients;
};

struct checking {
    struct sl_runtime *rt;
    const struct sl_dataset *data;
    char options[200]; /* of the model */
    struct run expected;
    int cases, failures;
};

static void keep(struct sl_runtime *rt, struct sl_tile *tile, struct numbers *out)
{
    const int64_t count = tile->rows * tile->cols;
    if (count == 0) /* a hop */
        return;
    const float *from = sl_tile_acquire(rt, tile, false);
    out->value = realloc(out->value, (size_t)(out->count + count) * sizeof *out->value);
    if (!out->value)
        sl_fatal("no memory for parameters");
    for (int64_t r = 0; r < tile->rows; r++)
        memcpy(out->value + out->count + r * tile->cols, from + r * tile->ld,
               (size_t)tile->cols * sizeof *from);
    sl_tile_release(tile);
    out->count += count;
}

static void free_run(struct run *run)
{
    free(run->parameters.value);
    free(run->gradients.value);
    *run = (struct run){.loss = {0.0}};
}

/* Train as the program does. Without decay, the state is made of gradients alone. */
static int train(const struct checking *k, struct sl_runtime *rt, const char *way, struct run *out)
{
    struct sl_config config = {0};
    struct sl_source source;
    struct sl_trainer trainer = {0};
    struct sl_report report;
    struct sl_outcome outcome = {0};
    char line[480];
    *out = (struct run){.loss = {0.0}};
    snprintf(line, sizeof line,
             "--epochs %d --tiles 5 --optimizer sgd --lr 0.1 --weight-decay 0 --hidden 10 %s %s",
             EPOCHS, k->options, way);
    sl_test_configure(&config, line);
    rt->stages = sl_config_stages(&config);
    const struct sl_assembly how = sl_batches_whole(&config);
    int code = sl_source_of(k->data, &source);
    if (!code)
        code = sl_edges_settle(&config, &source);
    if (!code)
        code = sl_operands_order(rt, &source, &how);
    if (!code)
        code = sl_trainer_create(&trainer, rt, &source, &config, NULL);
    if (!code)
        code = sl_report_open(&report, NULL, false, true);
    if (!code) {
        code = sl_trainer_run(&trainer, &report, &outcome);
        sl_report_close(&report);
    }
    for (int e = 0; !code && e < EPOCHS; e++)
        out->loss[e] = sl_records_of(&trainer.records, e + 1)->train_loss;
    for (int l = 0; !code && rt->rank == 0 && l < trainer.model.layers; l++) {
        keep(rt, &trainer.model.layer[l].parameters, &out->parameters);
        keep(rt, &trainer.model.layer[l].state[0], &out->gradients);
    }
    sl_outcome_free(&outcome);
    sl_trainer_destroy(&trainer);
    sl_source_close(&source);
    sl_options_free(sl_config_options, &config);
    return code;
}

/* The largest difference, relative to the largest number; infinite where one is none. */
static double difference(const struct numbers *a, const struct numbers *b)
{
    double size = 0.0, most = 0.0;
    for (int64_t i = 0; i < b->count; i++)
        size = fmax(size, fabs((double)b->value[i]));
    for (int64_t i = 0; i < b->count && a->count == b->count; i++) {
        const double d = fabs((double)a->value[i] - (double)b->value[i]);
        most = d <= most ? most : isfinite(d) ? d : INFINITY;
    }
    return a->count == b->count && size > 0.0 ? most / size : INFINITY;
}

static double difference_of(const struct run *a, const struct run *b)
{
    double most =
        fmax(difference(&a->parameters, &b->parameters), difference(&a->gradients, &b->gradients));
    for (int e = 0; e < EPOCHS; e++) {
        const double d = fabs(a->loss[e] - b->loss[e]) / fabs(b->loss[e]);
        most = d <= most ? most : isfinite(d) ? d : INFINITY;
    }
    return most;
}

static void check(struct checking *k, const char *way)
{
    struct run got;
    const int code = train(k, k->rt, way, &got);
    const double far = !code && k->rt->rank == 0 ? difference_of(&got, &k->expected) : 0.0;
    const bool good = !code && far <= TOLERANCE;
    k->cases++;
    k->failures += !good;
    if (k->rt->rank == 0)
        printf("%s  %s %s: off by %.1e%s%s\n", good ? "ok  " : "FAIL", k->options, way, far,
               code ? "; " : "", code ? sl_error_message() : "");
    free_run(&got);
}

/* Rank 0 trains alone before the first case of a model. */
static void train_alone(struct checking *k)
{
    struct sl_runtime alone = *k->rt;
    alone.ranks = 1;
    const int code = k->rt->rank == 0 ? train(k, &alone, "--grid 1x1x1", &k->expected) : 0;
    if (sl_runtime_agree(k->rt, code))
        sl_fatal("%s, alone: %s", k->options, sl_error_message());
}

/* One model in all ways. *number: of the cases so far. */
static void check_model(struct checking *k, int *number, bool all, const char *wanted)
{
    bool alone = false;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        char name[400];
        if (ways[w].ranks != k->rt->ranks || is_left_out(k->options, ways[w].options))
            continue;
        snprintf(name, sizeof name, "%s %s", k->options, ways[w].options);
        if ((*number)++ % (all ? 1 : SOME) != 0 || (wanted && !strstr(name, wanted)))
            continue;
        if (!alone)
            train_alone(k);
        alone = true;
        check(k, ways[w].options);
    }
    free_run(&k->expected);
}

int main(int argc, char **argv)
{
    enum { FIXTURES = sizeof fixtures / sizeof *fixtures };
    const bool all = argc > 1 && strcmp(argv[1], "all") == 0;
    struct sl_runtime rt;
    struct sl_dataset data[FIXTURES];
    int number = 0;
    if (sl_runtime_start(&rt, &(struct sl_runtime_options){.workers = 1, .quiet = true}))
        sl_fatal("%s", sl_error_message());
    struct checking k = {.rt = &rt};
    for (int f = 0; f < FIXTURES; f++)
        data[f] = sl_fixture_open(&fixtures[f]);
    for (size_t l = 0; l < sizeof layers / sizeof *layers; l++)
        for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
            const bool edges = strstr(models[m], "edge") || strstr(models[m], "gine"),
                       related = strstr(models[m], "rgcn");
            k.data = &data[edges     ? FIXTURES - 1
                           : related ? FIXTURES - 2
                                     : (l + m) % (FIXTURES - 2)];
            snprintf(k.options, sizeof k.options, "--dropout 0.3 --layers %d --model %s", layers[l],
                     models[m]);
            check_model(&k, &number, all, argc > 2 ? argv[2] : NULL);
        }
    for (int f = 0; f < FIXTURES; f++)
        sl_fixture_close(&data[f]);
    if (rt.rank == 0)
        printf("%d cases on %d rank%s, %d failed\n", k.cases, rt.ranks, rt.ranks == 1 ? "" : "s",
               k.failures);
    int64_t failed = k.failures + (k.cases == 0);
    sl_runtime_sum(&rt, &failed, 1);
    sl_runtime_stop(&rt);
    return failed > 0;
}
