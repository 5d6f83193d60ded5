/* Read what a launcher tells a process. Detect a launcher that started several processes without
 * telling MPI. */
#ifndef SL_CORE_LAUNCHER_H
#define SL_CORE_LAUNCHER_H

#include <stdbool.h>

#include "core/runtime.h"

/* Return whether the user wants every process to run by itself: STARLING_ALONE is set, and not to
 * 0. */
bool sl_launcher_is_off(void);

/* Return the rank that a launcher gave this process, without asking MPI; 0 without a launcher. */
int sl_launcher_rank(void);

/* Return SL_ERR_USAGE where the launcher started several processes but MPI has one rank. Each
 * process would do the whole work and write the same files. */
int sl_launcher_check(const struct sl_runtime *rt);

#endif
