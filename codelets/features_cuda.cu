/* Products with sparse features, whose values may be dropped out, and with their transpose. */
#include "codelets/cuda_gather.h"
#include "codelets/cuda_scatter.h"

extern "C" {
#include "codelets/features.h"
#include "codelets/spmm.h"
}

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
    uint32_t column0; /* first column of the block */

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

/* Make Z = [Z +] Xᵀ·H, for the rows of Z that belong to one block after the other. */
void scatter(const sl_features &f, const sl_dropout &drop, cudaStream_t stream)
{
    const struct sl_sparse *x = f.x;
    for (int64_t b = 0; b < x->blocks; b++) {
        const int64_t first = b * x->block_cols, left = x->cols - first;
        const sl_scatter p = {x->rows,
                              left < x->block_cols ? left : x->block_cols,
                              f.width,
                              f.h,
                              (float *)f.z.data + first * f.z.ld,
                              f.z.ld,
                              0,
                              f.accumulate};
        sl_scatter_launch("features, transposed", p,
                          columns{x->row_ptr + b * x->rows, x->col, x->narrow, x->value, drop,
                                  f.vertex, (uint32_t)first},
                          stream);
    }
}

/* Make Z = [Z +] X·H, with X dropped out. */
void gather(const sl_features &f, const sl_dropout &drop, cudaStream_t stream)
{
    const struct sl_cuda_rows rows = {f.h, f.x->cols};
    sl_cuda_gather g = {};
    g.rows = f.x->rows;
    g.width = (int)f.width;
    g.z = f.z;
    if (f.accumulate)
        g.sum = g.z;
    g.aligned = sl_cuda_aligned(f.x->rows, g.z);
    g.drop = drop;
    g.vertex = f.vertex;
    sl_cuda_gather_add(&g, f.x, 0, 1, &rows);
    sl_cuda_gather_launch<float, false, true>("features", g, f.nnz, f.x->blocks, stream);
}

} // namespace

extern "C" void sl_cuda_features(const struct sl_features *f, struct sl_cuda_queue queue)
{
    const sl_dropout none = {0, 0, 1.0f, 0}, drop = f->drop ? *f->drop : none;
    if (f->width == 0)
        return;
    if (f->transposed) {
        scatter(*f, drop, queue.stream);
    } else if (f->x->rows > 0 && drop.threshold) {
        gather(*f, drop, queue.stream);
    } else if (f->x->rows > 0) {
        const struct sl_cuda_rows rows = {f->h, f->x->cols};
        const struct sl_cuda_part part = {*f->x, f->nnz, 1, &rows};
        sl_cuda_spmm(1, &part, f->width, f->accumulate, NULL, NULL, &f->z, queue);
    }
}

/* Run a features task. Z may have rows behind the product: the last row of a gradient is the
 * bias's, which bias_gradient writes afterwards. Until then its contents on this device are
 * undefined. */
extern "C" void features_cuda(void *buffers[], void *argument)
{
    struct sl_sparse x;
    const struct sl_features features =
        sl_features_of_task((const features_argument *)argument, buffers, &x);
    sl_cuda_features(&features, sl_cuda_task_queue());
}
