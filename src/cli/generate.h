/* The kinds of `starling generate`. A new one is a file that exports its command, its name below,
 * and its row in generate.c. */
#ifndef SL_CLI_GENERATE_H
#define SL_CLI_GENERATE_H

#include "cli/commands.h"
#include "cli/talk.h"
#include "data/dataset.h"

extern const struct sl_command sl_command_generate_bter, sl_command_generate_community,
    sl_command_generate_like, sl_command_generate_rmat;

/* Rows of options, for a configuration struct with a member `options`. SL_GENERATE_OPTIONS: every
 * kind; they need a member `talk` and options.seed. SL_GENERATE_THREADS_OPTION: needs
 * options.threads. SL_GENERATE_VERTICES_OPTIONS: features and classes that do not depend on the
 * graph. */
#define SL_GENERATE_OPTIONS(config)                         \
    {"seed",                                                \
     SL_OPTION_INT,                                         \
     offsetof(struct config, options.seed),                 \
     "1",                                                   \
     0,                                                     \
     9.2e18,                                                \
     NULL,                                                  \
     "N",                                                   \
     "seed: the same options and seed give the same files", \
     "Generating"},                                         \
        SL_TALK_OPTIONS(config, "print nothing", "Generating")
#define SL_GENERATE_THREADS_OPTION(config)                                                      \
    {                                                                                           \
        "threads", SL_OPTION_INT, offsetof(struct config, options.threads), "0", 0, 1024, NULL, \
            "N", "threads, which do not change the result; 0: as many as may run", "Generating" \
    }
#define SL_GENERATE_VERTICES_OPTIONS(config)                                                   \
    {                                                                                          \
        "features",                                                                            \
        SL_OPTION_INT,                                                                         \
        offsetof(struct config, options.features),                                             \
        "64",                                                                                  \
        1,                                                                                     \
        INT32_MAX,                                                                             \
        NULL,                                                                                  \
        "N",                                                                                   \
        "features of each vertex, at random",                                                  \
        "Vertices"},                                                                           \
    {                                                                                          \
        "classes", SL_OPTION_INT, offsetof(struct config, options.classes), "8", 1, INT32_MAX, \
            NULL, "N", "classes, at random", "Vertices"                                        \
    }

/* Run `command`, a kind of dataset whose only argument is the directory. Fill `config`, which has
 * `talk` as a member; call `generate` and write its dataset. Return 0 or an error code. */
int sl_generate_run(const struct sl_command *command, void *config, const struct sl_talk *talk,
                    int (*generate)(const void *config, struct sl_dataset *data), int argc,
                    char **argv);

#endif
