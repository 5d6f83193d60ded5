/* Dense products of cuBLAS, on a stream of the software GPU, by the host's CBLAS. */
#include "runtime.h"

#include <cblas.h>
#include <cublas_v2.h>

#include <cstring>
#include <vector>

using namespace software_gpu;

struct cublasContext {
    cudaStream_t stream = NULL;
    int device = current_device();
    cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
};

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    *handle = new cublasContext;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream)
{
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode)
{
    handle->pointer_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode)
{
    *mode = handle->pointer_mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "the operation completed successfully";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "the functionality requested is not supported";
    default:
        return "an error of cuBLAS";
    }
}

namespace
{

float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

uint32_t to_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* To nearest, ties to even; NaN stays NaN. */
uint16_t narrow(float x)
{
    const uint32_t bits = to_bits(x);
    if (x != x)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* Column-major. */
struct operand {
    void *data;
    cudaDataType_t type;
    int ld;
    bool tf32; /* tensor cores see the upper 19 bits */
    float get(int64_t r, int64_t c) const
    {
        const int64_t at = c * ld + r;
        if (type == CUDA_R_16BF)
            return from_bits((uint32_t)((const uint16_t *)data)[at] << 16);
        const float x = ((const float *)data)[at];
        return tf32 ? from_bits(to_bits(x) & 0xFFFFE000u) : x;
    }
    void set(int64_t r, int64_t c, float x) const
    {
        const int64_t at = c * ld + r;
        if (type == CUDA_R_16BF)
            ((uint16_t *)data)[at] = narrow(x);
        else
            ((float *)data)[at] = x;
    }
    size_t bytes(int64_t rows, int64_t cols) const
    {
        return (size_t)(ld * (cols - 1) + rows) * (type == CUDA_R_16BF ? 2 : 4);
    }
};

struct product {
    int m, n, k;
    bool transpose_a, transpose_b;
    float alpha, beta;
    operand a, b, c;
};

/* Without padding, so that results depend on nothing but shapes and elements. */
std::vector<float> pack(const operand &from, int rows, int cols)
{
    std::vector<float> to((size_t)rows * (size_t)cols);
    for (int64_t c = 0; c < cols; c++)
        for (int64_t r = 0; r < rows; r++)
            to[(size_t)(c * rows + r)] = from.get(r, c);
    return to;
}

void multiply(const product &p)
{
    const int a_rows = p.transpose_a ? p.k : p.m, a_cols = p.transpose_a ? p.m : p.k;
    const int b_rows = p.transpose_b ? p.n : p.k, b_cols = p.transpose_b ? p.k : p.n;
    std::vector<float> product((size_t)p.m * (size_t)p.n);
    if (p.k > 0) {
        const std::vector<float> a = pack(p.a, a_rows, a_cols), b = pack(p.b, b_rows, b_cols);
        cblas_sgemm(CblasColMajor, p.transpose_a ? CblasTrans : CblasNoTrans,
                    p.transpose_b ? CblasTrans : CblasNoTrans, p.m, p.n, p.k, p.alpha, a.data(),
                    a_rows, b.data(), b_rows, 0.0f, product.data(), p.m);
    }
    for (int64_t c = 0; c < p.n; c++)
        for (int64_t r = 0; r < p.m; r++) {
            const float x = product[(size_t)(c * p.m + r)];
            p.c.set(r, c, p.beta == 0.0f ? x : x + p.beta * p.c.get(r, c));
        }
}

bool is_known(cudaDataType type)
{
    return type == CUDA_R_32F || type == CUDA_R_16BF;
}

void check_range(const char *call, const operand &o, int rows, int cols, int device)
{
    if (rows > 0 && cols > 0)
        check_device_range(call, o.data, o.bytes(rows, cols), device);
}

void check_ranges(const product &p, int device)
{
    const char *call = "cublasGemmEx";
    check_range(call, p.a, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, device);
    check_range(call, p.b, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, device);
    check_range(call, p.c, p.m, p.n, device);
}

} // namespace

/* The combinations of types that cuBLAS documents for float32 sums of these two types. */
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                            cublasOperation_t transpose_b, int m, int n, int k, const void *alpha,
                            const void *a, cudaDataType a_type, int lda, const void *b,
                            cudaDataType b_type, int ldb, const void *beta, void *c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t)
{
    if (handle->pointer_mode != CUBLAS_POINTER_MODE_HOST || a_type != b_type || !is_known(a_type) ||
        !is_known(c_type) || (a_type == CUDA_R_32F && c_type != CUDA_R_32F) ||
        (compute != CUBLAS_COMPUTE_32F &&
         (compute != CUBLAS_COMPUTE_32F_FAST_TF32 || a_type != CUDA_R_32F)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    const bool ta = transpose_a != CUBLAS_OP_N, tb = transpose_b != CUBLAS_OP_N;
    if (m < 0 || n < 0 || k < 0 || lda < (ta ? k : m) || lda < 1 || ldb < (tb ? n : k) || ldb < 1 ||
        ldc < m || ldc < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    const std::shared_ptr<queue> stream = find_stream(handle->stream);
    if (device_of(*stream) != handle->device || handle->device != current_device())
        stop("cublasGemmEx: handle of device %d, stream of device %d, current device %d",
             handle->device, device_of(*stream), current_device());
    const bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    const product p = {m,
                       n,
                       k,
                       ta,
                       tb,
                       *(const float *)alpha,
                       *(const float *)beta,
                       {(void *)a, a_type, lda, tf32},
                       {(void *)b, b_type, ldb, tf32},
                       {c, c_type, ldc, false}};
    check_ranges(p, handle->device);
    add(GEMMS);
    enqueue(stream, [p, device = handle->device] {
        check_ranges(p, device);
        multiply(p);
    });
    return CUBLAS_STATUS_SUCCESS;
}

/* y += alpha x. */
cublasStatus_t cublasSaxpy_v2(cublasHandle_t handle, int n, const float *alpha, const float *x,
                              int step_x, float *y, int step_y)
{
    if (handle->pointer_mode != CUBLAS_POINTER_MODE_HOST || step_x != 1 || step_y != 1)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    const std::shared_ptr<queue> stream = find_stream(handle->stream);
    const int device = device_of(*stream);
    const size_t bytes = n > 0 ? (size_t)n * sizeof *x : 0;
    check_device_range("cublasSaxpy", x, bytes, device);
    check_device_range("cublasSaxpy", y, bytes, device);
    enqueue(stream, [=, a = *alpha] { cblas_saxpy(n, a, x, 1, y, 1); });
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- What StarPU 1.4 calls at its start, of cublas.h and cublasLt.h ---- */

extern "C" {

cublasStatus_t cublasInit()
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasShutdown()
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetKernelStream(cudaStream_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(void **handle)
{
    static char only;
    *handle = &only;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(void *)
{
    return CUBLAS_STATUS_SUCCESS;
}
}
