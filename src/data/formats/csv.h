/* Records of text tables (RFC 4180), plain or gzipped: fields may be quoted, and then have
 * separators, quotes and ends of lines in them. */
#ifndef SL_DATA_FORMATS_CSV_H
#define SL_DATA_FORMATS_CSV_H

#include "data/formats/text.h"

struct sl_csv {
    struct sl_text text;
    const char *comments; /* lines that start with such a character are no records */
    char delimiter;       /* tab, semicolon, comma or blank: the first of them in the first record,
                             outside of quotes. Runs of blanks and tabs are one blank */
    int64_t line;         /* where the last record starts */
    char **field;         // (fields), of the last record
    bool *quoted;         // (fields): whether the field was
    int64_t fields, field_capacity;
    char *record; // (capacity): the last record, where it has quotes
    size_t capacity;
};

int sl_csv_open(struct sl_csv *csv, const char *path);

/* Begin anew, with the delimiter that was found. */
int sl_csv_rewind(struct sl_csv *csv);
void sl_csv_close(struct sl_csv *csv);

/* The next record that is no empty line and no comment; its fields live until the next call. Blanks
 * around fields without quotes are not in them. Returns 1, 0 at the end, or a negative code. */
int sl_csv_next(struct sl_csv *csv);

#endif
