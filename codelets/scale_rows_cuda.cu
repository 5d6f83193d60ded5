/* Rows times numbers. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/scale_rows.h"
}

namespace
{

struct scaled {
    const float *s, *x;
    int64_t ldx;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        sl_cuda_vector<V> v = sl_cuda_load<V>(x + r * ldx + j, count);
        const float factor = s[r];
#pragma unroll
        for (int i = 0; i < V; i++)
            v.at[i] *= factor;
        return v;
    }
};

} // namespace

extern "C" void sl_cuda_scale_rows(int64_t rows, int64_t cols, const float *s, const float *x,
                                   int64_t ldx, float *y, int64_t ldy, struct sl_cuda_queue queue)
{
    const bool aligned = sl_cuda_aligned(rows, x, ldx) && sl_cuda_aligned(rows, y, ldy);
    sl_cuda_launch_each("scale_rows", rows, cols, aligned, scaled{s, x, ldx}, y, ldy, queue.stream);
}

extern "C" void scale_rows_cuda(void *buffers[], void *)
{
    const sl_dense s = sl_dense_buffer(buffers[0]), x = sl_dense_buffer(buffers[1]),
                   y = sl_dense_buffer(buffers[2]);
    sl_cuda_scale_rows(y.rows, y.cols, s.data, x.data, x.ld, y.data, y.ld, sl_cuda_task_queue());
}
