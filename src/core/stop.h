/* Orderly stops: what SIGINT, SIGTERM, SIGHUP and SIGUSR1 ask for, on any rank. */
#ifndef SL_CORE_STOP_H
#define SL_CORE_STOP_H

#include <signal.h>

#include "core/runtime.h"

/* Catch these signals, unless they are ignored: the first one sets the flag of
 * sl_stop_flag. A second SIGINT or SIGTERM kills. A pipe that nobody reads is an error of its
 * writer. A launcher sends SIGTERM to all ranks when one of them has died. If a rank of this node
 * is gone, the process names it and its host, and exits with status 1. Collective. */
void sl_stop_catch(struct sl_runtime *rt);

/* Leave signals to the system again. */
void sl_stop_release(void);

/* The flag, 0 until a signal came. */
const volatile sig_atomic_t *sl_stop_flag(void);

#endif
