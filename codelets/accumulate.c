/* Sums of two tiles, the step of every reduction. */
#include "codelets/accumulate.h"
#include "codelets/codelet.h"

/* accumulate
 *   buffers   0 R    X (rows, cols)
 *             1 RW   Y (rows, cols) */
static void accumulate_cpu(void *buffers[], void *argument)
{
    (void)argument;
    const struct sl_dense x = sl_dense_buffer(buffers[0]), y = sl_dense_buffer(buffers[1]);
    sl_kernel_accumulate(y.rows, y.cols, x.data, x.ld, y.data, y.ld);
}

/* add_scaled
 *   argument  struct add_scaled_argument
 *   buffers   …       R    row scales (SL_ROW_SCALES, rows), if there is a factor
 *             before  R    X (rows, cols)
 *             last    RW   Y (rows, cols) */
static void add_scaled_cpu(void *buffers[], void *argument)
{
    const struct add_scaled_argument *arg = argument;
    const int first = arg->factor != SL_ROW_NONE;
    const struct sl_rows x = sl_rows_buffer(buffers[first]), y = sl_rows_buffer(buffers[first + 1]);
    sl_kernel_add_scaled(STARPU_MATRIX_GET_NY(buffers[first]), STARPU_MATRIX_GET_NX(buffers[first]),
                         arg->scale, first ? sl_row_scale(buffers[0], arg->factor) : NULL, &x, &y);
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
SL_CODELET_ANY(add_scaled, 0x48D1CC);
SL_CODELET(metrics_add, 0x5F9EA0, 2, STARPU_R, STARPU_RW);

void sl_submit_accumulate(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y)
{
    sl_expect_one_shape("accumulate", x, y);
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &accumulate_codelet,
                           .count = 2,
                           .tiles = {x, y},
                           .work = (double)y->rows * (double)y->cols,
                       });
}

void sl_submit_add_scaled(struct sl_runtime *rt, const struct sl_add_scaled *sum)
{
    const struct add_scaled_argument arg = {sum->scale, sum->factor};
    struct sl_task task = {
        .codelet = &add_scaled_codelet,
        .output = SL_TASK_UPDATES,
        .argument = &arg,
        .argument_size = sizeof arg,
        .work = (double)sum->y->rows * (double)sum->y->cols,
    };
    sl_expect_one_shape("add_scaled", sum->x, sum->y);
    if (sum->factor != SL_ROW_NONE)
        task.tiles[task.count++] = sum->scales;
    task.tiles[task.count++] = sum->x;
    task.tiles[task.count++] = sum->y;
    sl_task_submit(rt, &task);
}

void sl_submit_metrics_add(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y)
{
    sl_task_submit(rt, &(struct sl_task){.codelet = &metrics_add_codelet,
                                         .count = 2,
                                         .tiles = {x, y},
                                         .work = (double)y->rows * (double)y->cols});
}
