/* Read text files of numbers alone, plain or gzipped. */
#ifndef SL_DATA_FORMATS_NUMBER_ROWS_H
#define SL_DATA_FORMATS_NUMBER_ROWS_H

#include "data/dataset.h"
#include "data/formats/text.h"

/* Return the path of a text file that may be gzipped, on the list of blocks: STEM.gz where it
 * exists, else STEM. NULL: out of memory (sl_error set). */
const char *sl_text_find(const char *stem, struct sl_block **blocks);

/* Return whether sl_text_find finds a file. */
bool sl_text_exists(const char *stem);

struct sl_number_rows {
    const float *item; // (rows, columns)
    int64_t columns;
};

/* Read `rows` lines of numbers with commas between them, as many as in the first line. `nan`:
 * numbers may be NaN, as a word or empty text. SL_ERR_DATA names file, line and column. */
int sl_number_rows_read(const char *path, int64_t rows, bool nan, struct sl_block **blocks,
                        struct sl_number_rows *out);

/* Splits as lists of vertices in any order. Every vertex may be in one list, once. */
struct sl_split_lists {
    int64_t vertices;
    unsigned char *member; // (vertices): number of the vertex's list, from 1; 0: none
    const char *path[3];   /* paths of the lists so far */
    int lists;
};

/* Start with no list; the caller has set `vertices`. SL_ERR_SYSTEM. */
int sl_split_lists_open(struct sl_split_lists *lists, struct sl_block **blocks);

/* Add a vertex to the current list. SL_ERR_DATA: it is no vertex, or in a list already; the error
 * names the place as "PATH: UNIT NUMBER". */
int sl_split_lists_add(struct sl_split_lists *lists, const char *path, const char *unit,
                       int64_t number, int64_t vertex);

/* End the list and set *out to its vertices in ascending order. SL_ERR_SYSTEM. */
int sl_split_lists_end(struct sl_split_lists *lists, const char *path, struct sl_block **blocks,
                       struct sl_index_set *out);

/* Read a list with a line per vertex; with `header`, the first line may be a header. SL_ERR_DATA
 * names file and line. */
int sl_split_lists_read(struct sl_split_lists *lists, const char *path, bool header,
                        struct sl_block **blocks, struct sl_index_set *out);

#endif
