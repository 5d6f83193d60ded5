/* Clip the gradient of all parameters where its norm exceeds a limit (Pascanu, Mikolov, Bengio: On
 * the difficulty of training recurrent neural networks, 2013, section 3.2). */
#include "codelets/clip.h"
#include "codelets/codelet.h"

/* square_sum
 *   argument  struct square_sum_argument
 *   buffers   0 R    X (rows, cols)
 *             1 RW   sum (1, 1) of double */
static void square_sum_cpu(void *buffers[], void *argument)
{
    const struct square_sum_argument *arg = argument;
    const struct sl_dense x = sl_dense_buffer(buffers[0]);
    double *sum = sl_raw_buffer(buffers[1]);
    const double own = sl_kernel_square_sum(x.rows - arg->averages, x.cols, x.data, x.ld);
    *sum = arg->accumulate ? *sum + own : own;
}

/* clip
 *   argument  struct clip_argument
 *   buffers   0 R    sum of squares (1, 1) of double
 *             1 RW   X (rows, cols) */
static void clip_cpu(void *buffers[], void *argument)
{
    const struct clip_argument *arg = argument;
    const struct sl_dense x = sl_dense_buffer(buffers[1]);
    sl_kernel_clip(x.rows - arg->averages, x.cols, arg->limit,
                   *(const double *)sl_raw_buffer(buffers[0]), x.data, x.ld);
}

SL_CODELET(square_sum, 0xBDB76B, 2, STARPU_R, STARPU_RW);
SL_CODELET(clip, 0xF0E68C, 2, STARPU_R, STARPU_RW);

void sl_submit_square_sum(struct sl_runtime *rt, bool accumulate, int averages, struct sl_tile *g,
                          struct sl_tile *sum)
{
    const struct square_sum_argument arg = {accumulate, averages};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &square_sum_codelet,
                           .count = 2,
                           .tiles = {g, sum},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)g->rows * (double)g->cols,
                       });
}

void sl_submit_clip(struct sl_runtime *rt, double limit, int averages, struct sl_tile *sum,
                    struct sl_tile *g)
{
    const struct clip_argument arg = {limit, averages};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &clip_codelet,
                           .count = 2,
                           .tiles = {sum, g},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)g->rows * (double)g->cols,
                       });
}
