/* starling generate like: a graph like a published dataset. */
#include "data/generate/generate_like.h"

#include "cli/generate.h"

struct config {
    char *name;
    struct sl_like_options options;
    struct sl_talk talk;
};

static const struct sl_option options[] = {
    {"name", SL_OPTION_NAME, offsetof(struct config, name), "reddit", 0, 0, SL_LIKE_NAMES, "NAME",
     "the published dataset to imitate", "Graph"},
    {"scale", SL_OPTION_REAL, offsetof(struct config, options.scale), "0.1", 0, 1, NULL, "S",
     "share of its vertices, above 0; the average degree stays", "Graph"},
    SL_GENERATE_THREADS_OPTION(config),
    SL_GENERATE_OPTIONS(config),
    {0},
};

static int generate(const void *config, struct sl_dataset *data)
{
    const struct config *c = config;
    struct sl_like_options like = c->options;
    like.name = c->name;
    return sl_generate_like(&like, data);
}

static int run_generate_like(int argc, char **argv)
{
    struct config config = {0};
    return sl_generate_run(&sl_command_generate_like, &config, &config.talk, generate, argc, argv);
}

const struct sl_command sl_command_generate_like = {
    .name = "generate like",
    .synopsis = "DIRECTORY --name NAME [--OPTION ...]",
    .summary = "Write the like of a published dataset, of any share of its size",
    .options = options,
    .run = run_generate_like,
};
