/* starling generate: synthetic datasets, one row of `generators` each. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "core/error.h"
#include "data/dataset.h"
#include "data/generate_community.h"
#include "data/generate_like.h"

struct config {
    int64_t vertices, classes, features, seed, threads;
    double degree, homophily, noise, scale;
    char *name;
    bool quiet;
};

/* Groups of options that only one kind of dataset takes. */
static const char of_community[] = "Only for community", of_like[] = "Only for like";

static const struct sl_option options[] = {
    {"vertices", SL_OPTION_INT, offsetof(struct config, vertices), "1000", 1, INT32_MAX, NULL, "N",
     "vertices", of_community},
    {"classes", SL_OPTION_INT, offsetof(struct config, classes), "8", 1, INT32_MAX, NULL, "N",
     "classes, which are the communities", of_community},
    {"degree", SL_OPTION_REAL, offsetof(struct config, degree), "10", 0, INT32_MAX, NULL, "D",
     "average number of neighbours", of_community},
    {"homophily", SL_OPTION_REAL, offsetof(struct config, homophily), "0.8", 0, 1, NULL, "P",
     "probability that an edge stays within its community", of_community},
    {"features", SL_OPTION_INT, offsetof(struct config, features), "64", 1, INT32_MAX, NULL, "N",
     "features of each vertex", of_community},
    {"noise", SL_OPTION_REAL, offsetof(struct config, noise), "1", 0, 1e6, NULL, "S",
     "standard deviation of the features around the centre of their class", of_community},
    {"name", SL_OPTION_CHOICE, offsetof(struct config, name), "reddit", 0, 0, SL_LIKE_NAMES, "NAME",
     "the published dataset to imitate", of_like},
    {"scale", SL_OPTION_REAL, offsetof(struct config, scale), "0.1", 0, 1, NULL, "S",
     "share of its vertices, above 0; the average degree stays", of_like},
    {"threads", SL_OPTION_INT, offsetof(struct config, threads), "0", 0, 1024, NULL, "N",
     "threads, which do not change the result; 0: as many as may run", of_like},
    {"seed", SL_OPTION_INT, offsetof(struct config, seed), "1", 0, 9.2e18, NULL, "N",
     "seed: the same options and seed give the same files", "For all"},
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

static int like(const struct config *config, struct sl_dataset *data)
{
    const struct sl_like_options like = {
        .name = config->name,
        .scale = config->scale,
        .seed = (uint64_t)config->seed,
        .threads = config->threads,
    };
    return sl_generate_like(&like, data);
}

static const struct {
    const char *name, *group; /* of options */
    int (*generate)(const struct config *config, struct sl_dataset *data);
} generators[] = {
    {"community", of_community, community},
    {"like", of_like, like},
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

/* An option of another kind would be without effect. */
static int check_given(const char *kind, const bool *given)
{
    for (int o = 0; options[o].name; o++)
        for (int g = 0; g < GENERATORS && given[o]; g++)
            if (options[o].group == generators[g].group && strcmp(generators[g].name, kind) != 0)
                return sl_error(SL_ERR_USAGE, "--%s is an option of generate %s, not of %s",
                                options[o].name, generators[g].name, kind);
    return SL_OK;
}

static int generate(const struct config *config, const bool *given, const char *kind,
                    const char *directory)
{
    int g = 0;
    while (g < GENERATORS && strcmp(generators[g].name, kind) != 0)
        g++;
    if (g == GENERATORS)
        return refuse_kind(kind);
    int code = check_given(kind, given);
    if (code)
        return code;
    struct sl_dataset data = {0};
    code = generators[g].generate(config, &data);
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
    bool given[sizeof options / sizeof *options];
    int positionals;
    int code =
        sl_command_parse(&sl_command_generate, &config, argc, argv, 2, 2, &positionals, given);
    if (!code)
        code = generate(&config, given, argv[0], argv[1]);
    sl_options_free(options, &config);
    return code;
}

const struct sl_command sl_command_generate = {
    .name = "generate",
    .synopsis = "community|like DIRECTORY [--OPTION ...]",
    .summary = "Write a synthetic dataset: a graph of communities, or the like of a published one",
    .options = options,
    .run = run,
};
