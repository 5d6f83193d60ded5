/* starling generate bter: a graph with a dataset's vertex count and clustering, and multiplied
 * degrees. */
#include "data/generate/generate_bter.h"

#include "cli/generate.h"
#include "core/error.h"

struct config {
    char *from;
    struct sl_bter_options options;
    struct sl_talk talk;
};

static const struct sl_option options[] = {
    {"from", SL_OPTION_STRING, offsetof(struct config, from), NULL, 0, 0, NULL, "DATASET",
     "the dataset whose vertex count, degrees and clustering to imitate", "Graph"},
    {"scale", SL_OPTION_REAL, offsetof(struct config, options.scale), "1", 0, 1e6, NULL, "S",
     "how many times as many edges, above 0", "Graph"},
    SL_GENERATE_VERTICES_OPTIONS(config),
    SL_GENERATE_THREADS_OPTION(config),
    SL_GENERATE_OPTIONS(config),
    {0},
};

static int generate(const void *config, struct sl_dataset *data)
{
    const struct config *c = config;
    struct sl_dataset from;
    if (!c->from)
        return sl_error(SL_ERR_USAGE, "generate bter: expected --from DATASET, which to imitate");
    int code = sl_dataset_open(c->from, &from);
    if (code)
        return code;
    struct sl_bter_options bter = c->options;
    bter.from = &from;
    code = sl_generate_bter(&bter, data);
    sl_dataset_close(&from);
    return code;
}

static int run_generate_bter(int argc, char **argv)
{
    struct config config = {0};
    return sl_generate_run(&sl_command_generate_bter, &config, &config.talk, generate, argc, argv);
}

const struct sl_command sl_command_generate_bter = {
    .name = "generate bter",
    .synopsis = "DIRECTORY --from DATASET [--scale S] [--OPTION ...]",
    .summary =
        "Write a graph with the degrees and the clustering of a dataset, of any density, and "
        "random vertices",
    .options = options,
    .run = run_generate_bter,
};
