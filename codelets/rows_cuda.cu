/* Operations on whole rows: scaling, gathering, scattering. */
#include "codelets/cuda_scatter.h"

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

struct gathered {
    const uint32_t *index;
    const float *x;
    int64_t ldx;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        return sl_cuda_load<V>(x + index[r] * ldx + j, count);
    }
};

/* One entry per row: its index, with the value 1. */
struct indexed {
    const uint32_t *index;

    __device__ void find(int64_t r, uint32_t from, uint32_t to, uint32_t *begin,
                         uint32_t *end) const
    {
        const uint32_t target = index[r];
        *begin = (uint32_t)r;
        *end = (uint32_t)r + (target >= from && target < to);
    }

    __device__ uint32_t target(uint32_t e) const
    {
        return index[e];
    }

    __device__ float value(int64_t, uint32_t) const
    {
        return 1.0f;
    }
};

} // namespace

extern "C" void sl_cuda_scale_rows(int64_t rows, int64_t cols, const float *s, const float *x,
                                   int64_t ldx, float *y, int64_t ldy, cudaStream_t stream)
{
    const bool aligned = sl_cuda_aligned(rows, x, ldx) && sl_cuda_aligned(rows, y, ldy);
    sl_cuda_launch_each("scale_rows", rows, cols, aligned, scaled{s, x, ldx}, y, ldy, stream);
}

extern "C" void sl_cuda_gather_rows(int64_t count, int64_t cols, const uint32_t *index,
                                    const float *x, int64_t ldx, float *y, int64_t ldy,
                                    cudaStream_t stream)
{
    const bool aligned = sl_cuda_aligned(2, x, ldx) && sl_cuda_aligned(count, y, ldy);
    sl_cuda_launch_each("gather_rows", count, cols, aligned, gathered{index, x, ldx}, y, ldy,
                        stream);
}

extern "C" void sl_cuda_scatter_rows(int64_t count, int64_t cols, const uint32_t *index,
                                     const float *x, int64_t ldx, int64_t y_rows, float *y,
                                     int64_t ldy, cudaStream_t stream)
{
    if (count == 0)
        return;
    const sl_scatter p = {count, y_rows, cols, x, ldx, y, ldy, 0, true};
    sl_scatter_launch("scatter_rows", p, indexed{index}, stream);
}

extern "C" void scale_rows_cuda(void *buffers[], void *)
{
    const sl_dense s = sl_dense_buffer(buffers[0]), x = sl_dense_buffer(buffers[1]),
                   y = sl_dense_buffer(buffers[2]);
    sl_cuda_scale_rows(y.rows, y.cols, s.data, x.data, x.ld, y.data, y.ld, sl_cuda_task_stream());
}

extern "C" void gather_rows_cuda(void *buffers[], void *)
{
    const sl_dense x = sl_dense_buffer(buffers[1]), y = sl_dense_buffer(buffers[2]);
    sl_cuda_gather_rows(y.rows, y.cols, (const uint32_t *)sl_raw_buffer(buffers[0]), x.data, x.ld,
                        y.data, y.ld, sl_cuda_task_stream());
}

extern "C" void scatter_rows_cuda(void *buffers[], void *)
{
    const sl_dense x = sl_dense_buffer(buffers[1]), y = sl_dense_buffer(buffers[2]);
    sl_cuda_scatter_rows(x.rows, x.cols, (const uint32_t *)sl_raw_buffer(buffers[0]), x.data, x.ld,
                         y.rows, y.data, y.ld, sl_cuda_task_stream());
}
