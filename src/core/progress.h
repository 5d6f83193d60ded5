/* Progress of steps that take long, on stderr. On a terminal: a bar, where the end is known, the
 * time left, or the time taken. Elsewhere: nothing, or a line for each step that ended. */
#ifndef SL_CORE_PROGRESS_H
#define SL_CORE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Tell of the steps that begin from now on; nothing is told at first. `bar`: draw one if stderr is
 * a terminal. `lines`: note each step and its seconds when the step ends (--verbose). */
void sl_progress_tell(bool bar, bool lines);

/* Begin and end a step, on the main thread. Steps nest: the innermost step is shown. The name is
 * printf-style: "reading cora". */
void sl_progress_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sl_progress_end(void);

/* End all steps that have begun, after sl_fatal has left their work (sl_guard). */
void sl_progress_end_all(void);

/* End a step, and return `code`, the result of its work. */
int sl_progress_end_with(int code);

/* Begin another phase of the innermost step, of unknown length. `name` must live as long as the
 * phase. */
void sl_progress_phase(const char *name);

/* Restart the phase at 0 of `total` parts (vertices, bytes, calls); 0: the total is unknown. */
void sl_progress_count(int64_t total);

/* Add to, or set, the number of parts that are done. Any thread may call these. */
void sl_progress_add(int64_t parts);
void sl_progress_set(int64_t parts);

/* Return whether stderr is a terminal that can draw a bar. */
bool sl_progress_can_draw(void);

/* Replace the last line of stderr by a bar, filled to `share` (0 … 1), and a text after it, cut to
 * the terminal's width. A negative share draws no bar. */
void sl_progress_draw(double share, const char *text);

/* Remove the line that sl_progress_draw drew, if there is one; whoever prints on stderr calls this
 * first. */
void sl_progress_clear(void);

/* Print " 12 s", " 3 min" or " 2.5 h" into `text`. */
const char *sl_progress_time(double seconds, char text[24]);

#endif
