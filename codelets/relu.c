#include "codelets/relu.h"
#include "codelets/codelet.h"

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
