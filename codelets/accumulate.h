/* Sums of two matrices, or of two rows of metrics. */
#ifndef SL_CODELETS_ACCUMULATE_H
#define SL_CODELETS_ACCUMULATE_H

#include "codelets/metrics.h"
#include "codelets/operation.h"

/* Y += X over (rows, cols). */
void sl_kernel_accumulate(int64_t rows, int64_t cols, const float *x, int64_t ldx, float *y,
                          int64_t ldy);

void sl_cuda_accumulate(int64_t rows, int64_t cols, const float *x, int64_t ldx, float *y,
                        int64_t ldy, struct sl_cuda_queue queue);

/* Y(i) += X(i), i < count, of doubles. */
void sl_cuda_metrics_add(int count, const double *x, double *y, struct sl_cuda_queue queue);

/* Y += X, float32 or metrics tiles. */
void sl_submit_accumulate(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);
void sl_submit_metrics_add(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);

#endif
