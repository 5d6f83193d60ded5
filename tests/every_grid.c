/* Train on grids of the ranks, in one process for each rank: on up to 4 ranks on every grid.
 * Losses, gradients, parameters and predictions equal the results of one rank, to rounding
 * (tests/trained.h). tests/every-grid.sh runs this program on several numbers of ranks;
 * `every_grid NAME` takes one case alone, on every grid. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "tests/every.h"
#include "tests/own.h"

static const struct sl_every_case cases[] = {
    {.name = "cora", .options = "--dropout 0.5"},
    {.name = "directed",
     .fixture = {SL_EVERY_DENSE(61, 5, 0), SL_EVERY_WEIGHTED, .seed = 21},
     .options = "--dropout 0.25 --norm row --product-order spmm --broadcast tree",
     .apart = true},
    {.name = "directed, one stage at a time",
     .fixture = {SL_EVERY_DENSE(59, 5, 0), SL_EVERY_WEIGHTED, .seed = 22},
     .options = "--dropout 0 --product-order gemm --no-overlap --no-cache-adjacency"},
    {.name = "sparse",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 0), .seed = 23},
     .options = "--dropout 0.25 --product-order gemm --broadcast direct"},
    {.name = "GraphSAGE",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .seed = 24},
     .options = "--model sage --aggregator mean --dropout 0.25"},
    {.name = "GraphSAGE, max",
     .fixture = {SL_EVERY_DENSE(59, 4, 3), SL_EVERY_WEIGHTED, .self_loops = true, .seed = 25},
     .options = "--model sage --aggregator max --dropout 0.25 --lr 0.1"},
    {.name = "GraphSAGE, a reducer of a program",
     .fixture = {SL_EVERY_DENSE(59, 4, 3), SL_EVERY_WEIGHTED, .self_loops = true, .seed = 58},
     .options = "--model sage --aggregator own-power --layers 3 --dropout 0.25 --lr 0.03"},
    {.name = "GraphSAGE, a reducer of a program, sparse, own tiles first, one stage at a time",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 59},
     .options = "--model sage --aggregator own-power --dropout 0 --lr 0.03 --no-overlap "
                "--sum-order own-first --no-cache-adjacency"},
    {.name = "own tiles first, two vertex orders, adjacency travels",
     .fixture = {SL_EVERY_DENSE(61, 5, 0), SL_EVERY_WEIGHTED, .seed = 26},
     .options = "--dropout 0.25 --norm row --order double --no-cache-adjacency "
                "--sum-order own-first"},
    {.name = "own tiles first, GraphSAGE, min, one stage at a time",
     .fixture = {SL_EVERY_DENSE(59, 4, 3), .directed = true, .seed = 27},
     .options = "--model sage --aggregator min --dropout 0.25 --lr 0.1 --no-overlap "
                "--sum-order own-first"},
    {.name = "bfloat16, SpMM first",
     .fixture = {SL_EVERY_DENSE(61, 5, 0), SL_EVERY_WEIGHTED, .seed = 28},
     .options = "--precision bf16 --dropout 0.25 --product-order spmm"},
    {.name = "bfloat16, GraphSAGE, sparse, without bias",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 29},
     .options = "--precision bf16 --model sage --dropout 0.25 --no-bias --sum-order own-first"},
    {.name = "graph attention, directed, weighted",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .self_loops = true, .seed = 30},
     .options = "--model gat --heads 3 --hidden 5 --out-heads 2 --dropout 0.25 "
                "--attention-dropout 0.4"},
    {.name = "graph attention, edge features",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), .directed = true, .edge_features = 3, .self_loops = true,
                 .seed = 81},
     .options = "--model gat --heads 3 --hidden 5 --out-heads 2 --dropout 0.25 "
                "--attention-dropout 0.4",
     .apart = true},
    {.name = "graph attention, edge features, a classifier, own tiles first, without bias",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .edge_features = 9, .seed = 82},
     .options = "--model gat --heads 4 --hidden 4 --residual linear --classifier linear --dropout "
                "0.25 --no-bias --sum-order own-first --no-cache-adjacency"},
    {.name = "attention of GATv2, edge features",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), .directed = true, .edge_features = 3, .self_loops = true,
                 .seed = 87},
     .options = "--model gatv2 --heads 3 --hidden 5 --classifier linear --dropout 0.25 "
                "--attention-dropout 0.4",
     .apart = true},
    {.name = "attention of transformers, edge features, one stage at a time, without bias",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .edge_features = 5, .seed = 88},
     .options = "--model transformer --heads 3 --hidden 4 --jump sum --dropout 0.25 --no-bias "
                "--attention-dropout 0.25 --no-overlap --no-cache-adjacency"},
    {.name = "sums of edges",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), .directed = true, .edge_features = 3, .self_loops = true,
                 .seed = 83},
     .options = "--model gine --layers 3 --dropout 0.25 --lr 1e-3",
     .apart = true},
    {.name = "sums of edges, sparse, no encoder, one stage at a time, adjacency travels",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .edge_features = 1, .seed = 84},
     .options = "--model gine --encoder none --layers 2 --norm-layers row --dropout 0.25 "
                "--input-dropout 0.25 --no-overlap --no-cache-adjacency --lr 1e-2"},
    {.name = "relations",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), .directed = true, .relations = 5, .self_loops = true,
                 .seed = 91},
     .options = "--model rgcn --layers 3 --dropout 0.25 --lr 0.1",
     .apart = true},
    {.name = "relations, sparse, an encoder, one stage at a time, adjacency travels",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .relations = 3, .self_loops = true, .seed = 92},
     .options = "--model rgcn --encoder linear --layers 2 --norm-layers row --residual identity "
                "--dropout 0.25 --input-dropout 0.25 --no-overlap --no-cache-adjacency --lr 0.1"},
    {.name = "relations beside features of edges, own tiles first, without bias",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .directed = true, .edge_features = 2,
                 .relations = 40, .seed = 93},
     .options = "--model rgcn --layers 2 --jump sum --classifier linear --dropout 0 --no-bias "
                "--sum-order own-first --lr 0.1"},
    {.name = "graph attention, own tiles first, one stage at a time, adjacency travels",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 31},
     .options = "--model gat --heads 2 --hidden 4 --out-heads 3 --dropout 0 "
                "--attention-dropout 0.25 --no-overlap --no-cache-adjacency --no-bias "
                "--sum-order own-first"},
    {.name = "residual blocks",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .self_loops = true, .seed = 40},
     .options = "--model resgcn --dropout 0.25",
     .apart = true},
    {.name = "residual blocks, made again, SpMM first, adjacency travels",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 41},
     .options = "--model resgcn --layers 7 --recompute 3 --dropout 0.25 --product-order spmm "
                "--no-cache-adjacency --no-bias"},
    {.name = "residual blocks, normalised columns",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 42},
     .options = "--model resgcn --block-norm batch --dropout 0.25 --product-order spmm"},
    {.name =
         "residual blocks, normalised columns, made again, one stage at a time, own tiles first",
     .fixture = {SL_EVERY_DENSE(59, 4, 3), SL_EVERY_WEIGHTED, .seed = 43},
     .options = "--model resgcn --block-norm batch --layers 5 --recompute 2 --dropout 0.25 "
                "--product-order gemm --no-overlap --sum-order own-first --clip-norm 0.5",
     .apart = true},
    {.name = "residual blocks, bfloat16, made again",
     .fixture = {SL_EVERY_DENSE(61, 4, 2), .seed = 44},
     .options = "--model resgcn --precision bf16 --recompute 2 --dropout 0.25 --lr 0.05"},
    {.name = "residual blocks, bfloat16, normalised columns, SpMM first",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 51},
     .options = "--model resgcn --block-norm batch --precision bf16 --dropout 0.25 --lr 0.05 "
                "--product-order spmm"},
    {.name = "residual blocks, a layer of a program",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .seed = 56},
     .options = "--model resgcn --block-norm own-blend --layers 3 --recompute 2 --dropout 0.25 "
                "--weight-decay-all",
     .apart = true},
    {.name = "residual blocks, a layer of a program, bfloat16",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 0), .seed = 57},
     .options = "--model resgcn --block-norm own-blend --precision bf16 --dropout 0.25 --lr 0.05"},
    {.name = "normalised rows, attention, adjacency travels",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 61},
     .options = "--model gat --norm-layers row --layers 3 --heads 3 --hidden 5 --dropout 0.25 "
                "--no-cache-adjacency"},
    {.name = "normalised columns, GEMM first",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .self_loops = true, .seed = 62},
     .options = "--norm-layers batch --layers 3 --dropout 0.25 --product-order gemm",
     .apart = true},
    {.name = "linear residual and classifier, normalised columns, GEMM first",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .self_loops = true, .seed = 65},
     .options = "--residual linear --classifier linear --norm-layers batch --layers 2 "
                "--dropout 0.25 --product-order gemm",
     .apart = true},
    {.name = "linear residual, sparse, SpMM first, own tiles first",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 66},
     .options = "--residual linear --layers 3 --dropout 0.25 --product-order spmm --no-bias "
                "--sum-order own-first"},
    {.name = "linear residual, aggregated features, bfloat16",
     .fixture = {SL_EVERY_DENSE(61, 4, 2), .seed = 67},
     .options = "--residual linear --precision bf16 --dropout 0 --lr 0.05"},
    {.name = "normalised columns, attention",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 69},
     .options = "--model gat --norm-layers batch --layers 2 --heads 4 --hidden 4 --dropout 0.25"},
    {.name = "attention and a classifier",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 0), .seed = 68},
     .options = "--model gat --classifier linear --heads 2 --hidden 4 --dropout 0.25"},
    {.name = "attention, linear residual, normalised columns, an encoder",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .seed = 73},
     .options = "--model gat --residual linear --classifier linear --norm-layers batch --encoder "
                "linear --layers 2 --heads 4 --hidden 4 --dropout 0.25",
     .apart = true},
    {.name = "attention of wide heads, linear residual",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), .seed = 79},
     .options =
         "--model gat --residual linear --classifier linear --layers 3 --heads 3 --hidden 32 "
         "--dropout 0.25"},
    {.name = "attention of wide heads, identity residual, jump over norms",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 0), .seed = 80},
     .options = "--model gat --residual identity --jump concat --norm-layers row --layers 3 "
                "--heads 3 --hidden 32 --dropout 0.25"},
    {.name = "attention of GATv2, directed, weighted",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .self_loops = true, .seed = 85},
     .options = "--model gatv2 --heads 3 --hidden 5 --classifier linear --dropout 0.25 "
                "--attention-dropout 0.4"},
    {.name = "attention of GATv2 without bias, one stage at a time, adjacency travels",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 86},
     .options = "--model gatv2 --heads 4 --hidden 3 --jump sum --dropout 0 --no-bias "
                "--attention-dropout 0.25 --no-overlap --no-cache-adjacency --sum-order own-first"},
    {.name = "attention of transformers, wide heads",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 87},
     .options = "--model transformer --heads 3 --hidden 32 --layers 3 --classifier linear "
                "--attention-dropout 0.25"},
    {.name = "attention of transformers without residual, directed, weighted",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .seed = 88},
     .options = "--model transformer --residual none --heads 2 --hidden 4 --norm-layers row "
                "--classifier linear --dropout 0.25"},
    {.name = "attention, identity residual after an encoder",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), .seed = 84},
     .options = "--model gat --encoder linear --residual identity --layers 3 --heads 3 --hidden 5 "
                "--dropout 0.25"},
    {.name = "identity residual, sum of outputs, GEMM first",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .seed = 81},
     .options = "--residual identity --jump sum --encoder linear --layers 3 --dropout 0.25 "
                "--product-order gemm",
     .apart = true},
    {.name = "identity residual, outputs side by side, SpMM first, bfloat16",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 0), .seed = 82},
     .options = "--residual identity --jump concat --layers 3 --dropout 0.25 --product-order spmm "
                "--precision bf16 --lr 0.05"},
    {.name = "GraphSAGE, identity residual, sum of outputs",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .seed = 83},
     .options = "--model sage --residual identity --jump sum --norm-layers batch --layers 3 "
                "--dropout 0.25",
     .apart = true},
    {.name = "attention, linear residual, sparse",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 74},
     .options = "--model gat --residual linear --classifier linear --activation relu --layers 3 "
                "--heads 2 --hidden 5 --dropout 0.25"},
    {.name = "an encoder, elu, GEMM first",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .seed = 75},
     .options = "--encoder linear --activation elu --dropout 0.25 --product-order gemm",
     .apart = true},
    {.name = "an encoder, elu, linear residual, bfloat16",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 76},
     .options = "--encoder linear --activation elu --residual linear --precision bf16 --dropout "
                "0.25 --lr 0.05"},
    {.name = "normalised rows, maximum of neighbours, SpMM first",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .seed = 63},
     .options = "--model sage --aggregator max --norm-layers row --layers 3 --dropout 0.25 "
                "--product-order spmm"},
    {.name = "isomorphism network, normalised columns, bfloat16",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 64},
     .options = "--model gin --norm-layers batch --precision bf16 --dropout 0.25 --lr 0.05"},
    {.name = "isomorphism network",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .seed = 45},
     .options = "--model gin --dropout 0.25 --lr 1e-4"},
    {.name = "isomorphism network, sparse, SpMM first",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 46},
     .options = "--model gin --layers 2 --dropout 0 --product-order spmm --lr 1e-3"},
    {.name = "hops",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .seed = 47},
     .options = "--model sgc --hops 3 --dropout 0.25 --broadcast tree"},
    {.name = "hops, sparse, two vertex orders",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 0), SL_EVERY_WEIGHTED, .seed = 48},
     .options = "--model sgc --hops 3 --dropout 0.25 --order double --no-overlap"},
    {.name = "hops that return",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .self_loops = true, .seed = 49},
     .options = "--model appnp --layers 2 --hops 4 --teleport 0.2 --dropout 0.25 --norm row",
     .apart = true},
    {.name = "hops that return, sparse, own tiles first, adjacency travels",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 50},
     .options = "--model appnp --layers 3 --hops 2 --dropout 0.25 --no-cache-adjacency --no-bias "
                "--sum-order own-first"},
    {.name = "largest of all outputs, over norms of columns, weighted, bfloat16",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .seed = 91},
     .options = "--residual identity --jump max --encoder linear --norm-layers batch --layers 3 "
                "--dropout 0.25 --precision bf16 --lr 0.05",
     .apart = true},
    {.name = "largest of all outputs of wide heads",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 0), .seed = 92},
     .options = "--model gat --jump max --layers 3 --heads 3 --hidden 32 --dropout 0.25"},
    {.name = "residual blocks of GraphSAGE, made again",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .seed = 93},
     .options = "--model resgcn --block-aggregator mean --layers 3 --recompute 2 --dropout 0.25",
     .apart = true},
    {.name = "jumping knowledge",
     .fixture = {SL_EVERY_DENSE(61, 4, 3), SL_EVERY_WEIGHTED, .self_loops = true, .seed = 52},
     .options = "--model jknet --layers 3 --product-order gemm --dropout 0.25 --clip-norm 0.5",
     .apart = true},
    {.name = "jumping knowledge, sparse, SpMM first, adjacency travels",
     .fixture = {SL_EVERY_SPARSE(67, 11, 4, 3), .seed = 53},
     .options = "--model jknet --layers 3 --dropout 0.25 --product-order spmm --no-bias "
                "--no-cache-adjacency --no-overlap"},
    {.name = "jumping knowledge, bfloat16",
     .fixture = {SL_EVERY_DENSE(61, 4, 2), .seed = 54},
     .options = "--model jknet --precision bf16 --layers 4 --dropout 0.25 --lr 0.05"},
};

/* The most columns of a grid. The heads of attention are not cut. */
static int64_t narrowest(const struct sl_every *every)
{
    const struct sl_source *source = &every->source;
    const int64_t least = source->features < source->classes ? source->features : source->classes;
    const char *heads = strstr(every->c->options, "--heads ");
    const int64_t hidden = heads ? atoi(heads + strlen("--heads ")) : SL_EVERY_HIDDEN;
    return least < hidden ? least : hidden;
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

static void check_grid(struct sl_every *every, int rows, int columns, int layers, bool apart)
{
    char grid[48];
    struct sl_trained got;
    snprintf(grid, sizeof grid, "--grid %dx%dx%d", rows, columns, layers);
    const int code = sl_every_train(every, &every->source, grid, apart, &got);
    if (columns > 1 && strstr(every->c->options, "own-blend"))
        sl_every_say(every, is_refused(every->rt, code, "reads whole rows"), grid,
                     "columns have to be refused");
    else if (columns > 1 && strstr(every->c->options, "rgcn"))
        sl_every_say(every, is_refused(every->rt, code, "rows of features are not cut"), grid,
                     "columns have to be refused");
    else if (columns > narrowest(every))
        sl_every_say(every, is_refused(every->rt, code, "expected no fewer than the grid's"), grid,
                     "too many columns have to be refused");
    else
        sl_every_judge(every, grid, apart, code, &got, true, "");
    sl_trained_free(&got);
}

/* More than four ranks have grids of short sides. On 8 ranks, a case has one long grid, too. */
static bool is_wanted(const struct sl_every *every, int rows, int columns, int layers)
{
    enum {
        SHORT = 6, /* ranks; on more, networks of many layers wait for messages most of the time */
        LONG = 3   /* ranks along a side */
    };
    static const int long_grids[][3] = {{8, 1, 1}, {1, 8, 1}, {4, 2, 1}, {4, 1, 2}};
    const int ranks = every->rt->ranks, *turn = long_grids[every->number / 5 % 4];
    if (rows * columns * layers != ranks)
        return false;
    if (every->all)
        return columns == 1 || ranks <= SHORT || !strstr(every->c->options, "--model resgcn");
    return ranks <= 4 || (rows <= LONG && columns <= LONG && layers <= LONG) ||
           (rows == turn[0] && columns == turn[1] && layers == turn[2]);
}

static void check_grids(struct sl_every *every)
{
    const int ranks = every->rt->ranks;
    for (int layers = 1; layers <= ranks; layers++)
        for (int columns = 1; columns <= ranks / layers; columns++)
            for (int apart = 0; apart <= every->c->apart; apart++) {
                const int rows = ranks / layers / columns;
                if (is_wanted(every, rows, columns, layers))
                    check_grid(every, rows, columns, layers, apart);
            }
}

int main(int argc, char **argv)
{
    static const struct sl_every_program program = {
        .cases = cases,
        .count = sizeof cases / sizeof *cases,
        .size = sizeof *cases,
        .layers = 4,
        .check = check_grids,
    };
    sl_test_add_own();
    return sl_every_run(&program, argc, argv);
}
