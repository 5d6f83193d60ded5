/* Dense products: the BLAS's. */
#include "codelets/arguments.h"
#include "codelets/codelet.h"

#include SL_CBLAS_HEADER

void sl_kernel_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                    const float *a, int64_t lda, const float *b, int64_t ldb, bool accumulate,
                    float *c, int64_t ldc)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0) {
        if (!accumulate)
            sl_kernel_fill(m, n, 0.0f, c, ldc);
        return;
    }
    cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                transpose_b ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, 1.0f, a, (int)lda,
                b, (int)ldb, accumulate ? 1.0f : 0.0f, c, (int)ldc);
}

/* gemm_set, gemm_add
 *   argument  struct gemm_argument
 *   buffers   0 R      A (m, k), transposed: (k, m)
 *             1 R      B (k, n), transposed: (n, k)
 *             2 W/RW   C (m, n) */
static void gemm_set_cpu(void *buffers[], void *argument)
{
    const struct gemm_argument *arg = argument;
    const struct sl_dense a = sl_dense_buffer(buffers[0]), b = sl_dense_buffer(buffers[1]),
                          c = sl_dense_buffer(buffers[2]);
    sl_kernel_gemm(arg->transpose_a, arg->transpose_b, arg->m, arg->n, arg->k, a.data, a.ld, b.data,
                   b.ld, arg->accumulate, c.data, c.ld);
}

#define gemm_add_cpu gemm_set_cpu

SL_CODELET(gemm_set, 0x4169E1, 3, STARPU_R, STARPU_R, STARPU_W);
SL_CODELET(gemm_add, 0x6495ED, 3, STARPU_R, STARPU_R, STARPU_RW);

void sl_submit_gemm(struct sl_runtime *rt, bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                    int64_t k, struct sl_tile *a, struct sl_tile *b, bool accumulate,
                    struct sl_tile *c)
{
    const struct gemm_argument arg = {m, n, k, transpose_a, transpose_b, accumulate};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = accumulate ? &gemm_add_codelet : &gemm_set_codelet,
                           .count = 3,
                           .tiles = {a, b, c},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = 2.0 * (double)m * (double)n * (double)k,
                       });
}
