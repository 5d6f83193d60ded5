/* Copies of a sparse tile into a dense one. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/expand.h"
}

namespace
{

enum { THREADS = 256 };

/* Expand rows. A warp has the rows w, w + warps, …; it writes zeros, then the entries of one block
 * after the other. */
template <class T>
__global__ void __launch_bounds__(THREADS) expand_kernel(struct sl_sparse x, struct sl_dropout drop,
                                                         const uint32_t *vertex, T *z, int64_t ldz)
{
    const int64_t warps = (int64_t)gridDim.x * (THREADS / 32);
    const int lane = threadIdx.x % 32;
    for (int64_t r = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32; r < x.rows; r += warps) {
        T *row = z + r * ldz;
        for (int64_t j = lane; j < x.cols; j += 32)
            row[j] = T(0.0f);
        __syncwarp();
        for (int64_t b = 0; b < x.blocks; b++) {
            const uint32_t *range = x.row_ptr + b * x.rows + r;
            for (uint32_t e = range[0] + (uint32_t)lane; e < range[1]; e += 32) {
                const uint32_t column =
                    (uint32_t)(b * x.block_cols) + sl_cuda_sparse_col(x.col, x.narrow, e);
                float v = x.value ? x.value[e] : 1.0f;
                if (drop.threshold)
                    v *= sl_dropout_factor(&drop, vertex[r], column);
                row[column] = T(v);
            }
        }
    }
}

template <class T>
void launch(const sl_sparse &x, const sl_dropout &drop, const uint32_t *vertex, const sl_rows &z,
            cudaStream_t stream)
{
    const int64_t blocks = sl_cuda_divide_up(x.rows, THREADS / 32);
    sl_cuda_launch("expand", expand_kernel<T>, (unsigned)(blocks < 65535 ? blocks : 65535), THREADS,
                   0, stream, x, drop, vertex, (T *)z.data, z.ld);
}

} // namespace

extern "C" void sl_cuda_expand(const struct sl_sparse *x, const struct sl_dropout *drop,
                               const uint32_t *vertex, const struct sl_rows *z,
                               struct sl_cuda_queue queue)
{
    const struct sl_dropout none = {};
    if (x->rows == 0 || x->cols == 0)
        return;
    if (z->type == SL_BFLOAT16)
        launch<__nv_bfloat16>(*x, drop ? *drop : none, vertex, *z, queue.stream);
    else
        launch<float>(*x, drop ? *drop : none, vertex, *z, queue.stream);
}

extern "C" void expand_cuda(void *buffers[], void *argument)
{
    const expand_argument *arg = (const expand_argument *)argument;
    const sl_rows z = sl_rows_buffer(buffers[2]);
    const struct sl_sparse x = sl_sparse_view(sl_raw_buffer(buffers[1]), &arg->shape);
    sl_cuda_expand(&x, &arg->drop, sl_vertices(buffers[0]), &z, sl_cuda_task_queue());
}
