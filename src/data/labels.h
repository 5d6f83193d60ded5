/* One label per vertex, as numbers or as names of classes. */
#ifndef SL_DATA_LABELS_H
#define SL_DATA_LABELS_H

#include "core/runtime.h"
#include "data/formats/npy.h"

/* How many names a list has, which NULL ends; 0 without a list. */
int64_t sl_labels_count_names(const char *const *names);

/* Finds the classes of labels that are text: *names (*count, then NULL), sorted, on the list. An
 * empty label names none. Every rank looks at an equal share and has all names afterwards.
 * SL_ERR_SYSTEM. */
int sl_labels_find_names(struct sl_runtime *rt, const struct sl_npy *labels,
                         struct sl_block **blocks, const char *const **names, int64_t *count);

/* Whether sl_labels_copy must read them: others are what an int32 array has. */
bool sl_labels_need_copy(const struct sl_npy *labels);

/* Rows row[0] … row[count - 1], or, where `row` is NULL, rows first … first + count - 1. */
struct sl_label_rows {
    const int32_t *row;
    int64_t first, count;
};

/* Their classes: -1 for NaN and for empty text. SL_ERR_DATA. */
int sl_labels_copy(const struct sl_npy *labels, const char *const *names,
                   const struct sl_label_rows *rows, int32_t *out);

#endif
