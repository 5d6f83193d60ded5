/* Train on graphs of one, two and three vertices, on the ranks that an MPI launcher started
 * (tests/tiny-graphs.sh). Often there are more ranks than vertices. Train on every grid, on a halo,
 * and on vertex-cuts of every method and delay, with every model. Graphs have no edges, loops, or
 * all edges. Exact runs equal a run of one rank, to rounding (tests/trained.h). Late runs end with
 * finite losses. Models are sampled (sl_every_wants), and of the ways to share a graph each model
 * takes every third; `tiny_graphs NAME` takes one graph alone, with all models in all ways. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "tests/every.h"
#include "tests/fixtures.h"
#include "tests/trained.h"

static const double TOLERANCE = 1e-4;

enum { WIDTH = 5 }; /* of the features, the hidden layer and the classes: a column for each rank */

enum edges { NO_EDGES, LOOPS, ALL_EDGES, EDGE_KINDS };
static const char *const edge_names[] = {"no edges", "loops", "all edges"};
static const char *const form_names[] = {
    [SL_FEATURES_IDENTITY] = "identity",
    [SL_FEATURES_DENSE] = "dense",
    [SL_FEATURES_CSR] = "sparse",
};
static const enum sl_feature_form forms[] = {SL_FEATURES_IDENTITY, SL_FEATURES_DENSE,
                                             SL_FEATURES_CSR};

struct model {
    const char *options;
    bool max; /* nothing comes late */
};

static const struct model models[] = {
    {.options = "--model gcn"},
    {.options = "--model gcn --dropout 0 --product-order spmm"},
    {.options = "--model sage --aggregator gcn"},
    {.options = "--model sage --aggregator mean"},
    {.options = "--model sage --aggregator sum --layers 3 --no-overlap"},
    {.options = "--model sage --aggregator max", .max = true},
    {.options = "--model gat --heads 5 --attention-dropout 0.25"},
    {.options = "--model gatv2 --heads 5 --classifier linear --no-bias --attention-dropout 0.25",
     .max = true},
    {.options = "--model transformer --heads 5 --classifier linear", .max = true},
    {.options = "--model resgcn --layers 1"},
    {.options = "--model resgcn --layers 2 --block-norm batch"},
    {.options = "--model jknet"},
    {.options = "--model gcn --norm-layers row --residual linear --classifier linear"},
    {.options = "--model gat --heads 5 --norm-layers row"},
    {.options = "--model gat --heads 5 --residual linear --classifier linear --encoder linear"},
    {.options = "--model gcn --encoder linear --activation elu"},
    {.options = "--model gcn --layers 3 --residual identity --jump sum"},
    {.options = "--model gcn --layers 3 --residual identity --jump max"},
};
enum { MODELS = sizeof models / sizeof *models, FORMS = sizeof forms / sizeof *forms };

struct checking {
    struct sl_runtime *rt;
    const struct model *model;
    struct sl_dataset data;
    struct sl_source source;
    char name[64]; /* of the graph */
    struct sl_trained expected;
    bool all; /* ways; else every third */
    int graphs, way, cases, failures;
};

/* ---- Graphs ---- */

static bool has_loop(const struct sl_csr *a)
{
    for (int64_t v = 0; v < a->rows; v++)
        for (int64_t e = a->indptr[v]; e < a->indptr[v + 1]; e++)
            if (a->indices[e] == v)
                return true;
    return false;
}

/* Loops are drawn: the first seed that has some. */
static struct sl_dataset open_graph(int64_t vertices, enum edges edges, enum sl_feature_form form)
{
    struct sl_fixture fixture = {
        .name = "tiny",
        .vertices = vertices,
        .features = WIDTH,
        .classes = WIDTH,
        .degree = edges == ALL_EDGES ? (double)(vertices - 1) : 0.0,
        .weighted = edges == ALL_EDGES,
        .self_loops = edges == LOOPS,
        .form = form,
        .seed = 41,
    };
    struct sl_dataset data = sl_fixture_open(&fixture);
    while (edges == LOOPS && !has_loop(&data.adjacency)) {
        sl_fixture_close(&data);
        fixture.seed++;
        data = sl_fixture_open(&fixture);
    }
    return data;
}

/* ---- Trainings ---- */

static int train(struct checking *k, struct sl_runtime *rt, const struct sl_source *source,
                 const char *how, struct sl_trained *out)
{
    char options[400];
    snprintf(options, sizeof options, "--hidden %d --dropout 0.25 %s %s", WIDTH, k->model->options,
             how);
    return sl_train(rt, source, options, false, out);
}

/* Infinite where a loss is no number. */
static double worst_loss(const struct sl_trained *got)
{
    double worst = 0.0;
    for (int e = 0; e < SL_TRAINED_EPOCHS; e++)
        worst = isfinite(got->loss[e]) && got->loss[e] > 0.0 ? worst : INFINITY;
    return worst;
}

