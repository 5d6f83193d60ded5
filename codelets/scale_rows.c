/* Rows times numbers. */
#include "codelets/scale_rows.h"
#include "codelets/codelet.h"
#include "codelets/vector.h"

SL_INLINE void sl_kernel_scale_rows_body(int64_t rows, int64_t cols, const float *s, const float *x,
                                         int64_t ldx, float *y, int64_t ldy)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            y[r * ldy + j] = s[r] * x[r * ldx + j];
}

SL_DISPATCH(, sl_kernel_scale_rows,
            (int64_t rows, int64_t cols, const float *s, const float *x, int64_t ldx, float *y,
             int64_t ldy),
            (rows, cols, s, x, ldx, y, ldy))

/* scale_rows
 *   buffers   0 R    s (1, rows)
 *             1 R    X (rows, cols)
 *             2 W    Y (rows, cols) */
static void scale_rows_cpu(void *buffers[], void *argument)
{
    (void)argument;
    const struct sl_dense s = sl_dense_buffer(buffers[0]), x = sl_dense_buffer(buffers[1]),
                          y = sl_dense_buffer(buffers[2]);
    sl_kernel_scale_rows(y.rows, y.cols, s.data, x.data, x.ld, y.data, y.ld);
}

SL_CODELET(scale_rows, 0x778899, 3, STARPU_R, STARPU_R, STARPU_W);

void sl_submit_scale_rows(struct sl_runtime *rt, struct sl_tile *s, struct sl_tile *x,
                          struct sl_tile *y)
{
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &scale_rows_codelet,
                           .count = 3,
                           .tiles = {s, x, y},
                           .work = (double)y->rows * (double)y->cols,
                       });
}
