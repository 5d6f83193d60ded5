/* Softmax cross-entropy with class weights and label smoothing. codelets/softmax.h has the loss
 * without both. */
#ifndef SL_CODELETS_WEIGHTED_SOFTMAX_H
#define SL_CODELETS_WEIGHTED_SOFTMAX_H

#include "codelets/softmax.h"

/* A row's loss is Σ_j t_j · -log softmax(Z_r)_j, where
 *     t_j = w_j · ((1 - smoothing) · (j == label) + smoothing / classes). */
struct sl_weighted_softmax {
    struct sl_softmax softmax;
    float smoothing;
    const float *weights; // (classes); NULL: 1
};

/* *loss = the summed loss of the training rows, *correct as in sl_kernel_softmax_loss. G = factor ·
 * scale · d loss / dZ on training rows, 0 on all others. */
void sl_kernel_weighted_softmax(const struct sl_weighted_softmax *w, double *loss, double *correct);

/* Do the work of sl_kernel_weighted_softmax on a GPU; metrics (SL_METRICS), all overwritten. */
void sl_cuda_weighted_softmax(const struct sl_weighted_softmax *w, double *metrics,
                              struct sl_cuda_queue queue);

/* Argument of the task weighted_softmax. */
struct weighted_softmax_argument {
    float scale, smoothing;
    enum sl_row_scale factor;
    bool weighted;
};

/* Submit Z = the gradient of the mean loss over `train_count` training vertices, from logits Z. The
 * scale `factor` multiplies the rows. weights (2, classes): the second row weighs classes; NULL: 1.
 * metrics = this tile's training loss sum and correct count, all else 0. */
void sl_submit_weighted_softmax(struct sl_runtime *rt, int64_t train_count, float smoothing,
                                enum sl_row_scale factor, struct sl_tile *scales,
                                struct sl_tile *target, struct sl_tile *weights,
                                struct sl_tile *metrics, struct sl_tile *z);

#endif
