/* Train on every grid of the ranks, in one process for each rank. Losses, gradients, parameters and
 * predictions equal the results of one rank, to rounding (tests/trained.h). tests/every-grid.sh
 * runs this program on several numbers of ranks; `every_grid NAME` takes one case alone.
 *
 * Hidden layers, and features and classes of the made graphs, are of prime widths, and so are
 * vertices and tiles: no grid divides them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "tests/fixtures.h"
#include "tests/trained.h"

static const double TOLERANCE = 1e-4, COARSE = 3e-2; /* of float32 and of bfloat16 */

enum { LAYERS = 4, HIDDEN = 13 };

struct test_case {
    const char *name;
    struct sl_fixture fixture; /* without classes: the real dataset of that name */
    const char *options;
};

static const struct test_case cases[] = {
    {.name = "cora", .options = "--dropout 0.5"},
    {.name = "directed",
     .fixture = {.vertices = 61,
                 .features = 17,
                 .classes = 11,
                 .degree = 5,
                 .directed = true,
                 .weighted = true,
                 .form = SL_FEATURES_DENSE,
                 .seed = 21},
     .options = "--dropout 0.25 --norm row --product-order spmm --broadcast tree"},
    {.name = "directed, one stage at a time",
     .fixture = {.vertices = 59,
                 .features = 17,
                 .classes = 11,
                 .degree = 5,
                 .directed = true,
                 .weighted = true,
                 .form = SL_FEATURES_DENSE,
                 .seed = 22},
     .options = "--dropout 0 --product-order gemm --no-overlap --no-cache-adjacency"},
    {.name = "sparse",
     .fixture = {.vertices = 67,
                 .features = 19,
                 .classes = 11,
                 .degree = 4,
                 .form = SL_FEATURES_CSR,
                 .seed = 23},
     .options = "--dropout 0.25 --product-order gemm --broadcast direct"},
    {.name = "GraphSAGE",
     .fixture = {.vertices = 61,
                 .features = 17,
                 .classes = 11,
                 .degree = 4,
                 .directed = true,
                 .weighted = true,
                 .isolated = 3,
                 .form = SL_FEATURES_DENSE,
                 .seed = 24},
     .options = "--model sage --aggregator mean --dropout 0.25"},
    {.name = "GraphSAGE, max",
     .fixture = {.vertices = 59,
                 .features = 17,
                 .classes = 11,
                 .degree = 4,
                 .directed = true,
                 .weighted = true,
                 .self_loops = true,
                 .isolated = 3,
                 .form = SL_FEATURES_DENSE,
                 .seed = 25},
     .options = "--model sage --aggregator max --dropout 0.25 --lr 0.1"},
    {.name = "own tiles first, two vertex orders, adjacency travels",
     .fixture = {.vertices = 61,
                 .features = 17,
                 .classes = 11,
                 .degree = 5,
                 .directed = true,
                 .weighted = true,
                 .form = SL_FEATURES_DENSE,
                 .seed = 26},
     .options = "--dropout 0.25 --norm row --order double --no-cache-adjacency "
                "--sum-order own-first"},
    {.name = "own tiles first, GraphSAGE, min, one stage at a time",
     .fixture = {.vertices = 59,
                 .features = 17,
                 .classes = 11,
                 .degree = 4,
                 .directed = true,
                 .isolated = 3,
                 .form = SL_FEATURES_DENSE,
                 .seed = 27},
     .options = "--model sage --aggregator min --dropout 0.25 --lr 0.1 --no-overlap "
                "--sum-order own-first"},
    {.name = "bfloat16, SpMM first",
     .fixture = {.vertices = 61,
                 .features = 17,
                 .classes = 11,
                 .degree = 5,
                 .directed = true,
                 .weighted = true,
                 .form = SL_FEATURES_DENSE,
                 .seed = 28},
     .options = "--precision bf16 --dropout 0.25 --product-order spmm"},
    {.name = "bfloat16, GraphSAGE, sparse, without bias",
     .fixture = {.vertices = 67,
                 .features = 19,
                 .classes = 11,
                 .degree = 4,
                 .isolated = 3,
                 .form = SL_FEATURES_CSR,
                 .seed = 29},
     .options = "--precision bf16 --model sage --dropout 0.25 --no-bias --sum-order own-first"},
    {.name = "graph attention, directed, weighted",
     .fixture = {.vertices = 61,
                 .features = 17,
                 .classes = 11,
                 .degree = 4,
                 .directed = true,
                 .weighted = true,
                 .self_loops = true,
                 .isolated = 3,
                 .form = SL_FEATURES_DENSE,
                 .seed = 30},
     .options = "--model gat --heads 3 --hidden 5 --out-heads 2 --dropout 0.25 "
                "--attention-dropout 0.4"},
    {.name = "graph attention, own tiles first, one stage at a time, adjacency travels",
     .fixture = {.vertices = 67,
                 .features = 19,
                 .classes = 11,
                 .degree = 4,
                 .isolated = 3,
                 .form = SL_FEATURES_CSR,
                 .seed = 31},
     .options = "--model gat --heads 2 --hidden 4 --out-heads 3 --dropout 0 "
                "--attention-dropout 0.25 --no-overlap --no-cache-adjacency --no-bias "
                "--sum-order own-first"},
};