/* All ranks train; rank 0 judges. */
static void check(struct checking *k, const struct sl_source *source, bool exact, const char *how)
{
    struct sl_trained got;
    if (k->way++ % 3 != 0 && !k->all)
        return;
    const int code = train(k, k->rt, source, how, &got);
    double far = 0.0;
    if (!code && k->rt->rank == 0)
        far = exact ? sl_trained_difference(&got, &k->expected) : worst_loss(&got);
    k->cases++;
    if (code || !(far <= TOLERANCE)) {
        k->failures++;
        if (k->rt->rank == 0)
            printf("FAIL  %s, %s, %s: off by %.2g of the largest number; code %d, %s\n", k->name,
                   k->model->options, how, far, code, code ? sl_error_message() : "");
    }
    sl_trained_free(&got);
}

/* Try all grids, up to as many columns as the narrowest matrix has. */
static void check_grids(struct checking *k)
{
    const int ranks = k->rt->ranks;
    const int64_t narrowest = k->data.features < WIDTH ? k->data.features : WIDTH;
    char how[64];
    for (int rows = 1; rows <= ranks; rows++)
        for (int columns = 1; rows * columns <= ranks; columns++) {
            const int depth = ranks / (rows * columns);
            if (rows * columns * depth != ranks || columns > narrowest)
                continue;
            snprintf(how, sizeof how, "--grid %dx%dx%d", rows, columns, depth);
            check(k, &k->source, true, how);
        }
}

/* METIS' parts, and all vertices on the last rank. */
static void check_halos(struct checking *k)
{
    for (int last = 0; last < 2; last++) {
        struct sl_source source = k->source;
        int32_t part[3];
        int code = 0;
        source.blocks = NULL;
        for (int64_t v = 0; v < k->data.vertices; v++)
            part[v] = (int32_t)(k->rt->ranks - 1);
        if (!last)
            code = sl_source_find_parts(k->rt, &k->source, k->rt->ranks, 5, NULL, part);
        if (!code)
            code = sl_source_order_by_parts(&source, k->rt->ranks, part);
        if (code)
            sl_fatal("%s: %s", k->name, sl_error_message());
        check(k, &source, true, "--distribution halo");
        sl_block_free_all(&source.blocks);
    }
}

static void check_cuts(struct checking *k)
{
    static const char *const methods[] = {"metis", "random", "libra", "hdrf"};
    static const char *const delays[] = {"cd-1", "cd-2", "0c"};
    char how[96];
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        snprintf(how, sizeof how, "--distribution vertex-cut --partition %s", methods[m]);
        check(k, &k->source, true, how);
    }
    for (size_t d = k->model->max ? 2 : 0; d < sizeof delays / sizeof *delays; d++) {
        snprintf(how, sizeof how, "--distribution vertex-cut --delay %s", delays[d]);
        check(k, &k->source, k->rt->ranks == 1, how);
    }
}

/* ---- All of it ---- */

/* Rank 0 trains alone first. */
static void check_model(struct checking *k)
{
    struct sl_runtime alone = *k->rt;
    alone.ranks = 1;
    const int code =
        k->rt->rank == 0 ? train(k, &alone, &k->source, "--distribution 1d", &k->expected) : 0;
    if (sl_runtime_agree(k->rt, code))
        sl_fatal("%s, alone: %s", k->name, sl_error_message());
    check_grids(k);
    check_halos(k);
    check_cuts(k);
    sl_trained_free(&k->expected);
}

static void check_graph(struct checking *k, int64_t vertices, enum edges edges,
                        enum sl_feature_form form, const char *wanted)
{
    snprintf(k->name, sizeof k->name, "%d, %s, %s", (int)vertices, edge_names[edges],
             form_names[form]);
    if (wanted && strcmp(wanted, k->name) != 0)
        return;
    k->data = open_graph(vertices, edges, form);
    if (sl_source_of(&k->data, &k->source))
        sl_fatal("%s: %s", k->name, sl_error_message());
    /* Each model meets each form, and so does each kind of edges. */
    for (int m = 0; m < MODELS; m++) {
        k->model = &models[m];
        if (wanted || ((m + (int)vertices + (int)edges) % 2 == 0 &&
                       sl_every_wants(m / 2 + k->graphs, k->rt->ranks))) {
            k->way = m + k->graphs; /* other ways of each model, and of each graph */
            check_model(k);
        }
    }
    k->graphs++;
    sl_source_close(&k->source);
    sl_fixture_close(&k->data);
}

int main(int argc, char **argv)
{
    struct sl_runtime rt;
    if (sl_runtime_start(&rt, &(struct sl_runtime_options){.workers = 1, .quiet = true}))
        sl_fatal("%s", sl_error_message());
    struct checking k = {.rt = &rt, .all = argc > 1 || sl_every_all()};
    for (int64_t vertices = 1; vertices <= 3; vertices++)
        for (enum edges edges = NO_EDGES; edges < EDGE_KINDS; edges++)
            for (int f = 0; (vertices > 1 || edges != ALL_EDGES) && f < FORMS; f++)
                check_graph(&k, vertices, edges, forms[f], argc > 1 ? argv[1] : NULL);
    if (rt.rank == 0)
        printf("%d cases on %d rank%s, %d failed\n", k.cases, rt.ranks, rt.ranks == 1 ? "" : "s",
               k.failures);
    int64_t all = k.failures + (k.cases == 0);
    sl_runtime_sum(&rt, &all, 1);
    sl_runtime_stop(&rt);
    return all != 0;
}
