/* Counts of right and wrong labels, label by label, for F1 and accuracies of labels. */
#ifndef SL_CODELETS_LABEL_COUNTS_H
#define SL_CODELETS_LABEL_COUNTS_H

#include "codelets/operation.h"
#include "codelets/target.h"
#include "core/names.h"
#include "core/split.h"

/* The rule that predicts some of several labels of a vertex. A class is always the first largest
 * logit. */
#define SL_LABEL_DECISIONS(ENTRY)                                                 \
    ENTRY(SL_DECIDE_HALF, "half") /* labels with a probability over 1/2: z > 0 */ \
    ENTRY(SL_DECIDE_TOP, "top")   /* the largest logits, as many as the vertex has labels */
enum sl_label_decision { SL_LABEL_DECISIONS(SL_CHOICE_CONSTANT) };

/* Counts of a label in a split. */
enum { SL_TRUE_POSITIVE, SL_FALSE_POSITIVE, SL_FALSE_NEGATIVE, SL_TRUE_NEGATIVE, SL_LABEL_COUNTS };

/* Numbers of a label in a table (labels, SL_TABLE_COUNTS): SL_LABEL_COUNTS for each split. */
enum { SL_TABLE_COUNTS = SL_SPLITS * SL_LABEL_COUNTS };

struct sl_label_counts {
    enum sl_target_form form;
    enum sl_label_decision decision;
    int64_t rows, labels;
    const int32_t *target; // (rows, sl_target_width)
    const float *z;        // (rows, labels)
    int64_t ldz;
};

/* Set counts (labels, SL_TABLE_COUNTS) over rows with a label, and labels that are known. */
void sl_kernel_label_counts(const struct sl_label_counts *c, double *counts);
void sl_cuda_label_counts(const struct sl_label_counts *c, double *counts,
                          struct sl_cuda_queue queue);

/* Argument of the task label_counts. */
struct label_counts_argument {
    enum sl_target_form form;
    enum sl_label_decision decision;
};

/* Submit counts (labels, SL_TABLE_COUNTS) of double of this tile's rows. */
void sl_submit_label_counts(struct sl_runtime *rt, enum sl_target_form form,
                            enum sl_label_decision decision, struct sl_tile *target,
                            struct sl_tile *z, struct sl_tile *counts);

#endif
