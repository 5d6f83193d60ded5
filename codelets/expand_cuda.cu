/* A sparse tile as a dense one. */
#include "codelets/cuda.h"

namespace
{

enum { THREADS = 256 };

/* A warp has the rows w, w + warps, …: zeros, then the entries. */
__global__ void __launch_bounds__(THREADS)
    expand_kernel(struct sl_sparse a, struct sl_sparse_dropout drop, float *z, int64_t ldz)
{
    const int64_t warps = (int64_t)gridDim.x * (THREADS / 32);
    const int lane = threadIdx.x % 32;
    for (int64_t r = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32; r < a.rows; r += warps) {
        float *row = z + r * ldz;
        for (int64_t j = lane; j < a.cols; j += 32)
            row[j] = 0.0f;
        __syncwarp();
        for (uint32_t e = a.row_ptr[r] + (uint32_t)lane; e < a.row_ptr[r + 1]; e += 32) {
            const uint32_t column = a.col[e];
            float v = a.value ? a.value[e] : 1.0f;
            if (drop.drop.threshold)
                v *= sl_dropout_factor(&drop.drop, drop.row0 + (uint32_t)r, drop.col0 + column);
            row[column] = v;
        }
    }
}

} // namespace

extern "C" void sl_cuda_expand(const struct sl_sparse *a, const struct sl_sparse_dropout *drop,
                               float *z, int64_t ldz, cudaStream_t stream)
{
    if (a->rows == 0 || a->cols == 0)
        return;
    const struct sl_sparse_dropout none = {};
    const int64_t blocks = sl_cuda_divide_up(a->rows, THREADS / 32);
    expand_kernel<<<(unsigned)(blocks < 65535 ? blocks : 65535), THREADS, 0, stream>>>(
        *a, drop ? *drop : none, z, ldz);
    sl_cuda_check_launch("expand");
}

extern "C" void expand_cuda(void *buffers[], void *argument)
{
    const expand_argument *arg = (const expand_argument *)argument;
    const sl_cuda_dense z = sl_cuda_dense_buffer(buffers[1]);
    const struct sl_sparse a =
        sl_sparse_view(sl_cuda_raw_buffer(buffers[0]), z.rows, z.cols, arg->nnz, arg->has_values);
    sl_cuda_expand(&a, &arg->drop, z.data, z.ld, sl_cuda_task_stream());
}
