/* Errors of host code: a negative code and one clear sentence. The sentence names the problem, the
 * file or option, and the expected value. */
#ifndef SL_CORE_ERROR_H
#define SL_CORE_ERROR_H

#include <stdbool.h>

/* The codes; `starling` exits with 2 for SL_ERR_USAGE, 0 for SL_ERR_STOPPED and 1 for all others.
 */
enum sl_error_code {
    SL_OK = 0,
    SL_ERR_DATA = -1,    /* a file or dataset that is wrong */
    SL_ERR_USAGE = -2,   /* an option or argument that is wrong */
    SL_ERR_SYSTEM = -3,  /* the machine refused: memory, disk, runtime */
    SL_ERR_STOPPED = -4, /* a signal asked the run to end before it had anything to save */
};

/* Keep the sentence (printf-style, no trailing newline) for this thread and return `code`, so that
 * a caller can write `return sl_error(SL_ERR_DATA, "%s: …", path);`. */
int sl_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Put `subject` before this thread's last sentence unless the sentence names it. An empty sentence
 * stays empty: another rank said it. Return `code`. */
int sl_error_about(int code, const char *subject);

/* Return the sentence of this thread's last sl_error; "" before any. */
const char *sl_error_message(void);

/* ---- Failures while tasks are submitted, and in tasks ---- */

/* Run `work`, which may call sl_fatal. Return its code, or SL_ERR_SYSTEM and the sentence of the
 * first failure: sl_fatal leaves the work (longjmp). The functions that it leaves hold no file and
 * no lock. What they have allocated is lost: lists of tiles, and where the graph is being read into
 * tiles, its rows. The caller waits for the tasks that
 * the work has submitted. */
int sl_guard(int (*work)(void *argument), void *argument);

/* Run a task. Where sl_guard was called in this process, sl_fatal leaves the task, and sl_guard
 * fails. Tasks after the one that failed do nothing. */
void sl_guard_task(void (*task)(void *buffers[], void *argument), void *buffers[], void *argument);

/* Leave the work of sl_guard if a task has failed. Called after waits for tasks. */
void sl_guard_check(void);

/* Return whether the last work of sl_guard, or one of its tasks, has failed. The answer holds until
 * the next sl_guard. */
bool sl_guard_failed(void);

/* Leave the work of sl_guard, or the task, because of a failure that a function cannot return, such
 * as no memory for a list. Without sl_guard (the program, or several ranks, which wait for one
 * another), print the sentence and end the process. */
void sl_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Let sl_fatal end the process by calling `end`; by default it calls abort(). */
void sl_fatal_ends(void (*end)(void));

#endif
