/* Sums of two matrices, or of two rows of metrics. */
#ifndef SL_CODELETS_ACCUMULATE_H
#define SL_CODELETS_ACCUMULATE_H

#include "codelets/metrics.h"
#include "codelets/operation.h"

/* Y += X, (rows, cols) each. */
void sl_kernel_accumulate(int64_t rows, int64_t cols, const float *x, int64_t ldx, float *y,
                          int64_t ldy);

/* Y += scale·factor(r)·X over (rows, cols), each of either type; factor (rows), NULL: 1. */
void sl_kernel_add_scaled(int64_t rows, int64_t cols, float scale, const float *factor,
                          const struct sl_rows *x, const struct sl_rows *y);

void sl_cuda_accumulate(int64_t rows, int64_t cols, const float *x, int64_t ldx, float *y,
                        int64_t ldy, struct sl_cuda_queue queue);

void sl_cuda_add_scaled(int64_t rows, int64_t cols, float scale, const float *factor,
                        const struct sl_rows *x, const struct sl_rows *y,
                        struct sl_cuda_queue queue);

/* Y(i) += X(i), i < count, of doubles. */
void sl_cuda_metrics_add(int count, const double *x, double *y, struct sl_cuda_queue queue);

/* Submit Y += X, tiles of float32 or of metrics. */
void sl_submit_accumulate(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);
void sl_submit_metrics_add(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);

/* Submit Y += scale·factor·X, each of either type; `factor` is a scale of the rows, or SL_ROW_NONE.
 */
struct sl_add_scaled {
    struct sl_tile *x, *y;
    float scale;
    struct sl_tile *scales; /* row scales; not read without a factor */
    enum sl_row_scale factor;
};
void sl_submit_add_scaled(struct sl_runtime *rt, const struct sl_add_scaled *sum);

/* Argument of the task add_scaled. */
struct add_scaled_argument {
    float scale;
    enum sl_row_scale factor;
};

#endif
