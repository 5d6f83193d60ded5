/* The subcommands (core/command.h). */
#ifndef SL_CLI_COMMANDS_H
#define SL_CLI_COMMANDS_H

#include "core/command.h"

extern const struct sl_command sl_command_train, sl_command_predict, sl_command_generate,
    sl_command_convert, sl_command_info, sl_command_bench, sl_command_plan, sl_command_partition;

#endif