/* ---- One run ---- */

static int train(struct sl_runtime *rt, const struct test_case *c, const struct sl_source *source,
                 const char *grid, struct sl_trained *out)
{
    char options[400];
    snprintf(options, sizeof options, "--layers %d --hidden %d %s %s", LAYERS, HIDDEN, c->options,
             grid);
    return sl_train(rt, source, options, out);
}

/* ---- All grids ---- */

struct checking {
    struct sl_runtime *rt;
    const struct test_case *c;
    struct sl_source source;
    struct sl_trained expected;
    int grids, failures;
};

static int64_t narrowest(const struct sl_source *source)
{
    const int64_t least = source->features < source->classes ? source->features : source->classes;
    return least < HIDDEN ? least : HIDDEN;
}

/* One rank says why. */
static bool is_refused(struct sl_runtime *rt, int code, const char *why)
{
    const char *said = sl_error_message();
    int64_t sentences = said[0] != '\0';
    const int64_t wrong = code != SL_ERR_USAGE || (sentences && !strstr(said, why));
    sl_runtime_sum(rt, &sentences, 1);
    sl_error(0, "%s", "");
    return sl_runtime_least(rt, -wrong) == 0 && sentences == 1;
}

static void check_grid(struct checking *k, int rows, int columns, int layers)
{
    char grid[40];
    struct sl_trained got;
    snprintf(grid, sizeof grid, "--grid %dx%dx%d", rows, columns, layers);
    const char *refusal =
        columns > narrowest(&k->source) ? "expected no fewer than the grid's" : NULL;
    const int code = train(k->rt, k->c, &k->source, grid, &got);
    const bool refused = refusal && is_refused(k->rt, code, refusal);
    const double far = !code && k->rt->rank == 0 ? sl_trained_difference(&got, &k->expected) : 0.0;
    const double limit = strstr(k->c->options, "bf16") ? COARSE : TOLERANCE;
    const bool good = refusal ? refused : !code && far <= limit;
    k->grids++;
    k->failures += !good;
    if (k->rt->rank == 0 && good && refusal)
        printf("ok    %s, %s: refused\n", k->c->name, grid);
    else if (k->rt->rank == 0 && good)
        printf("ok    %s, %s: %.1e\n", k->c->name, grid, far);
    else if (k->rt->rank == 0)
        printf("FAIL  %s, %s: off by %.2g of the largest number; code %d, %s\n", k->c->name, grid,
               far, code, sl_error_message());
    sl_trained_free(&got);
}

static void check_grids(struct checking *k)
{
    const int ranks = k->rt->ranks;
    const int most = strstr(k->c->options, "--model gat") ? 1 : ranks; /* columns */
    for (int layers = 1; layers <= ranks; layers++)
        for (int columns = 1; ranks % layers == 0 && columns <= ranks / layers; columns++)
            if (columns <= most && ranks / layers % columns == 0)
                check_grid(k, ranks / layers / columns, columns, layers);
}

/* Rank 0 trains alone first, with the default order of sums. */
static void check_source(struct checking *k)
{
    struct sl_runtime alone = *k->rt;
    alone.ranks = 1;
    const int code = k->rt->rank == 0 ? train(&alone, k->c, &k->source,
                                              "--grid 1x1x1 --sum-order tiles", &k->expected)
                                      : 0;
    if (sl_runtime_agree(k->rt, code)) {
        k->failures++;
        if (k->rt->rank == 0)
            printf("FAIL  %s, alone: %s\n", k->c->name, sl_error_message());
    } else {
        check_grids(k);
    }
    sl_trained_free(&k->expected);
}

/* A made one is a fixture, the other ones are there where the data is. */
static void check_case(struct checking *k)
{
    struct sl_dataset data;
    char path[4096];
    const bool made = k->c->fixture.classes > 0;
    const char *folder = getenv("SL_SHARED_DATA");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "", k->c->name);
    if (!made && access(path, R_OK)) {
        if (k->rt->rank == 0)
            printf("skip  %s: not there\n", k->c->name);
        return;
    }
    struct sl_fixture fixture = k->c->fixture;
    fixture.name = k->c->name;
    if (made)
        data = sl_fixture_open(&fixture);
    if (made ? sl_source_of(&data, &k->source) : sl_source_open(k->rt, path, &k->source))
        sl_fatal("%s: %s", k->c->name, sl_error_message());
    check_source(k);
    sl_source_close(&k->source);
    if (made)
        sl_fixture_close(&data);
}

int main(int argc, char **argv)
{
    struct sl_runtime rt;
    int grids = 0, failures = 0;
    if (sl_runtime_start(&rt, &(struct sl_runtime_options){.workers = 1, .quiet = true}))
        sl_fatal("%s", sl_error_message());
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct checking k = {.rt = &rt, .c = &cases[c]};
        if (argc < 2 || strcmp(argv[1], cases[c].name) == 0)
            check_case(&k);
        grids += k.grids;
        failures += k.failures;
    }
    if (rt.rank == 0)
        printf("%d cases on %d ranks, %d failed\n", grids, rt.ranks, failures);
    int64_t all = failures + (grids == 0);
    sl_runtime_sum(&rt, &all, 1);
    sl_runtime_stop(&rt);
    return all > 0;
}
