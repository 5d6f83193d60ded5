/* Finds machine files that ship with Starling (examples/machines/) by their names. */
#ifndef SL_CLI_MACHINE_FILE_H
#define SL_CLI_MACHINE_FILE_H

#include "core/rates.h"

/* Read the rates of --machine NAME: a file, or the name of a file that ships with Starling
 * (perlmutter). Return 0, SL_ERR_USAGE if there is neither, or a code of sl_rates_read. */
int sl_machine_file_read(const char *name, struct sl_rates *out);

#endif
