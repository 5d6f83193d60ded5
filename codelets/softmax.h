/* Softmax cross-entropy with its gradient, and accuracy. */
#ifndef SL_CODELETS_SOFTMAX_H
#define SL_CODELETS_SOFTMAX_H

#include "codelets/metrics.h"
#include "codelets/operation.h"

/* Softmax cross-entropy over the rows whose split is SL_SPLIT_TRAIN (= 1) and whose label is not
 * -1. G = factor(r) · scale · (softmax(Z_r) - onehot(label)) on these rows, 0 on all others. */
struct sl_softmax {
    int64_t rows, classes;
    float scale;
    const float *factor;   // (rows); NULL: 1
    const int32_t *target; // (rows, 2): {label or -1, split}
    const float *z;        // (rows, classes), logits
    int64_t ldz;
    float *g; // (rows, classes); may be Z
    int64_t ldg;
};

/* *loss = Σ -log softmax(Z_r)[label]; *correct = rows whose first largest logit is the label. */
void sl_kernel_softmax_loss(const struct sl_softmax *softmax, double *loss, double *correct);

/* Make loss and correct count of the training rows (in the training split's metrics) and the
 * gradient in one pass on a GPU. metrics (SL_METRICS), all overwritten. */
void sl_cuda_softmax_loss(const struct sl_softmax *softmax, double *metrics,
                          struct sl_cuda_queue queue);

/* correct[s] = rows of split s (0 … 3) with a label whose first largest logit is the label; loss[s]
 * = their summed cross-entropy. Both overwritten. */
void sl_kernel_accuracy(int64_t rows, int64_t classes, const int32_t *target, const float *z,
                        int64_t ldz, double correct[4], double loss[4]);

void sl_cuda_accuracy(int64_t rows, int64_t classes, const int32_t *target, const float *z,
                      int64_t ldz, double *metrics, struct sl_cuda_queue queue);

/* Submit Z = the gradient of the mean cross-entropy over `train_count` training vertices, from
 * logits Z. The scale `factor` multiplies the rows of the gradient. metrics = this tile's training
 * loss sum and correct count, all else 0. target: (rows, 2) of int32 {label or -1, split}. */
void sl_submit_softmax_loss(struct sl_runtime *rt, int64_t train_count, struct sl_tile *scales,
                            enum sl_row_scale factor, struct sl_tile *target,
                            struct sl_tile *metrics, struct sl_tile *z);

/* Submit metrics = this tile's loss sums and correct counts of every split. */
void sl_submit_accuracy(struct sl_runtime *rt, struct sl_tile *target, struct sl_tile *z,
                        struct sl_tile *metrics);

/* Argument of the task softmax_loss. */
struct softmax_argument {
    float scale; /* 1 / number of training vertices */
    enum sl_row_scale factor;
};

#endif
