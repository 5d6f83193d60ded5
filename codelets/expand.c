/* A sparse tile as a dense one. */
#include "codelets/arguments.h"
#include "codelets/codelet.h"

void sl_kernel_expand(const struct sl_sparse *a, const struct sl_sparse_dropout *drop, float *z,
                      int64_t ldz)
{
    const bool dropped = drop && drop->drop.threshold;
    sl_kernel_fill(a->rows, a->cols, 0.0f, z, ldz);
    for (int64_t r = 0; r < a->rows; r++)
        for (uint32_t e = a->row_ptr[r]; e < a->row_ptr[r + 1]; e++) {
            float v = a->value ? a->value[e] : 1.0f;
            if (dropped)
                v *= sl_dropout_factor(&drop->drop, drop->row0 + (uint32_t)r,
                                       drop->col0 + a->col[e]);
            z[r * ldz + a->col[e]] = v;
        }
}

/* expand
 *   argument  struct expand_argument
 *   buffers   0 R    A, sparse tile (rows, cols)
 *             1 W    Z (rows, cols) */
static void expand_cpu(void *buffers[], void *argument)
{
    const struct expand_argument *arg = argument;
    const struct sl_dense z = sl_dense_buffer(buffers[1]);
    const struct sl_sparse a =
        sl_sparse_view(sl_raw_buffer(buffers[0]), z.rows, z.cols, arg->nnz, arg->has_values);
    sl_kernel_expand(&a, &arg->drop, z.data, z.ld);
}

SL_CODELET(expand, 0x66CDAA, 2, STARPU_R, STARPU_W);

void sl_submit_expand(struct sl_runtime *rt, struct sl_sparse_tile *a,
                      const struct sl_sparse_dropout *drop, struct sl_tile *z)
{
    const struct expand_argument arg = {
        .nnz = a->nnz,
        .drop = drop ? *drop : (struct sl_sparse_dropout){.drop.threshold = 0},
        .has_values = a->has_values,
    };
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &expand_codelet,
                           .count = 2,
                           .tiles = {&a->tile, z},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)z->rows * (double)z->cols,
                       });
}
