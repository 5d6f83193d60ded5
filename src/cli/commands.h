/* The subcommands (core/command.h). */
#ifndef SL_CLI_COMMANDS_H
#define SL_CLI_COMMANDS_H

#include "core/command.h"

extern const struct sl_command sl_command_train, sl_command_predict, sl_command_generate,
    sl_command_convert, sl_command_info, sl_command_bench, sl_command_plan, sl_command_partition,
    sl_command_report, sl_command_evaluate, sl_command_export;

/* All subcommands. NULL ends the list. */
extern const struct sl_command *const sl_commands[];

/* Return the command with a name, or NULL. */
const struct sl_command *sl_command_find(const char *name);

/* Return SL_ERR_USAGE for a name that no command has. The sentence names the nearest command. */
int sl_command_refuse(const char *name);

#endif
