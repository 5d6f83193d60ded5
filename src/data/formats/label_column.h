/* Labels of a text file: classes as numbers or names, or numbers to predict. */
#ifndef SL_DATA_FORMATS_LABEL_COLUMN_H
#define SL_DATA_FORMATS_LABEL_COLUMN_H

#include "data/dataset.h"
#include "data/formats/string_ids.h"

struct sl_label_column {
    struct sl_string_ids words; /* the different labels */
    int32_t *word;              // (capacity): of each vertex, counted from 1; 0: none
    int64_t capacity;
    bool signs; /* -1 and 1 are two classes, not none and one */
};

/* Give a vertex its label; an empty one is none. Returns 1 where it has one already, else 0 or
 * SL_ERR_SYSTEM. */
int sl_label_column_set(struct sl_label_column *column, int64_t vertex, const char *label);

/* The labels of out->vertices vertices. SL_ERR_DATA names the file. */
int sl_label_column_take(const struct sl_label_column *column, const char *path,
                         struct sl_dataset *out);
void sl_label_column_free(struct sl_label_column *column);

#endif
