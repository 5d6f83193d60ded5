/* Read lines of a text file in UTF-8, plain or gzip-compressed. A byte order mark is skipped. */
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
    int64_t line_number; /* number of the last line handed out; the first is 1 */
    int64_t packed;      /* bytes of the file on the disk */
    int cost;            /* most bytes of memory that a byte of the text takes once it is read */
};

/* Open a regular file, compressed by gzip or not. The caller closes it. SL_ERR_DATA and
 * SL_ERR_SYSTEM name `path`. */
int sl_text_open_file(const char *path, gzFile *file);

/* The cost of edges: "0 1\n" becomes two numbers of 8 bytes, which are sorted and copied. A cell of
 * a table needs a separator alone, and becomes one number of 4 bytes. */
enum { SL_TEXT_COST_EDGES = 16, SL_TEXT_COST_CELLS = 4 };

/* Open a file whose text costs what edges cost; the caller may set another cost. A compressed file
 * is refused once its text costs more than docs/RELIABILITY.md promises for the file's size. */
int sl_text_open(struct sl_text *text, const char *path);
int sl_text_rewind(struct sl_text *text);
void sl_text_close(struct sl_text *text);

/* Read the next line, without its end (
 * , \r
 *  or \r), NUL-terminated and writable until the next call. Return 1, 0 at the end of the file, or
 * a negative code (binary or truncated file, line too long). */
int sl_text_next(struct sl_text *text, char **line);

/* Read the next line as sl_text_next does; skip empty lines and lines whose first non-blank
 * character is in `marks`. */
int sl_text_next_data(struct sl_text *text, const char *marks, char **line);

/* Read the number at *at, and move *at past it; false: no number is there. A float may come out
 * infinite, or NaN where the file has "nan". */
bool sl_text_read_int64(const char **at, int64_t *value);
bool sl_text_read_float(const char **at, float *value);

/* Convert a whole word to a number; return false if `word` is anything but the number. */
bool sl_text_to_int64(const char *word, int64_t *value);
bool sl_text_to_float(const char *word, float *value); /* the result is finite */

/* Return whether a word is a number with a comma for its point: "0,5". */
bool sl_text_has_decimal_comma(const char *word);

/* Return whether a text is two or more numbers with blanks between: "0 1". */
bool sl_text_is_numbers(const char *word);

/* Return whether a word stands for an unknown value: nothing, NaN, NA, N/A, None, null, ?. */
bool sl_text_is_missing(const char *word);

/* Return why a file with these first bytes cannot be read as text: "is compressed by xz, …"; NULL:
 * no objection. */
const char *sl_text_objection(const char *head, size_t bytes);

/* Return the length of a path without an end that names a compression: .gz, .bz2, .xz, .zst. */
size_t sl_text_plain_length(const char *path);

/* Cut the next blank-separated word off *line and return it, or NULL at the end. */
char *sl_text_word(char **line);

#endif
