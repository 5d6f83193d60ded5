/* Print a table of options: --help, man pages, completion of shells. */
#ifndef SL_CORE_OPTIONS_PRINT_H
#define SL_CORE_OPTIONS_PRINT_H

#include "core/options.h"

/* Print the options for --help: two columns within 100 characters, by group, each with its whole
 * help, default and range. `often`: the names of options, NULL at the end. Then these alone are
 * printed, with the first sentence of their help. */
void sl_options_print_help(const struct sl_option *table, const char *const *often);

/* Print the options as man page source (.TP entries). */
void sl_options_print_man(const struct sl_option *table);

/* Print text as roff: dashes stay dashes, backslashes stay backslashes. */
void sl_print_roff(const char *text);

/* Print lines of a bash function: `options` becomes the options' names, and `values` the choices of
 * the option in `before`. The function returns where a value is no choice. */
void sl_options_print_bash(const struct sl_option *table, const char *indent);

/* Print the options as arguments of zsh's _arguments, each on a line that goes on. */
void sl_options_print_zsh(const struct sl_option *table, const char *indent);

#endif
