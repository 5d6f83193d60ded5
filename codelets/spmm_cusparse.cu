#include "codelets/spmm_cusparse.h"

#include <map>
#include <new>
#include <utility>

#include <cusparse.h>

#include "codelets/cuda.h"

extern "C" {
#include "codelets/epilogue.h"
#include "codelets/init.h"
#include "codelets/spmm.h"
}

namespace
{

/* A sparse tile in the form that cuSPARSE takes. */
struct form {
    uint32_t *row_ptr; // (rows + 1)
    uint32_t *col;     // (nnz)
    float *value;      // (nnz), NULL: all 1
};

/* The product of one sparse tile with rows of one width. */
struct product {
    cusparseSpMatDescr_t a;
    cusparseDnMatDescr_t h, z;
    int64_t ldh, ldz;
    form prepared; /* addresses for which the product was prepared */
    void *workspace;
};

void check(const char *call, cusparseStatus_t status)
{
    if (status != CUSPARSE_STATUS_SUCCESS)
        sl_fatal("%s: %s", call, cusparseGetErrorString(status));
}

const float one = 1.0f, zero = 0.0f;

} // namespace

struct sl_cusparse {
    cusparseHandle_t handle;
    struct sl_cuda_queue queue;
    cusparseSpMMAlg_t algorithm;
    std::map<int64_t, form> copies; /* copies of tiles, by key, where cuSPARSE needs a copy */
    std::map<std::pair<int64_t, int64_t>, product> products; /* products, by key and width */
    float *ones;
    int64_t most_ones;
    struct sl_cusparse_counts counts;
};

namespace
{

template <class T> T *allocate(struct sl_cusparse *c, size_t count)
{
    void *memory;
    if (cudaMalloc(&memory, count ? count * sizeof(T) : 1) != cudaSuccess)
        sl_fatal("a GPU has no %zu MiB left for cuSPARSE: --spmm own does without",
                 count * sizeof(T) >> 20);
    c->counts.allocations++;
    return (T *)memory;
}

/* Copy the entries of row r, of all blocks, one behind the other. */
template <class Col>
__global__ void join_blocks(int64_t rows, int64_t blocks, uint32_t block_cols,
                            const uint32_t *row_ptr, const Col *col, const float *value, form to)
{
    const int64_t r = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (r > rows)
        return;
    uint32_t at = 0;
    for (int64_t b = 0; b < blocks; b++)
        at += row_ptr[b * rows + r] - row_ptr[b * rows];
    to.row_ptr[r] = at;
    for (int64_t b = 0; r < rows && b < blocks; b++)
        for (uint32_t e = row_ptr[b * rows + r]; e < row_ptr[b * rows + r + 1]; e++, at++) {
            to.col[at] = (uint32_t)b * block_cols + col[e];
            if (value)
                to.value[at] = value[e];
        }
}

template <class Col>
void launch_join(const struct sl_sparse &a, const form &to, cudaStream_t stream)
{
    enum { THREADS = 128 };
    sl_cuda_launch("spmm_cusparse", join_blocks<Col>,
                   dim3((unsigned)sl_cuda_divide_up(a.rows + 1, THREADS)), dim3(THREADS), 0, stream,
                   a.rows, a.blocks, (uint32_t)a.block_cols, a.row_ptr, (const Col *)a.col, a.value,
                   to);
}

form make_copy(struct sl_cusparse *c, const struct sl_cuda_part &part)
{
    const struct sl_sparse &a = part.a;
    const form to = {allocate<uint32_t>(c, (size_t)a.rows + 1),
                     allocate<uint32_t>(c, (size_t)part.nnz),
                     a.value ? allocate<float>(c, (size_t)part.nnz) : NULL};
    if (a.narrow)
        launch_join<uint16_t>(a, to, c->queue.stream);
    else
        launch_join<uint32_t>(a, to, c->queue.stream);
    return to;
}

float *ones(struct sl_cusparse *c, int64_t count)
{
    if (count > c->most_ones)
        sl_fatal("a tile of %lld entries for cuSPARSE, of at most %lld", (long long)count,
                 (long long)c->most_ones);
    if (!c->ones) {
        c->ones = allocate<float>(c, (size_t)c->most_ones);
        const struct sl_rows all = sl_float_rows(c->ones, c->most_ones);
        sl_cuda_fill(1, c->most_ones, 1.0f, &all, c->queue);
    }
    return c->ones;
}

/* Return the tile in the form that cuSPARSE takes: its own arrays, or a copy where these do not
 * suit. */
form form_of(struct sl_cusparse *c, const struct sl_cuda_part &part, int64_t key)
{
    form f = {(uint32_t *)part.a.row_ptr, (uint32_t *)part.a.col, (float *)part.a.value};
    if (part.a.narrow || part.a.blocks > 1) {
        const auto known = c->copies.find(key);
        f = known != c->copies.end() ? known->second
                                     : c->copies.emplace(key, make_copy(c, part)).first->second;
    }
    if (!f.value)
        f.value = ones(c, part.nnz);
    return f;
}

/* Describe a dense matrix to cuSPARSE. Return whether the descriptor is new. */
bool describe_dense(cusparseDnMatDescr_t *dense, int64_t *ld, int64_t rows, int64_t cols,
                    const sl_rows &at)
{
    if (*dense && *ld == at.ld) {
        check("cusparseDnMatSetValues", cusparseDnMatSetValues(*dense, at.data));
        return false;
    }
    if (*dense)
        check("cusparseDestroyDnMat", cusparseDestroyDnMat(*dense));
    *dense = nullptr;
    check("cusparseCreateDnMat",
          cusparseCreateDnMat(dense, rows, cols, at.ld, at.data, CUDA_R_32F, CUSPARSE_ORDER_ROW));
    *ld = at.ld;
    return true;
}

/* Let cuSPARSE prepare a product for a sparse matrix at its addresses. */
void prepare(struct sl_cusparse *c, product *p)
{
    if (!p->workspace) {
        size_t bytes = 0;
        check("cusparseSpMM_bufferSize",
              cusparseSpMM_bufferSize(c->handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                      CUSPARSE_OPERATION_NON_TRANSPOSE, &one, p->a, p->h, &zero,
                                      p->z, CUDA_R_32F, c->algorithm, &bytes));
        p->workspace = allocate<char>(c, bytes);
    }
    check("cusparseSpMM_preprocess",
          cusparseSpMM_preprocess(c->handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                  CUSPARSE_OPERATION_NON_TRANSPOSE, &one, p->a, p->h, &zero, p->z,
                                  CUDA_R_32F, c->algorithm, p->workspace));
    c->counts.preparations++;
}

bool same(const form &a, const form &b)
{
    return a.row_ptr == b.row_ptr && a.col == b.col && a.value == b.value;
}

product *product_of(struct sl_cusparse *c, const struct sl_cuda_part &part, int64_t key,
                    int64_t width, const sl_rows &z)
{
    const struct sl_sparse &a = part.a;
    const form now = form_of(c, part, key);
    product *p = &c->products[{key, width}];
    const bool other_h = describe_dense(&p->h, &p->ldh, a.cols, width, part.h[0].at);
    const bool other_z = describe_dense(&p->z, &p->ldz, a.rows, width, z);
    if (p->a && same(now, p->prepared) && !other_h && !other_z)
        return p;
    if (p->a)
        check("cusparseCsrSetPointers",
              cusparseCsrSetPointers(p->a, now.row_ptr, now.col, now.value));
    else
        check("cusparseCreateCsr",
              cusparseCreateCsr(&p->a, a.rows, a.cols, part.nnz, now.row_ptr, now.col, now.value,
                                CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                CUDA_R_32F));
    p->prepared = {};
    prepare(c, p);
    p->prepared = now;
    return p;
}

/* A task leaves by sl_fatal: its caller, in C, knows no exceptions. */
const product *find_product(struct sl_cusparse *c, const struct sl_cuda_part &part, int64_t key,
                            int64_t width, const sl_rows &z)
{
    try {
        return product_of(c, part, key, width, z);
    } catch (const std::bad_alloc &) {
    }
    sl_fatal("no memory for the products of cuSPARSE");
}

} // namespace

