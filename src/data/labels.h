/* Labels: a class per vertex, as a number or a name; a matrix of 0/1; or numbers to predict. */
#ifndef SL_DATA_LABELS_H
#define SL_DATA_LABELS_H

#include "core/runtime.h"
#include "data/block.h"
#include "data/formats/npy.h"

struct sl_dataset;

/* What labels are. */
enum sl_label_kind {
    SL_LABELS_UNKNOWN, /* not known yet */
    SL_LABELS_CLASS,   /* a class per vertex */
    SL_LABELS_SEVERAL, /* (n, c) of 0, 1, or NaN: not known */
    SL_LABELS_NUMBERS, /* (n, c) of numbers, for regression; NaN: not known */
};

/* Floats without fractions that were taken for numbers to predict, for they are many. */
struct sl_whole_numbers {
    int64_t values;  /* different ones; 0: there are no such labels */
    int64_t known;   /* vertices that have one */
    int64_t missing; /* vertices whose label is -1, the least one: they have none */
};

/* Settle what labels are where *kind is unknown. Matrices of floats with a number other than 0 and
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

/* Say in a note that whole numbers are numbers to predict, if they are many. */
void sl_labels_note_numbers(const char *name, const struct sl_whole_numbers *whole);

/* Whether numbers, (n, 1), may be classes: whole, and from -1 on. Collective. */
bool sl_labels_can_be_classes(struct sl_runtime *rt, const struct sl_npy *labels);

/* Whether a row (count) of several labels or numbers has one that is known. */
bool sl_labels_known(const float *row, int64_t count);

/* Return the class of row k. Of several labels or numbers, return 0 if any is known. Return -1 if
 * the row has no label. */
int32_t sl_labels_find(const struct sl_dataset *data, int64_t k);

/* Take 255 in a list of uint8 for no label: uint8 stores -1 so. 255 stays a class where more than
 * 255 `classes` are said, or none are said (0) and class 254 is there. A note says so, and *labels
 * becomes another array. Collective. SL_ERR_SYSTEM. */
int sl_labels_mend(struct sl_runtime *rt, struct sl_npy *labels, int64_t classes,
                   struct sl_block **blocks);

/* Say in a note what a list of `classes` classes may not mean: words for no label, and -1 beside 1
 * alone. Collective. */
void sl_labels_note(struct sl_runtime *rt, const struct sl_npy *labels, int64_t classes);

/* How many names a list has, which NULL ends; 0 without a list. */
int64_t sl_labels_count_names(const char *const *names);

/* Finds the classes of labels that are text: *names (*count, then NULL), sorted, on the list. An
 * empty label and NaN, NA, N/A, None, null, ? name none. Every rank looks at an equal share and has
 * all names afterwards. SL_ERR_SYSTEM. */
int sl_labels_find_names(struct sl_runtime *rt, const struct sl_npy *labels,
                         struct sl_block **blocks, const char *const **names, int64_t *count);

/* The classes that labels name, as text or as a number. */
struct sl_label_classes {
    const char *const *name; // (count), sorted: what labels that are text say
    const int32_t *number;   // (count): the class of each name, or of each number; NULL: the same
    int64_t count;
};

/* Whether sl_labels_copy must read the labels. All others are what an int32 array has. */
bool sl_labels_need_copy(const struct sl_npy *labels, const struct sl_label_classes *classes);

/* Rows row[0] … row[count - 1], or, where `row` is NULL, rows first … first + count - 1. */
struct sl_label_rows {
    const int32_t *row;
    int64_t first, count;
};

/* Set out[k] (rows->count) to the class of each row: -1 for NaN and for empty text. SL_ERR_DATA. */
int sl_labels_copy(const struct sl_npy *labels, const struct sl_label_classes *classes,
                   const struct sl_label_rows *rows, int32_t *out);

#endif
