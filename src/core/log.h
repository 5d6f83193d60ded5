/* One-line notes and warnings for a person, on stderr. Ranks other than 0 and quiet runs print no
 * notes. */
#ifndef SL_CORE_LOG_H
#define SL_CORE_LOG_H

#include <stdbool.h>

/* Turn notes on or off for this process (on at start). */
void sl_log_enable(bool enabled);

/* Choose how much this process prints: nothing, or notes and progress bars (core/progress.h) where
 * it `speaks`; with `verbose`, also the seconds of each step. */
void sl_talk(bool speaks, bool verbose);

/* Print "starling: <sentence>" (printf-style, no trailing newline) about something the user can act
 * on or must know. */
void sl_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print a warning of a loss that does not stop the run, on all ranks and in quiet runs, too. */
void sl_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
