/* starling generate rmat: the graphs of Graph500. */
#include "data/generate/generate_rmat.h"

#include "cli/generate.h"

struct config {
    struct sl_rmat_options options;
    struct sl_talk talk;
};

static const struct sl_option options[] = {
    {"scale", SL_OPTION_INT, offsetof(struct config, options.scale), "20", 1, 30, NULL, "N",
     "2^N vertices", "Graph"},
    {"edge-factor", SL_OPTION_REAL, offsetof(struct config, options.edge_factor), "16", 0, 1e6,
     NULL, "K", "edges drawn per vertex; loops and duplicates of them are dropped", "Graph"},
    {"a", SL_OPTION_REAL, offsetof(struct config, options.a), "0.57", 0, 1, NULL, "P",
     "probability that an edge falls into the upper left quarter of the adjacency, and again in "
     "each quarter",
     "Graph"},
    {"b", SL_OPTION_REAL, offsetof(struct config, options.b), "0.19", 0, 1, NULL, "P",
     "the same for the upper right quarter", "Graph"},
    {"c", SL_OPTION_REAL, offsetof(struct config, options.c), "0.19", 0, 1, NULL, "P",
     "the same for the lower left quarter; the lower right one has what is left to 1", "Graph"},
    {"symmetric", SL_OPTION_FLAG, offsetof(struct config, options.symmetric), "yes", 0, 0, NULL,
     NULL, "the reverse of every edge is an edge, too", "Graph"},
    {"permute", SL_OPTION_FLAG, offsetof(struct config, options.permute), "yes", 0, 0, NULL, NULL,
     "vertices in random order; else the first ones have most edges", "Graph"},
    SL_GENERATE_VERTICES_OPTIONS(config),
    SL_GENERATE_THREADS_OPTION(config),
    SL_GENERATE_OPTIONS(config),
    {0},
};

static int generate(const void *config, struct sl_dataset *data)
{
    return sl_generate_rmat(&((const struct config *)config)->options, data);
}

static int run_generate_rmat(int argc, char **argv)
{
    struct config config = {0};
    return sl_generate_run(&sl_command_generate_rmat, &config, &config.talk, generate, argc, argv);
}

const struct sl_command sl_command_generate_rmat = {
    .name = "generate rmat",
    .synopsis = "DIRECTORY [--OPTION ...]",
    .summary = "Write an R-MAT graph, with Graph500's parameters by default, and random vertices",
    .options = options,
    .run = run_generate_rmat,
};
