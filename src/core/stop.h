/* Orderly stops on SIGINT, SIGTERM, SIGHUP and SIGUSR1, on any rank. */
#ifndef SL_CORE_STOP_H
#define SL_CORE_STOP_H

#include <signal.h>

#include "core/runtime.h"

/* Catch the signals of orderly stops, unless they are ignored: the first one sets the flag of
 * sl_stop_flag. A second SIGINT or SIGTERM kills. Writing to a pipe that nobody reads becomes an
 * error of the writer. A launcher sends SIGTERM to all ranks when one of them has died. If a rank
 * of this node is gone, the process names it and its host, and exits with status 1. Collective. */
void sl_stop_catch(struct sl_runtime *rt);

/* Restore the earlier handlers of the signals. Ignore SIGHUP after a request to stop. */
void sl_stop_release(void);

/* Return the flag, 0 until a signal came. */
const volatile sig_atomic_t *sl_stop_flag(void);

#endif
