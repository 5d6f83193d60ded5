/* Show text of files, options and paths in a terminal or a page. A control character could move the
 * cursor, clear the screen or forge a line. Each of its bytes, and each byte that is not UTF-8, is
 * shown as \x and two hexadecimal digits. */
#ifndef SL_CORE_PLAIN_H
#define SL_CORE_PLAIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

enum { SL_PLAIN_PIECE = 9 };

/* Write the first character of `text` (`left` > 0 bytes) to `piece` in a form that may be shown.
 * Return how many bytes of the text it takes. */
size_t sl_plain_next(const char *text, size_t left, char piece[SL_PLAIN_PIECE]);

/* Copy `text` to `to` (`size` bytes) as one line, cut to the room. */
void sl_plain_copy(char *to, size_t size, const char *text);

/* Print "starling: <sentence>" and a newline to stderr: one line, whatever the arguments hold. */
void sl_plain_say(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* Escape control characters, but newlines and tabs, in all that this process prints to stdout from
 * now on. */
void sl_plain_stdout(void);

#endif
