/* Text files of numbers alone, plain or gzipped. */
#ifndef SL_DATA_FORMATS_NUMBER_ROWS_H
#define SL_DATA_FORMATS_NUMBER_ROWS_H

#include "data/dataset.h"
#include "data/formats/text.h"

/* PATH of a text file that may be gzipped: STEM.gz where there is such a file, else STEM; on the
 * list of blocks. NULL: out of memory (sl_error set). */
const char *sl_text_find(const char *stem, struct sl_block **blocks);

/* Whether sl_text_find finds a file. */
bool sl_text_exists(const char *stem);

struct sl_number_rows {
    const float *item; // (rows, columns)
    int64_t columns;
};

/* Read `rows` lines of numbers with commas between them, as many as in the first line. `nan`: items
 * may be NaN, in words or as empty text. SL_ERR_DATA names file, line and column. */
int sl_number_rows_read(const char *path, int64_t rows, bool nan, struct sl_block **blocks,
                        struct sl_number_rows *out);

/* Splits that are lists of vertices in any order. Every vertex may be in one list, once. */
struct sl_split_lists {
    int64_t vertices;
    unsigned char *member; // (vertices): the list that a vertex is in, counted from 1; 0: none
    const char *path[3];   /* of the lists so far */
    int lists;
};

/* `vertices` is set. SL_ERR_SYSTEM. */
int sl_split_lists_open(struct sl_split_lists *lists, struct sl_block **blocks);

/* Add a vertex to the list that comes next. SL_ERR_DATA: it is no vertex, or in a list already; the
 * place is "PATH: UNIT NUMBER". */
int sl_split_lists_add(struct sl_split_lists *lists, const char *path, const char *unit,
                       int64_t number, int64_t vertex);

/* End the list: its vertices in ascending order. SL_ERR_SYSTEM. */
int sl_split_lists_end(struct sl_split_lists *lists, const char *path, struct sl_block **blocks,
                       struct sl_index_set *out);

/* Read a list, a line per vertex, whose first line may be a header. SL_ERR_DATA names file and
 * line. */
int sl_split_lists_read(struct sl_split_lists *lists, const char *path, bool header,
                        struct sl_block **blocks, struct sl_index_set *out);

#endif
