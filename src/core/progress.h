/* Progress of steps that take long, on stderr. On a terminal: a bar, where the end is known, the
 * time left, or the time taken. Elsewhere: nothing, or a line for each step that ended. */
#ifndef SL_CORE_PROGRESS_H
#define SL_CORE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Tell of the steps that begin from now on; nothing is told at first. `bar`: draw one if stderr is
 * a terminal. `lines`: note each step and its seconds when the step ends (--verbose). */
void sl_progress_tell(bool bar, bool lines);

/* A step begins and ends, on the main thread. Steps nest: the innermost one is shown. The name is
 * printf-style: "reading cora". */
void sl_progress_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sl_progress_end(void);

/* End all steps that have begun: their work was left (sl_guard). */
void sl_progress_end_all(void);

/* End a step, and return the code of its work. */
int sl_progress_end_with(int code);

/* The innermost step goes on with another phase, of unknown length; `name` lives as long as the
 * phase. */
void sl_progress_phase(const char *name);

/* The phase begins anew and is done after `total` parts (vertices, bytes, calls); 0: not known. */
void sl_progress_count(int64_t total);

/* So many parts more, or altogether, are done. Any thread may say so. */
void sl_progress_add(int64_t parts);
void sl_progress_set(int64_t parts);

/* Whether stderr is a terminal that can draw a bar. */
bool sl_progress_can_draw(void);

/* For whoever draws: replace the last line of stderr by a bar, `share` of which (0 … 1) is full,
 * and a text after it, cut to the width of the terminal. No bar: a negative share. */
void sl_progress_draw(double share, const char *text);

/* For whoever prints on stderr: remove the line that sl_progress_draw drew, if there is one. */
void sl_progress_clear(void);

/* Print " 12 s", " 3 min" or " 2.5 h" into `text`. */
const char *sl_progress_time(double seconds, char text[24]);

#endif
