/* Inverted dropout as a pass of its own. */
#include "codelets/dropout.h"
#include "codelets/codelet.h"
#include "codelets/epilogue.h"

void sl_kernel_dropout(int64_t rows, int64_t cols, const struct sl_dropout *drop,
                       const uint32_t *vertex, uint32_t column0, const struct sl_rows *x,
                       const struct sl_rows *y)
{
    struct sl_epilogue e = SL_EPILOGUE_IDENTITY;
    e.drop = *drop;
    e.vertex = vertex;
    e.column0 = column0;
    sl_epilogue_rows(&e, 0, rows, cols, x, y);
}

/* dropout
 *   argument  struct dropout_argument
 *   buffers   0 R    row scales (SL_ROW_SCALES, rows)
 *             1 R    X (rows, cols)
 *             2 W    Y (rows, cols) */
static void dropout_cpu(void *buffers[], void *argument)
{
    const struct dropout_argument *arg = argument;
    const struct sl_rows x = sl_rows_buffer(buffers[1]), y = sl_rows_buffer(buffers[2]);
    sl_kernel_dropout(STARPU_MATRIX_GET_NY(buffers[2]), STARPU_MATRIX_GET_NX(buffers[2]),
                      &arg->drop, sl_vertices(buffers[0]), arg->column0, &x, &y);
}

SL_CODELET(dropout, 0x9370DB, 3, STARPU_R, STARPU_R, STARPU_W);

void sl_submit_dropout(struct sl_runtime *rt, const struct sl_dropout *drop, struct sl_tile *scales,
                       int64_t column0, struct sl_tile *x, struct sl_tile *y)
{
    const struct dropout_argument arg = {*drop, (uint32_t)column0};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &dropout_codelet,
                           .count = 3,
                           .tiles = {scales, x, y},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)y->rows * (double)y->cols,
                       });
}
