/* starling generate: synthetic datasets, one row of `generators` each. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "core/error.h"
#include "data/dataset.h"
#include "data/generate_community.h"

struct config {
    int64_t vertices, classes, features, seed;
    double degree, homophily, noise;
    bool quiet;
};

static const struct sl_option options[] = {
    {"vertices", SL_OPTION_INT, offsetof(struct config, vertices), "1000", 1, INT32_MAX, NULL, "N",
     "vertices", "Graph"},
    {"classes", SL_OPTION_INT, offsetof(struct config, classes), "8", 1, INT32_MAX, NULL, "N",
     "classes, which are the communities", "Graph"},
    {"degree", SL_OPTION_REAL, offsetof(struct config, degree), "10", 0, INT32_MAX, NULL, "D",
     "average number of neighbours", "Graph"},
    {"homophily", SL_OPTION_REAL, offsetof(struct config, homophily), "0.8", 0, 1, NULL, "P",
     "probability that an edge stays within its community", "Graph"},
    {"features", SL_OPTION_INT, offsetof(struct config, features), "64", 1, INT32_MAX, NULL, "N",
     "features of each vertex", "Graph"},
    {"noise", SL_OPTION_REAL, offsetof(struct config, noise), "1", 0, 1e6, NULL, "S",
     "standard deviation of the features around the centre of their class", "Graph"},
    {"seed", SL_OPTION_INT, offsetof(struct config, seed), "1", 0, 9.2e18, NULL, "N",
     "seed: the same options and seed give the same files", "Graph"},
    {"quiet", SL_OPTION_FLAG, offsetof(struct config, quiet), "no", 0, 0, NULL, NULL,
     "print nothing", "Output"},
    {0},
};

static int community(const struct config *config, struct sl_dataset *data)
{
    const struct sl_community_options community = {
        .vertices = config->vertices,
        .classes = config->classes,
        .degree = config->degree,
        .features = config->features,
        .seed = (uint64_t)config->seed,
        .homophily = config->homophily,
        .feature_noise = config->noise,
    };
    return sl_generate_community(&community, data);
}

static const struct {
    const char *name;
    int (*generate)(const struct config *config, struct sl_dataset *data);
} generators[] = {
    {"community", community},
};

enum { GENERATORS = sizeof generators / sizeof *generators };

static int refuse_kind(const char *kind)
{
    char list[128] = "";
    for (int g = 0; g < GENERATORS; g++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", g ? ", " : "",
                 generators[g].name);
    return sl_error(SL_ERR_USAGE, "generate: unknown kind \"%s\", expected one of: %s", kind, list);
}

static int generate(const struct config *config, const char *kind, const char *directory)
{
    int g = 0;
    while (g < GENERATORS && strcmp(generators[g].name, kind) != 0)
        g++;
    if (g == GENERATORS)
        return refuse_kind(kind);
    struct sl_dataset data = {0};
    int code = generators[g].generate(config, &data);
    if (code)
        return code;
    code = sl_dataset_write(&data, directory);
    if (!code && !config->quiet)
        printf("%s: %" PRId64 " vertices, %" PRId64 " adjacency entries, %" PRId64
               " features, %" PRId64 " classes\n",
               directory, data.vertices, data.adjacency.indptr[data.vertices], data.features,
               data.classes);
    sl_dataset_close(&data);
    return code;
}

static int run(int argc, char **argv)
{
    struct config config;
    int positionals;
    int code =
        sl_command_parse(&sl_command_generate, &config, argc, argv, 2, 2, &positionals, NULL);
    if (!code)
        code = generate(&config, argv[0], argv[1]);
    sl_options_free(options, &config);
    return code;
}

const struct sl_command sl_command_generate = {
    .name = "generate",
    .synopsis =
        "community DIRECTORY [--vertices N] [--classes N] [--degree D] [--features N] [--seed N]",
    .summary = "Write a synthetic dataset: a graph of communities with features, labels and splits",
    .options = options,
    .run = run,
};
