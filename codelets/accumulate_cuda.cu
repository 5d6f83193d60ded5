#include "codelets/cuda.h"

extern "C" {
#include "codelets/accumulate.h"
}

namespace
{

struct sum {
    const float *x, *y;
    int64_t ldx, ldy;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        const sl_cuda_vector<V> a = sl_cuda_load<V>(x + r * ldx + j, count);
        sl_cuda_vector<V> b = sl_cuda_load<V>(y + r * ldy + j, count);
#pragma unroll
        for (int i = 0; i < V; i++)
            b.at[i] += a.at[i];
        return b;
    }
};

__global__ void add_doubles(int count, const double *x, double *y)
{
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
        y[i] += x[i];
}

} // namespace

extern "C" void sl_cuda_accumulate(int64_t rows, int64_t cols, const float *x, int64_t ldx,
                                   float *y, int64_t ldy, struct sl_cuda_queue queue)
{
    sl_cuda_flatten(&rows, &cols, ldx == cols && ldy == cols);
    const bool aligned = sl_cuda_aligned(rows, x, ldx) && sl_cuda_aligned(rows, y, ldy);
    sl_cuda_launch_each("accumulate", rows, cols, aligned, sum{x, y, ldx, ldy}, y, ldy,
                        queue.stream);
}

extern "C" void sl_cuda_metrics_add(int count, const double *x, double *y,
                                    struct sl_cuda_queue queue)
{
    sl_cuda_launch("metrics_add", add_doubles, 1, 32, 0, queue.stream, count, x, y);
}

extern "C" void accumulate_cuda(void *buffers[], void *)
{
    const sl_dense x = sl_dense_buffer(buffers[0]), y = sl_dense_buffer(buffers[1]);
    sl_cuda_accumulate(y.rows, y.cols, x.data, x.ld, y.data, y.ld, sl_cuda_task_queue());
}

extern "C" void metrics_add_cuda(void *buffers[], void *)
{
    const sl_dense y = sl_dense_buffer(buffers[1]);
    sl_cuda_metrics_add((int)(y.rows * y.cols), (const double *)sl_raw_buffer(buffers[0]),
                        (double *)sl_raw_buffer(buffers[1]), sl_cuda_task_queue());
}
