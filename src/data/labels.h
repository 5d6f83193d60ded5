/* Labels: a class per vertex, as a number or a name; a matrix of 0/1; or numbers to predict. */
#ifndef SL_DATA_LABELS_H
#define SL_DATA_LABELS_H

#include "core/runtime.h"
#include "data/block.h"
#include "data/formats/npy.h"

struct sl_dataset;

/* The kinds of labels. */
enum sl_label_kind {
    SL_LABELS_UNKNOWN, /* not known yet */
    SL_LABELS_CLASS,   /* a class per vertex */
    SL_LABELS_SEVERAL, /* (n, c) of 0, 1, or NaN: unknown */
    SL_LABELS_NUMBERS, /* (n, c) of numbers, for regression; NaN: unknown */
};

/* Counts for floats without fractions that have many values, and so were taken for numbers to
 * predict. */
struct sl_whole_numbers {
    int64_t values;  /* different values; 0: there are no such labels */
    int64_t known;   /* vertices that have a number */
    int64_t missing; /* vertices with the label -1, the least label, which means no label */
};

/* Find the kind of labels where *kind is unknown. Matrices of floats with a number other than 0 and
 * 1 are numbers, and other matrices are several labels. Lists of floats with a fraction are
 * numbers, and so are lists of many different floats, which *whole counts; -1 becomes NaN in them.
 * Other lists are classes. Then make a list of numbers a matrix of one column. Every rank looks at
 * an equal share. SL_ERR_SYSTEM. */
int sl_labels_settle(struct sl_runtime *rt, struct sl_npy *labels, enum sl_label_kind *kind,
                     struct sl_whole_numbers *whole, struct sl_block **blocks);

/* Make a list of classes, which are no names, numbers to predict: a matrix of one column, in which
 * -1 is NaN where no label is less. Collective. SL_ERR_SYSTEM. */
int sl_labels_become_numbers(struct sl_runtime *rt, struct sl_npy *labels,
                             struct sl_block **blocks);

/* Say in a note that whole numbers were taken for numbers to predict, if *whole counts any. */
void sl_labels_note_numbers(const char *name, const struct sl_whole_numbers *whole);

/* Return whether numbers (n, 1) may be classes: all are whole and at least -1. Collective. */
bool sl_labels_can_be_classes(struct sl_runtime *rt, const struct sl_npy *labels);

/* Return whether any of a row's (count) labels or numbers is known. */
bool sl_labels_known(const float *row, int64_t count);

/* Return the class of row k. Of several labels or numbers, return 0 if any is known. Return -1 if
 * the row has no label. */
int32_t sl_labels_find(const struct sl_dataset *data, int64_t k);

/* Replace 255 by no label in a list of uint8, which stores -1 as 255. Keep class 255 where there
 * are more than 255 `classes`, or where `classes` is 0 and class 254 appears. A note tells of it,
 * and *labels becomes another array. Collective. SL_ERR_SYSTEM. */
int sl_labels_mend(struct sl_runtime *rt, struct sl_npy *labels, int64_t classes,
                   struct sl_block **blocks);

/* Say in a note which labels in a list of `classes` classes may not be classes: words for no label,
 * and -1 beside 1 alone. Collective. */
void sl_labels_note(struct sl_runtime *rt, const struct sl_npy *labels, int64_t classes);

/* Return the number of names in a list that NULL ends; 0 without a list. */
int64_t sl_labels_count_names(const char *const *names);

/* Find the classes of labels that are text: set *names (*count, then NULL), sorted, on the list. An
 * empty label and NaN, NA, N/A, None, null, ? mean no class. Every rank reads an equal share and
 * gets all names. Collective. SL_ERR_SYSTEM. */
int sl_labels_find_names(struct sl_runtime *rt, const struct sl_npy *labels,
                         struct sl_block **blocks, const char *const **names, int64_t *count);

/* The classes behind labels, which are text or numbers. */
struct sl_label_classes {
    const char *const *name; // (count), sorted: words of labels that are text
    const int32_t *number;   // (count): class of each name or number; NULL: its place or value
    int64_t count;
};

/* Return whether sl_labels_copy must convert the labels. All other labels are stored as int32
 * classes. */
bool sl_labels_need_copy(const struct sl_npy *labels, const struct sl_label_classes *classes);

/* A choice of rows: row[0] … row[count - 1], or, where `row` is NULL, first … first + count - 1. */
struct sl_label_rows {
    const int32_t *row;
    int64_t first, count;
};

/* Set out[k] (rows->count) to the class of each row: -1 for NaN and for empty text. SL_ERR_DATA. */
int sl_labels_copy(const struct sl_npy *labels, const struct sl_label_classes *classes,
                   const struct sl_label_rows *rows, int32_t *out);

#endif