extern "C" struct sl_cusparse *sl_cusparse_create(struct sl_cuda_queue queue,
                                                  enum sl_cusparse_algorithm algorithm,
                                                  int64_t most_ones)
{
    static const cusparseSpMMAlg_t algorithms[] = {CUSPARSE_SPMM_ALG_DEFAULT,
                                                   CUSPARSE_SPMM_CSR_ALG2, CUSPARSE_SPMM_CSR_ALG3};
    struct sl_cusparse *c = new (std::nothrow) sl_cusparse();
    if (!c)
        sl_fatal("no memory for cuSPARSE");
    c->queue = queue;
    c->most_ones = most_ones;
    c->algorithm = algorithms[algorithm];
    check("cusparseCreate", cusparseCreate(&c->handle));
    check("cusparseSetStream", cusparseSetStream(c->handle, queue.stream));
    return c;
}

extern "C" void sl_cusparse_destroy(struct sl_cusparse *c)
{
    for (const auto &entry : c->products) {
        cusparseDestroySpMat(entry.second.a);
        cusparseDestroyDnMat(entry.second.h);
        cusparseDestroyDnMat(entry.second.z);
        cudaFree(entry.second.workspace);
    }
    for (const auto &entry : c->copies) {
        cudaFree(entry.second.row_ptr);
        cudaFree(entry.second.col);
        cudaFree(entry.second.value);
    }
    cudaFree(c->ones);
    cusparseDestroy(c->handle);
    delete c;
}

extern "C" void sl_cusparse_spmm(struct sl_cusparse *c, int64_t parts,
                                 const struct sl_cuda_part *part, const int64_t *key, int64_t width,
                                 bool accumulate, const struct sl_epilogue *epilogue,
                                 const struct sl_rows *z)
{
    const int64_t rows = part[0].a.rows;
    for (int64_t p = 0; p < parts; p++) {
        const product *next = find_product(c, part[p], key[p], width, *z);
        check("cusparseSpMM", cusparseSpMM(c->handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                           CUSPARSE_OPERATION_NON_TRANSPOSE, &one, next->a, next->h,
                                           accumulate || p > 0 ? &one : &zero, next->z, CUDA_R_32F,
                                           c->algorithm, next->workspace));
    }
    if (epilogue)
        sl_cuda_epilogue(rows, width, epilogue, z, z, c->queue);
}

extern "C" struct sl_cusparse_counts sl_cusparse_count(const struct sl_cusparse *c)
{
    return c->counts;
}
