/* Sums of tiles: the step of every reduction. */
#include "codelets/accumulate.h"
#include "codelets/codelet.h"
#include "codelets/vector.h"

SL_INLINE void sl_kernel_accumulate_body(int64_t rows, int64_t cols, const float *x, int64_t ldx,
                                         float *y, int64_t ldy)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            y[r * ldy + j] += x[r * ldx + j];
}

SL_DISPATCH(, sl_kernel_accumulate,
            (int64_t rows, int64_t cols, const float *x, int64_t ldx, float *y, int64_t ldy),
            (rows, cols, x, ldx, y, ldy))

/* accumulate
 *   buffers   0 R    X (rows, cols)
 *             1 RW   Y (rows, cols) */
static void accumulate_cpu(void *buffers[], void *argument)
{
    (void)argument;
    const struct sl_dense x = sl_dense_buffer(buffers[0]), y = sl_dense_buffer(buffers[1]);
    sl_kernel_accumulate(y.rows, y.cols, x.data, x.ld, y.data, y.ld);
}

/* metrics_add
 *   buffers   0 R    X (rows, cols) of double, without gaps
 *             1 RW   Y (rows, cols) of double */
static void metrics_add_cpu(void *buffers[], void *argument)
{
    (void)argument;
    const double *x = sl_raw_buffer(buffers[0]);
    double *y = sl_raw_buffer(buffers[1]);
    const int64_t count =
        (int64_t)STARPU_MATRIX_GET_NX(buffers[1]) * (int64_t)STARPU_MATRIX_GET_NY(buffers[1]);
    for (int64_t i = 0; i < count; i++)
        y[i] += x[i];
}

SL_CODELET(accumulate, 0x20B2AA, 2, STARPU_R, STARPU_RW);
SL_CODELET(metrics_add, 0x5F9EA0, 2, STARPU_R, STARPU_RW);

void sl_submit_accumulate(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y)
{
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &accumulate_codelet,
                           .count = 2,
                           .tiles = {x, y},
                           .work = (double)y->rows * (double)y->cols,
                       });
}

void sl_submit_metrics_add(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y)
{
    sl_task_submit(rt, &(struct sl_task){.codelet = &metrics_add_codelet,
                                         .count = 2,
                                         .tiles = {x, y},
                                         .work = (double)y->rows * (double)y->cols});
}
