/* Products with sparse features, whose values may be dropped out, and with their transpose. */
#include "codelets/cuda_gather.h"
#include "codelets/cuda_scatter.h"

namespace
{

/* The entries of one block, to be scattered: the target of an entry is its column. */
struct columns {
    const uint32_t *row_ptr;
    const void *col;
    bool narrow;
    const float *values; /* NULL: all 1 */
    sl_dropout drop;
    const uint32_t *vertex;
    uint32_t column0; /* of the block */

    __device__ void find(int64_t r, uint32_t from, uint32_t to, uint32_t *begin,
                         uint32_t *end) const
    {
        const uint32_t row_end = row_ptr[r + 1];
        *begin = sl_cuda_lower_bound(col, narrow, row_ptr[r], row_end, from);
        *end = sl_cuda_lower_bound(col, narrow, *begin, row_end, to);
    }

    __device__ uint32_t target(uint32_t e) const
    {
        return sl_cuda_sparse_col(col, narrow, e);
    }

    __device__ float value(int64_t r, uint32_t e) const
    {
        const float v = values ? __ldg(values + e) : 1.0f;
        return drop.threshold ? v * sl_dropout_factor(&drop, vertex[r], column0 + target(e)) : v;
    }
};

/* Z = [Z +] Xᵀ·H: the rows of Z that belong to one block after the other. */
void scatter(const struct sl_sparse *x, const sl_dropout &drop, const uint32_t *vertex,
             int64_t width, const float *h, int64_t ldh, bool accumulate, float *z, int64_t ldz,
             cudaStream_t stream)
{
    for (int64_t b = 0; b < x->blocks; b++) {
        const int64_t first = b * x->block_cols, left = x->cols - first;
        const sl_scatter p = {x->rows,   left < x->block_cols ? left : x->block_cols,
                              width,     h,
                              ldh,       z + first * ldz,
                              ldz,       0,
                              accumulate};
        sl_scatter_launch("features, transposed", p,
                          columns{x->row_ptr + b * x->rows, x->col, x->narrow, x->value, drop,
                                  vertex, (uint32_t)first},
                          stream);
    }
}

/* Z = [Z +] X·H. */
void gather(const struct sl_sparse *x, int64_t nnz, const sl_dropout &drop, const uint32_t *vertex,
            int64_t width, const float *h, int64_t ldh, bool accumulate, float *z, int64_t ldz,
            cudaStream_t stream)
{
    const struct sl_cuda_rows rows = {sl_float_rows(h, ldh), x->cols};
    sl_cuda_gather g = {};
    g.rows = x->rows;
    g.width = (int)width;
    g.z = sl_float_rows(z, ldz);
    if (accumulate)
        g.sum = g.z;
    g.aligned = sl_cuda_aligned(x->rows, g.z);
    g.drop = drop;
    g.vertex = vertex;
    sl_cuda_gather_add(&g, x, 0, 1, &rows);
    sl_cuda_gather_launch<float, false, true>("features", g, nnz, x->blocks, stream);
}

} // namespace

extern "C" void sl_cuda_features(bool transposed, const struct sl_sparse *x, int64_t nnz,
                                 const struct sl_dropout *drop, const uint32_t *vertex,
                                 int64_t width, const float *h, int64_t ldh, bool accumulate,
                                 float *z, int64_t ldz, cudaStream_t stream)
{
    const sl_dropout none = {0, 0, 1.0f, 0}, dropped = drop ? *drop : none;
    if (width == 0)
        return;
    if (transposed) {
        scatter(x, dropped, vertex, width, h, ldh, accumulate, z, ldz, stream);
    } else if (x->rows > 0 && dropped.threshold) {
        gather(x, nnz, dropped, vertex, width, h, ldh, accumulate, z, ldz, stream);
    } else if (x->rows > 0) {
        const struct sl_cuda_rows rows = {sl_float_rows(h, ldh), x->cols};
        const struct sl_cuda_part part = {*x, nnz, 1, &rows};
        const struct sl_rows out = sl_float_rows(z, ldz);
        sl_cuda_spmm(1, &part, width, accumulate, NULL, NULL, 0, &out, stream);
    }
}

/* Z may have rows after those of Xᵀ·H: a gradient's last one is the bias's, which bias_gradient
 * writes afterwards. StarPU's copy of it on this device holds anything until then. */
extern "C" void features_cuda(void *buffers[], void *argument)
{
    const features_argument *arg = (const features_argument *)argument;
    const struct sl_sparse x = sl_sparse_view(sl_raw_buffer(buffers[1]), &arg->shape);
    const sl_dense h = sl_dense_buffer(buffers[2]), z = sl_dense_buffer(buffers[3]);
    sl_cuda_features(arg->transposed, &x, arg->shape.nnz, &arg->drop, sl_vertices(buffers[0]),
                     z.cols, h.data + arg->h_row * h.ld + arg->h_col, h.ld, false, z.data, z.ld,
                     sl_cuda_task_stream());
}
