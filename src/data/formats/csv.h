/* Read records of text tables (RFC 4180), plain or gzipped. Quoted fields may contain separators,
 * quotes and ends of lines. */
#ifndef SL_DATA_FORMATS_CSV_H
#define SL_DATA_FORMATS_CSV_H

#include "data/formats/text.h"

struct sl_csv {
    struct sl_text text;
    const char *comments; /* a line that starts with one of these characters is no record */
    char delimiter;       /* tab, semicolon, comma or blank: the first of them in the first record,
                             outside of quotes. A run of blanks and tabs counts as one blank */
    int64_t line;         /* line where the last record starts */
    char **field;         // (fields): fields of the last record
    bool *quoted;         // (fields): the field had quotes
    int64_t fields, field_capacity;
    char *record; // (capacity): the last record, where it has quotes
    size_t capacity;
};

int sl_csv_open(struct sl_csv *csv, const char *path);

/* Go back to the start, with the delimiter that was found. */
int sl_csv_rewind(struct sl_csv *csv);
void sl_csv_close(struct sl_csv *csv);

/* Read the next record that is no empty line and no comment. Its fields live until the next call;
 * blanks around fields without quotes are cut. Return 1, 0 at the end, or a negative code. */
int sl_csv_next(struct sl_csv *csv);

#endif
