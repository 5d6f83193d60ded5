/* Help, man pages and completion of shells, made from the tables of options. */
#ifndef SL_CLI_HELP_H
#define SL_CLI_HELP_H

#include "core/command.h"

/* starling help [COMMAND [PART]]: print the commands, or all options of one command. */
int sl_help_print(int argc, char **argv);

/* starling COMMAND [PART] --help, or --help=all: print the help. Return false if the words have
 * neither. */
bool sl_help_print_asked(const struct sl_command *command, int argc, char **argv);

/* starling man [COMMAND]: print the source of a man page, of the program or of a command. */
int sl_help_print_man(int argc, char **argv);

/* starling completion bash|zsh: print a shell's completion script. */
int sl_help_print_completion(int argc, char **argv);

#endif
