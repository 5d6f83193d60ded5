/* Labels of a text file: classes as numbers or names, several of them, or numbers to predict. */
#ifndef SL_DATA_FORMATS_LABEL_COLUMN_H
#define SL_DATA_FORMATS_LABEL_COLUMN_H

#include "data/dataset.h"
#include "data/formats/string_ids.h"

struct sl_label_column {
    struct sl_string_ids words; /* the different labels */
    struct sl_string_ids empty; /* the different words that mean no label */
    int32_t *word;              // (capacity): number of each vertex's word, from 1; -1: a word for
                                // no label; 0: no word yet
    int64_t capacity;
    bool signs;     /* -1 and 1 are two classes; otherwise -1 means no label */
    char separator; /* separator of several labels of a vertex; 0: a vertex has one label */
};

/* Give a vertex its label; empty text, NaN and the like (sl_text_is_missing) mean no label. Return
 * 1 where the vertex had a label or a word for none already, else 0 or SL_ERR_SYSTEM. */
int sl_label_column_set(struct sl_label_column *column, int64_t vertex, const char *label);

/* Set the labels of out->vertices vertices. Notes tell how many vertices have no label, and which
 * classes may not be classes. SL_ERR_DATA names the file. */
int sl_label_column_take(const struct sl_label_column *column, const char *path,
                         struct sl_dataset *out);
void sl_label_column_free(struct sl_label_column *column);

#endif
