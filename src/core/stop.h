/* Orderly stops on SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU, on any rank. */
#ifndef SL_CORE_STOP_H
#define SL_CORE_STOP_H

#include <signal.h>

#include "core/runtime.h"

/* Catch the signals of orderly stops, unless they are ignored: the first one sets the flag of
 * sl_stop_flag. A second SIGINT or SIGTERM kills. */
void sl_stop_catch(void);

/* Watch the ranks of this node. A launcher sends SIGTERM to all ranks when one of them has died. If
 * a rank of this node is gone, the process names it and its host, and exits with status 1.
 * Collective. */
void sl_stop_watch(struct sl_runtime *rt);

/* End the ranks of this node without a word: this rank has printed why it ends. */
void sl_stop_peers(void);

/* Restore the earlier handlers of the signals. Ignore SIGHUP and SIGXCPU after a request to stop.
 */
void sl_stop_release(void);

/* Act on a SIGTERM that a library took for itself; do nothing while signals are not caught. */
void sl_stop_request(void);

/* Return the flag, 0 until a signal came. */
const volatile sig_atomic_t *sl_stop_flag(void);

/* Return SL_ERR_STOPPED with a sentence for a run without a finished epoch if a signal came to this
 * rank, or to any rank; else 0. The second function is collective. */
int sl_stop_error(void);
int sl_stop_check(struct sl_runtime *rt);

#endif
