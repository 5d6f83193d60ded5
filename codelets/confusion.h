/* Counts of true and predicted classes: one for each pair of a vertex's class and its predicted
 * class. */
#ifndef SL_CODELETS_CONFUSION_H
#define SL_CODELETS_CONFUSION_H

#include "codelets/operation.h"
#include "codelets/target.h"
#include "core/split.h"

struct sl_confusion {
    int64_t rows, classes;
    const int32_t *target; // (rows, sl_target_width), SL_TARGET_CLASS
    const float *z;        // (rows, classes): logits; the first largest is predicted
    int64_t ldz;
};

/* counts (classes, SL_SPLITS, classes) += rows with a label, by class, split and prediction. */
void sl_kernel_confusion(const struct sl_confusion *c, double *counts);
void sl_cuda_confusion(const struct sl_confusion *c, double *counts, struct sl_cuda_queue queue);

/* Submit counts (classes, SL_SPLITS · classes) of double += this tile's rows. */
void sl_submit_confusion(struct sl_runtime *rt, struct sl_tile *target, struct sl_tile *z,
                         struct sl_tile *counts);

#endif
