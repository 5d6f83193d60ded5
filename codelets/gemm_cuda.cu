/* Dense products: cuBLAS, in full float32 (its default mode: no TF32). */
#include "codelets/cuda.h"

static void check_cublas(const char *call, cublasStatus_t status)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        sl_fatal("%s: %s", call, cublasGetStatusString(status));
}

/* Row-major C = op(A)·op(B) is column-major Cᵀ = op(B)ᵀ·op(A)ᵀ on the same memory: the operands
 * change places. */
extern "C" void sl_cuda_gemm(cublasHandle_t handle, bool transpose_a, bool transpose_b, int64_t m,
                             int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
                             int64_t ldb, bool accumulate, float *c, int64_t ldc,
                             cudaStream_t stream)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0) {
        if (!accumulate)
            sl_cuda_fill(m, n, 0.0f, c, ldc, stream);
        return;
    }
    const float one = 1.0f, add = accumulate ? 1.0f : 0.0f;
    check_cublas("cublasSetPointerMode", cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
    check_cublas("cublasSgemm",
                 cublasSgemm(handle, transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                             transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, (int)n, (int)m, (int)k, &one,
                             b, (int)ldb, a, (int)lda, &add, c, (int)ldc));
}

/* C may have rows after the m that are written here: a gradient's last one is the bias's, which
 * bias_gradient writes afterwards. StarPU's copy of it on this device holds anything until then. */
extern "C" void gemm_set_cuda(void *buffers[], void *argument)
{
    const gemm_argument *arg = (const gemm_argument *)argument;
    const sl_dense a = sl_dense_buffer(buffers[0]), b = sl_dense_buffer(buffers[1]),
                   c = sl_dense_buffer(buffers[2]);
    sl_cuda_gemm(starpu_cublas_get_local_handle(), arg->transpose_a, arg->transpose_b, arg->m,
                 arg->n, arg->k, a.data, a.ld, b.data, b.ld, arg->accumulate, c.data, c.ld,
                 sl_cuda_task_stream());
}

extern "C" void gemm_add_cuda(void *buffers[], void *argument)
{
    gemm_set_cuda(buffers, argument);
}
