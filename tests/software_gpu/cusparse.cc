/* The product of a sparse matrix in CSR and a dense one, of cuSPARSE, on a stream of the software
 * GPU: float32, 32-bit indices, rows of dense operands. */
#include "runtime.h"

#include <cusparse.h>

#include <cmath>

using namespace software_gpu;

struct cusparseContext {
    cudaStream_t stream;
};

struct cusparseSpMatDescr {
    int64_t rows, cols, nnz;
    void *row_ptr, *col, *value;
};

struct cusparseDnMatDescr {
    int64_t rows, cols, ld;
    void *value;
};

cusparseStatus_t cusparseCreate(cusparseHandle_t *handle)
{
    *handle = new cusparseContext{NULL};
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDestroy(cusparseHandle_t handle)
{
    delete handle;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUSPARSE_STATUS_SUCCESS;
}

const char *cusparseGetErrorString(cusparseStatus_t status)
{
    switch (status) {
    case CUSPARSE_STATUS_SUCCESS:
        return "success";
    case CUSPARSE_STATUS_INVALID_VALUE:
        return "invalid value";
    case CUSPARSE_STATUS_NOT_SUPPORTED:
        return "operation not supported";
    default:
        return "an error of cuSPARSE";
    }
}

cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t *matrix, int64_t rows, int64_t cols,
                                   int64_t nnz, void *row_ptr, void *col, void *value,
                                   cusparseIndexType_t row_ptr_type, cusparseIndexType_t col_type,
                                   cusparseIndexBase_t base, cudaDataType value_type)
{
    if (row_ptr_type != CUSPARSE_INDEX_32I || col_type != CUSPARSE_INDEX_32I ||
        base != CUSPARSE_INDEX_BASE_ZERO || value_type != CUDA_R_32F)
        return CUSPARSE_STATUS_NOT_SUPPORTED;
    *matrix = new cusparseSpMatDescr{rows, cols, nnz, row_ptr, col, value};
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCsrSetPointers(cusparseSpMatDescr_t matrix, void *row_ptr, void *col,
                                        void *value)
{
    matrix->row_ptr = row_ptr;
    matrix->col = col;
    matrix->value = value;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix)
{
    delete matrix;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t *matrix, int64_t rows, int64_t cols,
                                     int64_t ld, void *value, cudaDataType type,
                                     cusparseOrder_t order)
{
    if (type != CUDA_R_32F || order != CUSPARSE_ORDER_ROW)
        return CUSPARSE_STATUS_NOT_SUPPORTED;
    if (ld < cols)
        return CUSPARSE_STATUS_INVALID_VALUE;
    *matrix = new cusparseDnMatDescr{rows, cols, ld, value};
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDnMatSetValues(cusparseDnMatDescr_t matrix, void *value)
{
    matrix->value = value;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix)
{
    delete matrix;
    return CUSPARSE_STATUS_SUCCESS;
}

namespace
{

enum { WORKSPACE = 256 };

bool is_known(cusparseOperation_t a, cusparseOperation_t b, cudaDataType compute)
{
    return a == CUSPARSE_OPERATION_NON_TRANSPOSE && b == CUSPARSE_OPERATION_NON_TRANSPOSE &&
           compute == CUDA_R_32F;
}

bool fit(const cusparseSpMatDescr &a, const cusparseDnMatDescr &b, const cusparseDnMatDescr &c)
{
    return a.cols == b.rows && a.rows == c.rows && b.cols == c.cols;
}

size_t bytes(const cusparseDnMatDescr &m)
{
    return m.rows && m.cols ? (size_t)((m.rows - 1) * m.ld + m.cols) * sizeof(float) : 0;
}

struct product {
    cusparseSpMatDescr a;
    cusparseDnMatDescr b, c;
    float alpha, beta;
    void *workspace;
    int device;
};

void check_ranges(const product &p)
{
    const char *call = "cusparseSpMM";
    const size_t nnz = (size_t)p.a.nnz;
    check_device_range(call, p.a.row_ptr, (size_t)(p.a.rows + 1) * sizeof(int32_t), p.device);
    check_device_range(call, p.a.col, nnz * sizeof(int32_t), p.device);
    check_device_range(call, p.a.value, nnz * sizeof(float), p.device);
    check_device_range(call, p.b.value, bytes(p.b), p.device);
    check_device_range(call, p.c.value, bytes(p.c), p.device);
    check_device_range(call, p.workspace, WORKSPACE, p.device);
}

void multiply(const product &p)
{
    const int32_t *row_ptr = (const int32_t *)p.a.row_ptr, *col = (const int32_t *)p.a.col;
    const float *value = (const float *)p.a.value;
    for (int64_t r = 0; r < p.a.rows; r++)
        for (int64_t j = 0; j < p.c.cols; j++) {
            float sum = 0.0f;
            for (int32_t e = row_ptr[r]; e < row_ptr[r + 1]; e++)
                sum = fmaf(value[e], ((const float *)p.b.value)[col[e] * p.b.ld + j], sum);
            float *c = (float *)p.c.value + r * p.c.ld + j;
            *c = p.alpha * sum + (p.beta == 0.0f ? 0.0f : p.beta * *c);
        }
}

} // namespace

cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t, cusparseOperation_t op_a,
                                         cusparseOperation_t op_b, const void *,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                         const void *, cusparseDnMatDescr_t c, cudaDataType compute,
                                         cusparseSpMMAlg_t, size_t *bytes_needed)
{
    if (!is_known(op_a, op_b, compute))
        return CUSPARSE_STATUS_NOT_SUPPORTED;
    *bytes_needed = WORKSPACE;
    return fit(*a, *b, *c) ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_INVALID_VALUE;
}

cusparseStatus_t cusparseSpMM_preprocess(cusparseHandle_t handle, cusparseOperation_t op_a,
                                         cusparseOperation_t op_b, const void *alpha,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                         const void *beta, cusparseDnMatDescr_t c,
                                         cudaDataType compute, cusparseSpMMAlg_t algorithm,
                                         void *workspace)
{
    size_t unused;
    check_device_range("cusparseSpMM_preprocess", workspace, WORKSPACE,
                       device_of(*find_stream(handle->stream)));
    return cusparseSpMM_bufferSize(handle, op_a, op_b, alpha, a, b, beta, c, compute, algorithm,
                                   &unused);
}

cusparseStatus_t cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t op_a,
                              cusparseOperation_t op_b, const void *alpha,
                              cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                              const void *beta, cusparseDnMatDescr_t c, cudaDataType compute,
                              cusparseSpMMAlg_t, void *workspace)
{
    if (!is_known(op_a, op_b, compute))
        return CUSPARSE_STATUS_NOT_SUPPORTED;
    if (!fit(*a, *b, *c))
        return CUSPARSE_STATUS_INVALID_VALUE;
    const std::shared_ptr<queue> stream = find_stream(handle->stream);
    const product p = {
        *a, *b, *c, *(const float *)alpha, *(const float *)beta, workspace, device_of(*stream)};
    check_ranges(p);
    add(SPARSE_PRODUCTS);
    enqueue(stream, [p] {
        check_ranges(p);
        multiply(p);
    });
    return CUSPARSE_STATUS_SUCCESS;
}
