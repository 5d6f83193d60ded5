/* The seam of subcommands. A new one is a file that exports its `struct sl_command`, its name in
 * cli/commands.h, and its row in main.c. */
#ifndef SL_CORE_COMMAND_H
#define SL_CORE_COMMAND_H

#include "core/options.h"

struct sl_command {
    const char *name;
    const char *synopsis;            /* the arguments, e.g. "DATASET [--option ...]" */
    const char *summary;             /* one sentence, no final period */
    const struct sl_option *options; /* NULL where there are parts */
    const char *const *often;        /* the options that --help has, NULL at the end; NULL: all */
    /* Commands of their own that follow this one's name, their names begin with it; NULL at the
     * end, or no list. */
    const struct sl_command *const *parts;
    /* Runs on the words after the command's name; argv[argc] is NULL, and the words may be moved.
     * Returns 0, or a negative code with its sentence kept by sl_error. */
    int (*run)(int argc, char **argv);
    bool on_ranks; /* the ranks of a launcher run it together */
};

/* The part of `command` called `name`, or NULL. */
const struct sl_command *sl_command_part(const struct sl_command *command, const char *name);

/* *part is the part of `command` that the first word names; SL_ERR_USAGE with the names that there
 * are if it names none, or is missing. */
int sl_command_choose_part(const struct sl_command *command, int argc, char **argv,
                           const struct sl_command **part);

/* Fills `config` from the command line of `command`, of which `positionals` (at least `least`, at
 * most `most`) stay at the front of argv; `given` as for sl_options_parse. Whatever the code, the
 * caller frees `config` with sl_options_free. */
int sl_command_parse(const struct sl_command *command, void *config, int argc, char **argv,
                     int least, int most, int *positionals, bool *given);

#endif
