#include "codelets/relu.h"
#include "codelets/codelet.h"
#include "codelets/vector.h"

SL_INLINE void sl_kernel_relu_body(int64_t rows, int64_t cols, float *z, int64_t ldz)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            z[r * ldz + j] =
                z[r * ldz + j] < 0.0f ? 0.0f : z[r * ldz + j]; /* NaN < 0 is false: it stays */
}

SL_DISPATCH(, sl_kernel_relu, (int64_t rows, int64_t cols, float *z, int64_t ldz),
            (rows, cols, z, ldz))

SL_INLINE void sl_kernel_relu_backward_body(int64_t rows, int64_t cols, float scale, const float *h,
                                            int64_t ldh, float *g, int64_t ldg)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            g[r * ldg + j] = h[r * ldh + j] > 0.0f ? scale * g[r * ldg + j] : 0.0f;
}

SL_DISPATCH(, sl_kernel_relu_backward,
            (int64_t rows, int64_t cols, float scale, const float *h, int64_t ldh, float *g,
             int64_t ldg),
            (rows, cols, scale, h, ldh, g, ldg))

/* relu
 *   buffers   0 RW   Z (rows, cols) */
static void relu_cpu(void *buffers[], void *argument)
{
    (void)argument;
    const struct sl_dense z = sl_dense_buffer(buffers[0]);
    sl_kernel_relu(z.rows, z.cols, z.data, z.ld);
}

/* relu_backward
 *   argument  float, the scale of the dropout that followed
 *   buffers   0 R    H (rows, cols)
 *             1 RW   G (rows, cols) */
static void relu_backward_cpu(void *buffers[], void *argument)
{
    const struct sl_dense h = sl_dense_buffer(buffers[0]), g = sl_dense_buffer(buffers[1]);
    sl_kernel_relu_backward(g.rows, g.cols, *(const float *)argument, h.data, h.ld, g.data, g.ld);
}

SL_CODELET(relu, 0xFFD700, 1, STARPU_RW);
SL_CODELET(relu_backward, 0xF0E68C, 2, STARPU_R, STARPU_RW);

void sl_submit_relu(struct sl_runtime *rt, struct sl_tile *z)
{
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &relu_codelet,
                           .count = 1,
                           .tiles = {z},
                           .work = (double)z->rows * (double)z->cols,
                       });
}

void sl_submit_relu_backward(struct sl_runtime *rt, float scale, struct sl_tile *h,
                             struct sl_tile *g)
{
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &relu_backward_codelet,
                           .count = 2,
                           .tiles = {h, g},
                           .argument = &scale,
                           .argument_size = sizeof scale,
                           .work = (double)g->rows * (double)g->cols,
                       });
}
