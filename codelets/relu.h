/* ReLU and its gradient. */
#ifndef SL_CODELETS_RELU_H
#define SL_CODELETS_RELU_H

#include "codelets/operation.h"

/* Z = max(Z, 0) in place; NaN stays NaN. */
void sl_kernel_relu(int64_t rows, int64_t cols, float *z, int64_t ldz);

/* G(r, j) = H(r, j) > 0 ? scale · G(r, j) : 0 in place. H is relu's output, possibly after dropout
 * whose scale is `scale` (1 without): a dropped or negative element is 0 in H either way. */
void sl_kernel_relu_backward(int64_t rows, int64_t cols, float scale, const float *h, int64_t ldh,
                             float *g, int64_t ldg);

void sl_cuda_relu(int64_t rows, int64_t cols, float *z, int64_t ldz, struct sl_cuda_queue queue);
void sl_cuda_relu_backward(int64_t rows, int64_t cols, float scale, const float *h, int64_t ldh,
                           float *g, int64_t ldg, struct sl_cuda_queue queue);

/* Z = max(Z, 0). */
void sl_submit_relu(struct sl_runtime *rt, struct sl_tile *z);

/* G = H > 0 ? scale · G : 0. */
void sl_submit_relu_backward(struct sl_runtime *rt, float scale, struct sl_tile *h,
                             struct sl_tile *g);

#endif
