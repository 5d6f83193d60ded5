/* The gradient of all parameters is made shorter where its norm exceeds a limit (Pascanu, Mikolov,
 * Bengio: On the difficulty of training recurrent neural networks, 2013, section 3.2). */
#include <math.h>

#include "codelets/clip.h"
#include "codelets/codelet.h"
#include "codelets/vector.h"

/* Entry j of a row goes to sum j mod 8; a product of two floats is exact in double. So neither
 * vectors nor fused operations change a bit. */
SL_INLINE void square_sum_body(int64_t rows, int64_t cols, const float *x, int64_t ldx, double *sum)
{
    enum { SUMS = 8 };
    double part[SUMS] = {0.0};
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * ldx;
        int64_t j = 0;
        for (; j + SUMS <= cols; j += SUMS)
            for (int s = 0; s < SUMS; s++)
                part[s] += (double)row[j + s] * (double)row[j + s];
        for (int s = 0; j + s < cols; s++)
            part[s] += (double)row[j + s] * (double)row[j + s];
    }
    for (int half = SUMS / 2; half; half /= 2)
        for (int s = 0; s < half; s++)
            part[s] += part[s + half];
    *sum = part[0];
}

SL_DISPATCH(static, square_sum,
            (int64_t rows, int64_t cols, const float *x, int64_t ldx, double *sum),
            (rows, cols, x, ldx, sum))

double sl_kernel_square_sum(int64_t rows, int64_t cols, const float *x, int64_t ldx)
{
    double sum;
    square_sum(rows, cols, x, ldx, &sum);
    return sum;
}

SL_INLINE void scale_body(int64_t rows, int64_t cols, float factor, float *x, int64_t ldx)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            x[r * ldx + j] *= factor;
}

SL_DISPATCH(static, scale, (int64_t rows, int64_t cols, float factor, float *x, int64_t ldx),
            (rows, cols, factor, x, ldx))

void sl_kernel_clip(int64_t rows, int64_t cols, double limit, double squares, float *x, int64_t ldx)
{
    const double factor = limit / sqrt(squares);
    if (factor < 1.0)
        scale(rows, cols, (float)factor, x, ldx);
}

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
