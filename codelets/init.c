/* Tasks that set initial values. */
#include "codelets/init.h"
#include "codelets/bfloat16.h"
#include "codelets/codelet.h"

void sl_kernel_glorot(int64_t rows, int64_t cols, float limit, uint64_t key, uint32_t row0,
                      uint32_t column0, float *w, int64_t ldw)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            w[r * ldw + j] =
                limit *
                (float)(2.0 * sl_rng_uniform(key, row0 + (uint32_t)r, column0 + (uint32_t)j) - 1.0);
}

/* glorot
 *   argument  struct sl_glorot
 *   buffers   0 W    W (rows or more, cols) */
static void glorot_cpu(void *buffers[], void *argument)
{
    const struct sl_glorot *arg = argument;
    const struct sl_dense w = sl_dense_buffer(buffers[0]);
    for (int64_t p = 0, at = 0, from, to; p <= SL_GLOROT_PARTS; p++) {
        sl_glorot_rows(arg, (int)p, w.rows, &at, &from, &to);
        const float limit = p < SL_GLOROT_PARTS ? arg->part[p].limit : 0.0f;
        if (limit > 0.0f)
            sl_kernel_glorot(to - from, w.cols, limit, arg->key, (uint32_t)(arg->first + from), 0,
                             w.data + from * w.ld, w.ld);
        else
            sl_kernel_fill(to - from, w.cols, 0.0f, w.data + from * w.ld, w.ld);
    }
}

/* fill
 *   argument  struct fill_argument
 *   buffers   0 W/RW W (≥ rows, cols) */
static void fill_cpu(void *buffers[], void *argument)
{
    const struct sl_rows w = sl_rows_buffer(buffers[0]);
    const struct fill_argument *arg = argument;
    const int64_t cols = STARPU_MATRIX_GET_NX(buffers[0]);
    if (w.type == SL_FLOAT32)
        sl_kernel_fill(arg->rows, cols, arg->value, w.data, w.ld);
    for (int64_t r = 0; w.type == SL_BFLOAT16 && r < arg->rows; r++)
        for (int64_t j = 0; j < cols; j++)
            ((uint16_t *)w.data)[r * w.ld + j] = sl_narrow(arg->value);
}

SL_CODELET(glorot, 0xA0522D, 1, STARPU_W);
SL_CODELET_ANY(fill, 0xD2B48C);

void sl_submit_glorot(struct sl_runtime *rt, const struct sl_glorot *glorot, struct sl_tile *w)
{
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &glorot_codelet,
                           .count = 1,
                           .tiles = {w},
                           .argument = glorot,
                           .argument_size = sizeof *glorot,
                           .work = (double)w->rows * (double)w->cols,
                       });
}

void sl_submit_fill_rows(struct sl_runtime *rt, float value, int64_t rows, struct sl_tile *w)
{
    const struct fill_argument arg = {value, rows};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &fill_codelet,
                           .count = 1,
                           .output = rows < w->rows ? SL_TASK_UPDATES : SL_TASK_WRITES,
                           .tiles = {w},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)rows * (double)w->cols,
                       });
}

void sl_submit_fill(struct sl_runtime *rt, float value, struct sl_tile *w)
{
    sl_submit_fill_rows(rt, value, w->rows, w);
}
