#include "codelets/cuda.h"

namespace
{

struct dropped {
    sl_dropout drop;
    uint32_t vertex0, column0;
    const float *x;
    int64_t ldx;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        sl_cuda_vector<V> v = sl_cuda_load<V>(x + r * ldx + j, count);
        const uint32_t vertex = vertex0 + (uint32_t)r, column = column0 + (uint32_t)j;
        if (V == 4 && column % 4 == 0) { /* one draw has the words of four columns */
            uint32_t low, high;
            sl_rng_block(drop.key, vertex, column / 4, &low, &high);
            const uint32_t word[4] = {low & 0xFFFF, low >> 16, high & 0xFFFF, high >> 16};
#pragma unroll
            for (int i = 0; i < V; i++)
                v.at[i] *= word[i] >= drop.threshold ? drop.scale : 0.0f;
        } else {
#pragma unroll
            for (int i = 0; i < V; i++)
                v.at[i] *= sl_dropout_factor(&drop, vertex, column + (uint32_t)i);
        }
        return v;
    }
};

} // namespace

extern "C" void sl_cuda_dropout(int64_t rows, int64_t cols, const struct sl_dropout *drop,
                                uint32_t vertex0, uint32_t column0, const float *x, int64_t ldx,
                                float *y, int64_t ldy, cudaStream_t stream)
{
    const bool aligned = sl_cuda_aligned(rows, x, ldx) && sl_cuda_aligned(rows, y, ldy);
    sl_cuda_launch_each("dropout", rows, cols, aligned, dropped{*drop, vertex0, column0, x, ldx}, y,
                        ldy, stream);
}

extern "C" void dropout_cuda(void *buffers[], void *argument)
{
    const dropout_argument *arg = (const dropout_argument *)argument;
    const sl_cuda_dense x = sl_cuda_dense_buffer(buffers[0]), y = sl_cuda_dense_buffer(buffers[1]);
    sl_cuda_dropout(y.rows, y.cols, &arg->drop, arg->vertex0, arg->column0, x.data, x.ld, y.data,
                    y.ld, sl_cuda_task_stream());
}

extern "C" void dropout_inplace_cuda(void *buffers[], void *argument)
{
    const dropout_argument *arg = (const dropout_argument *)argument;
    const sl_cuda_dense z = sl_cuda_dense_buffer(buffers[0]);
    sl_cuda_dropout(z.rows, z.cols, &arg->drop, arg->vertex0, arg->column0, z.data, z.ld, z.data,
                    z.ld, sl_cuda_task_stream());
}
