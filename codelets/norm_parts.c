/* Normalisation of rows that are cut: the merging of parts' moments, and the tasks. */
#include "codelets/norm_parts.h"

#include "codelets/codelet.h"

void sl_kernel_norm_merge(int64_t rows, double cols, double more, const float *x, int64_t ldx,
                          float *y, int64_t ldy)
{
    const double part = more / (cols + more);
    for (int64_t r = 0; r < rows; r++) {
        const double own = (double)y[r] + (double)y[ldy + r],
                     off = (double)x[r] + (double)x[ldx + r] - own, mean = own + part * off;
        const double variance = (1.0 - part) * (double)y[2 * ldy + r] +
                                part * (double)x[2 * ldx + r] + part * (1.0 - part) * off * off;
        y[r] = (float)mean;
        y[ldy + r] = (float)(mean - (double)y[r]);
        y[2 * ldy + r] = (float)variance;
    }
}

/* ---- Tasks ---- */

/* norm_moments
 *   buffers   0 R    H (rows, cols)
 *             1 W    moments (3, rows) */
static void norm_moments_cpu(void *buffers[], void *argument)
{
    (void)argument;
    const struct sl_rows h = sl_rows_buffer(buffers[0]);
    const struct sl_dense moments = sl_dense_buffer(buffers[1]);
    sl_kernel_norm_moments(moments.cols, STARPU_MATRIX_GET_NX(buffers[0]), &h, moments.data,
                           moments.ld);
}

/* norm_merge
 *   argument  struct norm_merge_argument
 *   buffers   0 R    X, moments (3, rows)
 *             1 RW   Y, moments (3, rows) */
static void norm_merge_cpu(void *buffers[], void *argument)
{
    const struct norm_merge_argument *arg = argument;
    const struct sl_dense x = sl_dense_buffer(buffers[0]), y = sl_dense_buffer(buffers[1]);
    sl_kernel_norm_merge(y.cols, arg->cols, arg->more, x.data, x.ld, y.data, y.ld);
}

/* norm_products
 *   argument  struct norm_argument
 *   buffers   0 R    parameters (2, width)
 *             1 R    moments (3, rows)
 *             2 R    H (rows, cols)
 *             3 R    G (rows, cols)
 *             4 W    products (2, rows) */
static void norm_products_cpu(void *buffers[], void *argument)
{
    struct norm_operands o;
    sl_norm_buffers(argument, buffers, &o);
    sl_kernel_norm_products(&o.norm, &o.g, o.z.data, o.z.ld);
}

SL_CODELET(norm_moments, 0x7B68EE, 2, STARPU_R, STARPU_W);
SL_CODELET(norm_merge, 0x6A5ACD, 2, STARPU_R, STARPU_RW);
SL_CODELET_ANY(norm_products, 0x483D8B);

void sl_submit_norm_moments(struct sl_runtime *rt, struct sl_tile *h, struct sl_tile *moments)
{
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &norm_moments_codelet,
                           .count = 2,
                           .tiles = {h, moments},
                           .urgency = SL_TASK_SOON,
                           .work = (double)h->rows * (double)h->cols,
                       });
}

void sl_submit_norm_merge(struct sl_runtime *rt, int64_t cols, int64_t more, struct sl_tile *x,
                          struct sl_tile *y)
{
    const struct norm_merge_argument arg = {(double)cols, (double)more};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &norm_merge_codelet,
                           .count = 2,
                           .tiles = {x, y},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .urgency = SL_TASK_SOON,
                           .work = (double)y->cols,
                       });
}

void sl_submit_norm_products(struct sl_runtime *rt, const struct sl_norm_tiles *tiles,
                             struct sl_tile *g, struct sl_tile *products)
{
    struct norm_argument arg = {.after = SL_ROW_NONE};
    struct sl_task task = {
        .codelet = &norm_products_codelet,
        .argument = &arg,
        .argument_size = sizeof arg,
        .urgency = SL_TASK_SOON,
        .work = (double)g->rows * (double)g->cols,
        .output = SL_TASK_WRITES,
    };
    task.count = sl_norm_pack(tiles, g, NULL, products, &arg, task.tiles);
    task.tiles[task.count++] = products;
    sl_task_submit(rt, &task);
}
