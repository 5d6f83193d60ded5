/* The machine files that ship with Starling (examples/machines/), found by their names. */
#ifndef SL_CLI_MACHINE_FILE_H
#define SL_CLI_MACHINE_FILE_H

#include "core/rates.h"

/* The rates of --machine NAME: a file, or one that ships with Starling (perlmutter). SL_ERR_DATA:
 * there is neither, or it is damaged. */
int sl_machine_file_read(const char *name, struct sl_rates *out);

#endif
