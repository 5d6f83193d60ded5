/* The bias of a layer is the row after its weights, so that both travel and are updated together.
 */
#include "codelets/bias.h"
#include "codelets/codelet.h"

/* bias_gradient
 *   argument  struct bias_gradient_argument
 *   buffers   0 R    row scales (SL_ROW_SCALES, rows)
 *             1 R    G (rows, cols)
 *             2 RW   gradient (> bias row, cols), of which one row is written: as many columns
 *                  as G has */
static void bias_gradient_cpu(void *buffers[], void *argument)
{
    const struct bias_gradient_argument *arg = argument;
    const struct sl_dense gradient = sl_dense_buffer(buffers[2]);
    const struct sl_rows g = sl_rows_buffer(buffers[1]);
    sl_kernel_bias_gradient(arg->zero ? 0 : STARPU_MATRIX_GET_NY(buffers[1]),
                            STARPU_MATRIX_GET_NX(buffers[1]), sl_row_scale(buffers[0], arg->factor),
                            &g, gradient.data + arg->bias_row * gradient.ld);
}

SL_CODELET(bias_gradient, 0xB8860B, 3, STARPU_R, STARPU_R, STARPU_RW);

void sl_submit_bias_gradient(struct sl_runtime *rt, struct sl_tile *scales,
                             enum sl_row_scale factor, struct sl_tile *g, bool zero,
                             int64_t bias_row, struct sl_tile *gradient)
{
    const struct bias_gradient_argument arg = {bias_row, factor, zero};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &bias_gradient_codelet,
                           .count = 3,
                           .tiles = {scales, g, gradient},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .urgency = SL_TASK_LATER,
                           .work = (double)g->rows * (double)g->cols,
                       });
}
