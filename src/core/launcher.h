/* A launcher that started several processes, of which MPI knows nothing. */
#ifndef SL_CORE_LAUNCHER_H
#define SL_CORE_LAUNCHER_H

#include <stdbool.h>

#include "core/runtime.h"

/* Whether the user wants every process to run by itself: STARLING_ALONE is set, and not to 0. */
bool sl_launcher_is_off(void);

/* Return SL_ERR_USAGE where the launcher says several processes and there is one rank. All of them
 * would do the whole work, and write the same files. */
int sl_launcher_check(const struct sl_runtime *rt);

#endif
