/* The bias of a layer is the row after its weights, so that both travel and are updated together.
 */
#include "codelets/codelet.h"
#include "codelets/vector.h"

SL_VECTOR void sl_kernel_bias(int64_t rows, int64_t cols, const float *b, float *z, int64_t ldz)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            z[r * ldz + j] += b[j];
}

SL_VECTOR void sl_kernel_bias_gradient(int64_t rows, int64_t cols, const float *g, int64_t ldg,
                                       float *db)
{
    for (int64_t j = 0; j < cols; j++)
        db[j] = 0.0f;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            db[j] += g[r * ldg + j];
}

/* bias
 *   argument  int64_t, the row of the bias
 *   buffers   0 R    parameters (> bias row, cols)
 *             1 RW   Z (rows, cols) */
static void bias_cpu(void *buffers[], void *argument)
{
    const struct sl_dense parameters = sl_dense_buffer(buffers[0]), z = sl_dense_buffer(buffers[1]);
    sl_kernel_bias(z.rows, z.cols, parameters.data + *(const int64_t *)argument * parameters.ld,
                   z.data, z.ld);
}

/* bias_gradient
 *   argument  int64_t, the row of the bias
 *   buffers   0 R    G (rows, cols)
 *             1 RW   gradient (> bias row, cols), of which one row is written */
static void bias_gradient_cpu(void *buffers[], void *argument)
{
    const struct sl_dense g = sl_dense_buffer(buffers[0]), gradient = sl_dense_buffer(buffers[1]);
    sl_kernel_bias_gradient(g.rows, g.cols, g.data, g.ld,
                            gradient.data + *(const int64_t *)argument * gradient.ld);
}

SL_CODELET(bias, 0xDAA520, 2, STARPU_R, STARPU_RW);
SL_CODELET(bias_gradient, 0xB8860B, 2, STARPU_R, STARPU_RW);

void sl_submit_bias(struct sl_runtime *rt, struct sl_tile *parameters, int64_t bias_row,
                    struct sl_tile *z)
{
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &bias_codelet,
                           .count = 2,
                           .tiles = {parameters, z},
                           .argument = &bias_row,
                           .argument_size = sizeof bias_row,
                           .work = (double)z->rows * (double)z->cols,
                       });
}

void sl_submit_bias_gradient(struct sl_runtime *rt, struct sl_tile *g, int64_t bias_row,
                             struct sl_tile *gradient)
{
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &bias_gradient_codelet,
                           .count = 2,
                           .tiles = {g, gradient},
                           .argument = &bias_row,
                           .argument_size = sizeof bias_row,
                           .work = (double)g->rows * (double)g->cols,
                       });
}
