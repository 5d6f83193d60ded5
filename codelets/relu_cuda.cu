#include "codelets/cuda.h"

extern "C" {
#include "codelets/relu.h"
}

namespace
{

struct positive {
    const float *z;
    int64_t ldz;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        sl_cuda_vector<V> v = sl_cuda_load<V>(z + r * ldz + j, count);
#pragma unroll
        for (int i = 0; i < V; i++)
            v.at[i] = v.at[i] < 0.0f ? 0.0f : v.at[i]; /* NaN < 0 is false: it stays */
        return v;
    }
};

struct where_positive {
    float scale;
    const float *h, *g;
    int64_t ldh, ldg;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        const sl_cuda_vector<V> on = sl_cuda_load<V>(h + r * ldh + j, count);
        sl_cuda_vector<V> v = sl_cuda_load<V>(g + r * ldg + j, count);
#pragma unroll
        for (int i = 0; i < V; i++)
            v.at[i] = on.at[i] > 0.0f ? scale * v.at[i] : 0.0f;
        return v;
    }
};

} // namespace

extern "C" void sl_cuda_relu(int64_t rows, int64_t cols, float *z, int64_t ldz,
                             struct sl_cuda_queue queue)
{
    sl_cuda_flatten(&rows, &cols, ldz == cols);
    sl_cuda_launch_each("relu", rows, cols, sl_cuda_aligned(rows, z, ldz), positive{z, ldz}, z, ldz,
                        queue.stream);
}

extern "C" void sl_cuda_relu_backward(int64_t rows, int64_t cols, float scale, const float *h,
                                      int64_t ldh, float *g, int64_t ldg,
                                      struct sl_cuda_queue queue)
{
    sl_cuda_flatten(&rows, &cols, ldh == cols && ldg == cols);
    const bool aligned = sl_cuda_aligned(rows, h, ldh) && sl_cuda_aligned(rows, g, ldg);
    sl_cuda_launch_each("relu_backward", rows, cols, aligned, where_positive{scale, h, g, ldh, ldg},
                        g, ldg, queue.stream);
}

extern "C" void relu_cuda(void *buffers[], void *)
{
    const sl_dense z = sl_dense_buffer(buffers[0]);
    sl_cuda_relu(z.rows, z.cols, z.data, z.ld, sl_cuda_task_queue());
}

extern "C" void relu_backward_cuda(void *buffers[], void *argument)
{
    const sl_dense h = sl_dense_buffer(buffers[0]), g = sl_dense_buffer(buffers[1]);
    sl_cuda_relu_backward(g.rows, g.cols, *(const float *)argument, h.data, h.ld, g.data, g.ld,
                          sl_cuda_task_queue());
}
