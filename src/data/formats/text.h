/* Lines of a text file in UTF-8, plain or gzip-compressed. A mark of byte order is no part of them.
 */
#ifndef SL_DATA_FORMATS_TEXT_H
#define SL_DATA_FORMATS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zlib.h>

struct sl_text {
    const char *path; /* borrowed */
    gzFile file;
    char *buffer; // (capacity): bytes begin … end-1 are read and not yet handed out
    size_t capacity, begin, end;
    bool at_end;
    int64_t line_number; /* of the last line handed out; the first is 1 */
};

int sl_text_open(struct sl_text *text, const char *path);
int sl_text_rewind(struct sl_text *text);
void sl_text_close(struct sl_text *text);

/* The next line, without its end (\n, \r\n or \r), NUL-terminated and writable until the next call.
 * Returns 1, 0 at the end of the file, or a negative code (binary or truncated file, line too
 * long). */
int sl_text_next(struct sl_text *text, char **line);

/* The same, past empty lines and those whose first non-blank character is in `marks`. */
int sl_text_next_data(struct sl_text *text, const char *marks, char **line);

/* Read the number at *at, and move *at past it; false: no number is there. A float may come out
 * infinite, or NaN where the file has "nan". */
bool sl_text_read_int64(const char **at, int64_t *value);
bool sl_text_read_float(const char **at, float *value);

/* Whole-word numbers: true only if `word` is nothing but the number. */
bool sl_text_to_int64(const char *word, int64_t *value);
bool sl_text_to_float(const char *word, float *value); /* finite */

/* Whether a word is a number with a comma for its point: "0,5". */
bool sl_text_has_decimal_comma(const char *word);

/* Whether blanks part the word into numbers alone, two or more: "0 1". */
bool sl_text_is_numbers(const char *word);

/* Whether a word stands for a value that is not known: nothing, NaN, NA, N/A, None, null, ?. */
bool sl_text_is_missing(const char *word);

/* What the first bytes of a file say against reading it as text: "is compressed by xz, …"; NULL:
 * nothing. */
const char *sl_text_objection(const char *head, size_t bytes);

/* The length of a path without the end that says how it is compressed: .gz, .bz2, .xz, .zst. */
size_t sl_text_plain_length(const char *path);

/* Cuts the next blank-separated word off *line, or NULL at its end. */
char *sl_text_word(char **line);

#endif
