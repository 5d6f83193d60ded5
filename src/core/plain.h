/* Text of files, options and paths, as a terminal or a page may show it. A control character could
 * move the cursor, clear the screen or forge a line. Each of its bytes is shown as \x and two
 * hexadecimal digits, and so is a byte that is no UTF-8. */
#ifndef SL_CORE_PLAIN_H
#define SL_CORE_PLAIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

enum { SL_PLAIN_PIECE = 9 };

/* Write the first character of `text`, of `left` > 0 bytes, to `piece`, as it may be shown. Return
 * how many bytes of the text it takes. */
size_t sl_plain_next(const char *text, size_t left, char piece[SL_PLAIN_PIECE]);

/* Copy `text`, in one line, to `to`, of `size` bytes, as much as has room. */
void sl_plain_copy(char *to, size_t size, const char *text);

/* Print "starling: <sentence>" and a newline to stderr: one line, whatever the arguments hold. */
void sl_plain_say(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* Show no control character of what this process prints to stdout from now on, but newlines and
 * tabs. */
void sl_plain_stdout(void);

#endif
