/* One-line notes and warnings for a person, on stderr. Ranks other than 0 and quiet runs print no
 * notes. */
#ifndef SL_CORE_LOG_H
#define SL_CORE_LOG_H

#include <stdbool.h>

/* Turns notes on or off for this process (on at start). */
void sl_log_enable(bool enabled);

/* Say as much from now on: nothing, or notes and bars of steps (core/progress.h) where this process
 * `speaks`; `verbose`: with the seconds of each step. */
void sl_talk(bool speaks, bool verbose);

/* Prints "starling: <sentence>" (printf-style, no trailing newline). For what a user can act on or
 * must know. */
void sl_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for what is lost although the run goes on: quiet runs and all ranks print it, too. */
void sl_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
