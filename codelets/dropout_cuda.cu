#include "codelets/cuda.h"

namespace
{

struct dropped {
    sl_dropout drop;
    const uint32_t *vertex;
    uint32_t column0;
    const float *x;
    int64_t ldx;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        sl_cuda_vector<V> v = sl_cuda_load<V>(x + r * ldx + j, count);
        sl_cuda_drop<V>(drop, vertex[r], column0 + (uint32_t)j, &v);
        return v;
    }
};

} // namespace

extern "C" void sl_cuda_dropout(int64_t rows, int64_t cols, const struct sl_dropout *drop,
                                const uint32_t *vertex, uint32_t column0, const float *x,
                                int64_t ldx, float *y, int64_t ldy, cudaStream_t stream)
{
    const bool aligned = sl_cuda_aligned(rows, x, ldx) && sl_cuda_aligned(rows, y, ldy);
    sl_cuda_launch_each("dropout", rows, cols, aligned, dropped{*drop, vertex, column0, x, ldx}, y,
                        ldy, stream);
}

extern "C" void dropout_cuda(void *buffers[], void *argument)
{
    const dropout_argument *arg = (const dropout_argument *)argument;
    const sl_dense x = sl_dense_buffer(buffers[1]), y = sl_dense_buffer(buffers[2]);
    sl_cuda_dropout(y.rows, y.cols, &arg->drop, sl_vertices(buffers[0]), arg->column0, x.data, x.ld,
                    y.data, y.ld, sl_cuda_task_stream());
}
