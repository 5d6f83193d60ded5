/* Errors of host code: a negative code and one clear sentence. The sentence names the problem, the
 * file or option, and the expected value. */
#ifndef SL_CORE_ERROR_H
#define SL_CORE_ERROR_H

/* The codes; `starling` exits with 2 for SL_ERR_USAGE and 1 for all others. */
enum sl_error_code {
    SL_OK = 0,
    SL_ERR_DATA = -1,   /* a file or dataset that is wrong */
    SL_ERR_USAGE = -2,  /* an option or argument that is wrong */
    SL_ERR_SYSTEM = -3, /* the machine refused: memory, disk, runtime */
};

/* Keeps the sentence (printf-style, no trailing newline) for this thread and returns `code`, so
 * that a caller can write `return sl_error(SL_ERR_DATA, "%s: …", path);`. */
int sl_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts `subject` before this thread's last sentence where that does not name it; an empty one, said
 * on another rank, stays empty. Returns `code`. */
int sl_error_about(int code, const char *subject);

/* The sentence of this thread's last sl_error; "" before any. */
const char *sl_error_message(void);

/* No memory within a task or while tasks are submitted: prints the sentence and ends the process,
 * because a half-submitted distributed task graph cannot be unwound. A library aborts; a program
 * exits with status 1 after sl_fatal_exits. */
void sl_fatal_exits(void);
void sl_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
