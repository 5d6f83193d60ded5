/* Operations on whole rows: scaling, gathering, scattering. */
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

SL_INLINE void sl_kernel_gather_rows_body(int64_t count, int64_t cols, const uint32_t *index,
                                          const float *x, int64_t ldx, float *y, int64_t ldy)
{
    for (int64_t r = 0; r < count; r++)
        for (int64_t j = 0; j < cols; j++)
            y[r * ldy + j] = x[index[r] * ldx + j];
}

SL_DISPATCH(, sl_kernel_gather_rows,
            (int64_t count, int64_t cols, const uint32_t *index, const float *x, int64_t ldx,
             float *y, int64_t ldy),
            (count, cols, index, x, ldx, y, ldy))

SL_INLINE void sl_kernel_scatter_rows_body(int64_t count, int64_t cols, const uint32_t *index,
                                           const float *x, int64_t ldx, bool accumulate, float *y,
                                           int64_t ldy)
{
    for (int64_t r = 0; r < count; r++)
        for (int64_t j = 0; j < cols; j++)
            y[index[r] * ldy + j] =
                accumulate ? y[index[r] * ldy + j] + x[r * ldx + j] : x[r * ldx + j];
}

SL_DISPATCH(, sl_kernel_scatter_rows,
            (int64_t count, int64_t cols, const uint32_t *index, const float *x, int64_t ldx,
             bool accumulate, float *y, int64_t ldy),
            (count, cols, index, x, ldx, accumulate, y, ldy))

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

/* gather_rows
 *   buffers   0 R    index (1, rows of Y) of uint32
 *             1 R    X (any, cols)
 *             2 W    Y (rows, cols) */
static void gather_rows_cpu(void *buffers[], void *argument)
{
    (void)argument;
    const struct sl_dense x = sl_dense_buffer(buffers[1]), y = sl_dense_buffer(buffers[2]);
    sl_kernel_gather_rows(y.rows, y.cols, sl_raw_buffer(buffers[0]), x.data, x.ld, y.data, y.ld);
}

/* scatter_rows
 *   buffers   0 R    index (1, rows of X) of uint32
 *             1 R    X (rows, cols)
 *             2 RW   Y (any, cols) */
static void scatter_rows_cpu(void *buffers[], void *argument)
{
    (void)argument;
    const struct sl_dense x = sl_dense_buffer(buffers[1]), y = sl_dense_buffer(buffers[2]);
    sl_kernel_scatter_rows(x.rows, x.cols, sl_raw_buffer(buffers[0]), x.data, x.ld, true, y.data,
                           y.ld);
}

SL_CODELET(scale_rows, 0x778899, 3, STARPU_R, STARPU_R, STARPU_W);
SL_CODELET(gather_rows, 0x708090, 3, STARPU_R, STARPU_R, STARPU_W);
SL_CODELET(scatter_rows, 0x696969, 3, STARPU_R, STARPU_R, STARPU_RW);

static void submit_rows(struct sl_runtime *rt, struct starpu_codelet *codelet,
                        struct sl_tile *first, struct sl_tile *x, struct sl_tile *y, int64_t rows)
{
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = codelet,
                           .count = 3,
                           .tiles = {first, x, y},
                           .work = (double)rows * (double)y->cols,
                       });
}

void sl_submit_scale_rows(struct sl_runtime *rt, struct sl_tile *s, struct sl_tile *x,
                          struct sl_tile *y)
{
    submit_rows(rt, &scale_rows_codelet, s, x, y, y->rows);
}

void sl_submit_gather_rows(struct sl_runtime *rt, struct sl_tile *index, struct sl_tile *x,
                           struct sl_tile *y)
{
    submit_rows(rt, &gather_rows_codelet, index, x, y, y->rows);
}

void sl_submit_scatter_rows(struct sl_runtime *rt, struct sl_tile *index, struct sl_tile *x,
                            struct sl_tile *y)
{
    submit_rows(rt, &scatter_rows_codelet, index, x, y, x->rows);
}
