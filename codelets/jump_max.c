/* Tasks of the largest of several matrices: one for each matrix, forward and back. */
#include "codelets/jump_max.h"

#include "codelets/codelet.h"

/* jump_max
 *   argument  struct jump_max_argument
 *   buffers   0    R      row scales (SL_ROW_SCALES, rows), if there is a factor
 *             -3   R      X (rows, cols)
 *             -2   W/RW   ARGMAX (rows, cols) of int32
 *             -1   W/RW   M (rows, cols) */
static void jump_max_cpu(void *buffers[], void *argument)
{
    const struct jump_max_argument *arg = argument;
    void **last = buffers + (arg->factor != SL_ROW_NONE);
    const struct sl_rows x = sl_rows_buffer(last[0]), m = sl_rows_buffer(last[2]);
    sl_kernel_jump_max(STARPU_MATRIX_GET_NY(last[0]), STARPU_MATRIX_GET_NX(last[0]), arg->number,
                       last > buffers ? sl_row_scale(buffers[0], arg->factor) : NULL, &x, &m,
                       sl_raw_buffer(last[1]), sl_dense_buffer(last[1]).ld);
}

/* jump_max_back
 *   argument  struct jump_max_argument
 *   buffers   0   R      G (rows, cols)
 *             1   R      ARGMAX (rows, cols) of int32
 *             2   W/RW   D (rows, cols) */
static void jump_max_back_cpu(void *buffers[], void *argument)
{
    const struct jump_max_argument *arg = argument;
    const struct sl_rows g = sl_rows_buffer(buffers[0]);
    const struct sl_dense d = sl_dense_buffer(buffers[2]);
    sl_kernel_jump_max_back(d.rows, d.cols, arg->number, &g, sl_raw_buffer(buffers[1]),
                            sl_dense_buffer(buffers[1]).ld, arg->accumulate, d.data, d.ld);
}

SL_CODELET_ANY(jump_max, 0xE9967A);
SL_CODELET_ANY(jump_max_back, 0xFFA07A);

void sl_submit_jump_max(struct sl_runtime *rt, const struct sl_jump_max_tiles *tiles)
{
    const struct jump_max_argument arg = {.number = tiles->number, .factor = tiles->factor};
    const enum sl_task_output output = tiles->number ? SL_TASK_UPDATES : SL_TASK_WRITES;
    struct sl_task task = {
        .codelet = &jump_max_codelet,
        .before_output = output,
        .output = output,
        .argument = &arg,
        .argument_size = sizeof arg,
        .work = (double)tiles->m->rows * (double)tiles->m->cols,
    };
    sl_expect_one_shape("jump_max", tiles->x, tiles->m);
    if (tiles->factor != SL_ROW_NONE)
        task.tiles[task.count++] = tiles->scales;
    task.tiles[task.count++] = tiles->x;
    task.tiles[task.count++] = tiles->argmax;
    task.tiles[task.count++] = tiles->m;
    sl_task_submit(rt, &task);
}

void sl_submit_jump_max_back(struct sl_runtime *rt, int number, struct sl_tile *g,
                             struct sl_tile *argmax, bool accumulate, struct sl_tile *d)
{
    const struct jump_max_argument arg = {.number = number, .accumulate = accumulate};
    sl_expect_one_shape("jump_max_back", g, d);
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &jump_max_back_codelet,
                           .count = 3,
                           .tiles = {g, argmax, d},
                           .output = accumulate ? SL_TASK_UPDATES : SL_TASK_WRITES,
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)d->rows * (double)d->cols,
                       });
}
