/* Lines of a text file, plain or gzip-compressed. */
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

/* Cuts the next blank-separated word off *line, or NULL at its end. */
char *sl_text_word(char **line);

#endif
