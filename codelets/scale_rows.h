/* A factor for each row. */
#ifndef SL_CODELETS_SCALE_ROWS_H
#define SL_CODELETS_SCALE_ROWS_H

#include "codelets/operation.h"

/* Y(r, j) = s(r) · X(r, j). Y may be X. */
void sl_kernel_scale_rows(int64_t rows, int64_t cols, const float *s, const float *x, int64_t ldx,
                          float *y, int64_t ldy);

void sl_cuda_scale_rows(int64_t rows, int64_t cols, const float *s, const float *x, int64_t ldx,
                        float *y, int64_t ldy, struct sl_cuda_queue queue);

/* Y = diag(s)·X; s is (1, rows). */
void sl_submit_scale_rows(struct sl_runtime *rt, struct sl_tile *s, struct sl_tile *x,
                          struct sl_tile *y);

#endif
