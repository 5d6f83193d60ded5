/* Losses on values. A row has a value for each column; the loss of a value depends on its logit
 * alone. */
#ifndef SL_CODELETS_VALUE_LOSS_H
#define SL_CODELETS_VALUE_LOSS_H

#include "codelets/metrics.h"
#include "codelets/operation.h"
#include "codelets/target.h"

enum sl_value_loss_kind {
    SL_VALUE_SIGMOID, /* w(y) · (log(1 + e^z) - y'·z), y' = y·(1 - smoothing) + smoothing / 2 */
    SL_VALUE_SQUARE,  /* (z - y)² */
};

/* The loss of a row is the mean over the columns, to which an unknown value adds 0. */
struct sl_value_loss {
    enum sl_value_loss_kind kind;
    int64_t rows, cols;
    float scale;          /* factor of the gradient of a row's loss */
    float smoothing;      /* label smoothing, for SL_VALUE_SIGMOID */
    const float *weights; // (2, cols), for SL_VALUE_SIGMOID: weights of the values 0 and 1; NULL: 1
    const float *factor;  // (rows); NULL: 1
    const int32_t *target; // (rows, 2 + cols), SL_TARGET_VALUES
    const float *z;        // (rows, cols), logits
    int64_t ldz;
    float *g; // (rows, cols); may be Z
    int64_t ldg;
};

/* *loss = the summed loss of the training rows; *correct = training rows with z > 0 exactly where
 * the value is over 1/2. G = factor · scale · d loss / dZ on training rows, 0 on other rows. */
void sl_kernel_value_loss(const struct sl_value_loss *v, double *loss, double *correct);

/* loss[s] and correct[s] = summed loss and correct rows of split s, without weights and smoothing.
 * The gradient is not made. */
void sl_kernel_value_count(const struct sl_value_loss *v, double correct[4], double loss[4]);

/* Do the work of sl_kernel_value_loss and sl_kernel_value_count on a GPU. The sums go into
 * `metrics` (SL_METRICS), all overwritten. */
void sl_cuda_value_loss(const struct sl_value_loss *v, double *metrics, struct sl_cuda_queue queue);
void sl_cuda_value_count(const struct sl_value_loss *v, double *metrics,
                         struct sl_cuda_queue queue);

/* Argument of the tasks value_loss and value_count. */
struct value_loss_argument {
    enum sl_value_loss_kind kind;
    float scale, smoothing;
    enum sl_row_scale factor;
    bool weighted;
};

/* Submit Z = the gradient of the mean loss over `train_count` training vertices, from logits Z. The
 * scale `factor` multiplies the rows. weights (2, cols), or NULL. metrics = this tile's training
 * loss sum and correct count, all else 0. */
void sl_submit_value_loss(struct sl_runtime *rt, enum sl_value_loss_kind kind, int64_t train_count,
                          float smoothing, enum sl_row_scale factor, struct sl_tile *scales,
                          struct sl_tile *target, struct sl_tile *weights, struct sl_tile *metrics,
                          struct sl_tile *z);

/* Submit metrics = this tile's loss sums and correct counts of every split. */
void sl_submit_value_count(struct sl_runtime *rt, enum sl_value_loss_kind kind,
                           struct sl_tile *target, struct sl_tile *z, struct sl_tile *metrics);

#endif
