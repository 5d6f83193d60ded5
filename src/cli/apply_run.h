/* Options and start of predict and evaluate, which run a trained model. */
#ifndef SL_CLI_APPLY_RUN_H
#define SL_CLI_APPLY_RUN_H

#include "cli/talk.h"
#include "core/command.h"
#include "core/options.h"
#include "core/runtime.h"
#include "run/apply.h"

struct sl_apply_run {
    enum sl_device device;
    char *scheduler;
    const struct sl_distribution_name *distribution;
    struct sl_grid grid; /* no rows: no --grid */
    int64_t tiles, workers, replication;
    struct sl_talk talk;
};

/* Rows of the options, for a configuration that has the struct at `offset`. */
#define SL_APPLY_RUN_FIELD(offset, name) ((offset) + offsetof(struct sl_apply_run, name))
/* clang-format off */
#define SL_APPLY_RUN_OPTIONS(offset)                                                               \
    {"quiet", SL_OPTION_FLAG, SL_APPLY_RUN_FIELD(offset, talk.quiet), "no", 0, 0, NULL, NULL,      \
     "print nothing but errors", "Files"},                                                         \
    {"verbose", SL_OPTION_FLAG, SL_APPLY_RUN_FIELD(offset, talk.verbose), "no", 0, 0, NULL, NULL,  \
     SL_TALK_VERBOSE, "Files"},                                                                    \
    {"distribution", SL_OPTION_KIND, SL_APPLY_RUN_FIELD(offset, distribution), "1d", 0, 0,         \
     SL_DISTRIBUTION_NAMES, "KIND", "how ranks share the graph, as in starling train",             \
     "Execution", sl_config_find_distribution},                                                    \
    {"replication", SL_OPTION_INT, SL_APPLY_RUN_FIELD(offset, replication), "0", 0, 65536, NULL,   \
     "C", "layers of --distribution 1.5d; 0: 2", "Execution"},                                     \
    {"grid", SL_OPTION_VALUE, SL_APPLY_RUN_FIELD(offset, grid), NULL, 0, 0, NULL, "RxCxD",        \
     "any grid of ranks instead of --distribution", "Execution", NULL, &sl_value_grid},                                  \
    {"tiles", SL_OPTION_INT, SL_APPLY_RUN_FIELD(offset, tiles), "0", 0, 65536, NULL, "T",          \
     "row tiles of the graph; 0: from the work", "Execution"},                                     \
    {"workers", SL_OPTION_INT, SL_APPLY_RUN_FIELD(offset, workers), "0", 0, 65536, NULL, "N",      \
     "CPU workers per rank; 0: every core", "Execution"},                                          \
    {"device", SL_OPTION_CHOICE, SL_APPLY_RUN_FIELD(offset, device), "auto", 0, 0,                 \
     SL_CHOICES(SL_DEVICES), "NAME", "what computes, as in starling train", "Execution"},          \
    {"scheduler", SL_OPTION_STRING, SL_APPLY_RUN_FIELD(offset, scheduler), NULL, 0, 0, NULL,       \
     "NAME", "StarPU scheduling policy", "Execution"}
/* clang-format on */

/* Apply the checkpoint of the file words[0] to the dataset words[1]: start StarPU and the log, run
 * the model, call `use` with the command's configuration, and free everything. `given`: see
 * sl_options_parse. `options` lack those of `run`. Return the code of the first step that fails. */
int sl_apply_run(const struct sl_apply_run *run, const struct sl_command *command,
                 const void *config, const bool *given, char **words,
                 struct sl_apply_options options,
                 int (*use)(const void *config, struct sl_apply *apply));

#endif
