/* starling generate community: a graph of equal communities. */
#include "data/generate/generate_community.h"

#include "cli/generate.h"

struct config {
    struct sl_community_options options;
    struct sl_talk talk;
};

static const struct sl_option options[] = {
    {"vertices", SL_OPTION_INT, offsetof(struct config, options.vertices), "1000", 1, INT32_MAX,
     NULL, "N", "vertices", "Graph"},
    {"classes", SL_OPTION_INT, offsetof(struct config, options.classes), "8", 1, INT32_MAX, NULL,
     "N", "classes, which are the communities", "Graph"},
    {"degree", SL_OPTION_REAL, offsetof(struct config, options.degree), "10", 0, INT32_MAX, NULL,
     "D", "average number of neighbours", "Graph"},
    {"homophily", SL_OPTION_REAL, offsetof(struct config, options.homophily), "0.8", 0, 1, NULL,
     "P", "probability that an edge stays within its community", "Graph"},
    {"features", SL_OPTION_INT, offsetof(struct config, options.features), "64", 1, INT32_MAX, NULL,
     "N", "features of each vertex", "Features"},
    {"noise", SL_OPTION_REAL, offsetof(struct config, options.feature_noise), "1", 0, 1e6, NULL,
     "S", "standard deviation of the features around the centre of their class", "Features"},
    SL_GENERATE_OPTIONS(config),
    {0},
};

static int generate(const void *config, struct sl_dataset *data)
{
    return sl_generate_community(&((const struct config *)config)->options, data);
}

static int run_generate_community(int argc, char **argv)
{
    struct config config = {0};
    return sl_generate_run(&sl_command_generate_community, &config, &config.talk, generate, argc,
                           argv);
}

const struct sl_command sl_command_generate_community = {
    .name = "generate community",
    .synopsis = "DIRECTORY [--OPTION ...]",
    .summary = "Write a graph of equal communities, which are its classes",
    .options = options,
    .run = run_generate_community,
};
