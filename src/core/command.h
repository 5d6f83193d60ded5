/* The seam of subcommands. A new command is a file that exports its `struct sl_command`, its name
 * in cli/commands.h, and its row in main.c. */
#ifndef SL_CORE_COMMAND_H
#define SL_CORE_COMMAND_H

#include "core/options.h"

struct sl_command {
    const char *name;
    const char *synopsis;            /* the arguments, e.g. "DATASET [--option ...]" */
    const char *summary;             /* one sentence, no final period */
    const struct sl_option *options; /* NULL where there are subcommands */
    const char *const *often;        /* options that --help shows, NULL at the end; NULL: all */
    /* Subcommands, whose names begin with this name; NULL ends the list; NULL: no list. */
    const struct sl_command *const *parts;
    /* Run the command on the words after its name. argv[argc] is NULL, and `run` may reorder the
     * words. Return 0, or a negative code with its sentence kept by sl_error. */
    int (*run)(int argc, char **argv);
    bool on_ranks; /* the ranks of a launcher run it together */
};

/* Return the subcommand of `command` called `name`, or NULL. */
const struct sl_command *sl_command_part(const struct sl_command *command, const char *name);

/* Set *part to the subcommand of `command` that argv[0] names. SL_ERR_USAGE lists the subcommands
 * where argv[0] is missing or unknown. */
int sl_command_choose_part(const struct sl_command *command, int argc, char **argv,
                           const struct sl_command **part);

/* Return SL_ERR_USAGE, with a sentence that an argument is missing. */
int sl_command_missing(const struct sl_command *command);

/* Fill `config` from the command line of `command`. Keep *positionals positional arguments (`least`
 * to `most`) at the front of argv; `given`: see sl_options_parse. Return 0 or a negative code; in
 * either case the caller frees `config` with sl_options_free. */
int sl_command_parse(const struct sl_command *command, void *config, int argc, char **argv,
                     int least, int most, int *positionals, bool *given);

#endif
