/* Inverted dropout as a pass of its own. */
#include <stddef.h>

#include "codelets/arguments.h"
#include "codelets/codelet.h"
#include "codelets/dropout_rows.h"

SL_INLINE void sl_kernel_dropout_body(int64_t rows, int64_t cols, const struct sl_dropout *drop,
                                      const uint32_t *vertex, uint32_t column0, const float *x,
                                      int64_t ldx, float *y, int64_t ldy)
{
    dropout_rows(rows, cols, drop, vertex, column0, NULL, x, ldx, y, ldy);
}

SL_DISPATCH(, sl_kernel_dropout,
            (int64_t rows, int64_t cols, const struct sl_dropout *drop, const uint32_t *vertex,
             uint32_t column0, const float *x, int64_t ldx, float *y, int64_t ldy),
            (rows, cols, drop, vertex, column0, x, ldx, y, ldy))

/* dropout
 *   argument  struct dropout_argument
 *   buffers   0 R    rows' facts (SL_ROW_FACTS, rows)
 *             1 R    X (rows, cols)
 *             2 W    Y (rows, cols) */
static void dropout_cpu(void *buffers[], void *argument)
{
    const struct dropout_argument *arg = argument;
    const struct sl_dense x = sl_dense_buffer(buffers[1]), y = sl_dense_buffer(buffers[2]);
    sl_kernel_dropout(y.rows, y.cols, &arg->drop, sl_vertices(buffers[0]), arg->column0, x.data,
                      x.ld, y.data, y.ld);
}

SL_CODELET(dropout, 0x9370DB, 3, STARPU_R, STARPU_R, STARPU_W);

void sl_submit_dropout(struct sl_runtime *rt, const struct sl_dropout *drop, struct sl_tile *facts,
                       int64_t column0, struct sl_tile *x, struct sl_tile *y)
{
    const struct dropout_argument arg = {*drop, (uint32_t)column0};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &dropout_codelet,
                           .count = 3,
                           .tiles = {facts, x, y},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)y->rows * (double)y->cols,
                       });
}
