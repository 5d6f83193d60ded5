/* Only the copy has a CUDA twin: what leaves the task graph belongs to the host. */
#include "codelets/cuda.h"

namespace
{

struct same {
    const float *x;
    int64_t ldx;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        return sl_cuda_load<V>(x + r * ldx + j, count);
    }
};

} // namespace

extern "C" void sl_cuda_copy(int64_t rows, int64_t cols, const float *x, int64_t ldx, float *y,
                             int64_t ldy, cudaStream_t stream)
{
    sl_cuda_flatten(&rows, &cols, ldx == cols && ldy == cols);
    const bool aligned = sl_cuda_aligned(rows, x, ldx) && sl_cuda_aligned(rows, y, ldy);
    sl_cuda_launch_each("copy", rows, cols, aligned, same{x, ldx}, y, ldy, stream);
}

extern "C" void copy_cuda(void *buffers[], void *)
{
    const sl_dense x = sl_dense_buffer(buffers[0]), y = sl_dense_buffer(buffers[1]);
    sl_cuda_copy(x.rows, x.cols, x.data, x.ld, y.data, y.ld, sl_cuda_task_stream());
}
