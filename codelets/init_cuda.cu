#include "codelets/cuda.h"

namespace
{

struct uniform {
    float limit;
    uint64_t key;
    uint32_t row0, column0;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t) const
    {
        sl_cuda_vector<V> v;
#pragma unroll
        for (int i = 0; i < V; i++) {
            const double u = sl_rng_uniform(key, row0 + (uint32_t)r, column0 + (uint32_t)(j + i));
            v.at[i] = limit * (float)(2.0 * u - 1.0); /* 2u is exact: the same bits, fused or not */
        }
        return v;
    }
};

struct constant {
    float value;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t, int64_t, int64_t) const
    {
        sl_cuda_vector<V> v;
#pragma unroll
        for (int i = 0; i < V; i++)
            v.at[i] = value;
        return v;
    }
};

} // namespace

extern "C" void sl_cuda_glorot(int64_t rows, int64_t cols, float limit, uint64_t key, uint32_t row0,
                               uint32_t column0, float *w, int64_t ldw, cudaStream_t stream)
{
    sl_cuda_launch_each("glorot", rows, cols, sl_cuda_aligned(rows, w, ldw),
                        uniform{limit, key, row0, column0}, w, ldw, stream);
}

extern "C" void sl_cuda_fill(int64_t rows, int64_t cols, float value, float *w, int64_t ldw,
                             cudaStream_t stream)
{
    sl_cuda_flatten(&rows, &cols, ldw == cols);
    sl_cuda_launch_each("fill", rows, cols, sl_cuda_aligned(rows, w, ldw), constant{value}, w, ldw,
                        stream);
}

extern "C" void glorot_cuda(void *buffers[], void *argument)
{
    const glorot_argument *arg = (const glorot_argument *)argument;
    const sl_dense w = sl_dense_buffer(buffers[0]);
    const cudaStream_t stream = sl_cuda_task_stream();
    sl_cuda_glorot(arg->rows, w.cols, arg->limit, arg->key, 0, 0, w.data, w.ld, stream);
    sl_cuda_fill(w.rows - arg->rows, w.cols, 0.0f, w.data + arg->rows * w.ld, w.ld, stream);
}

extern "C" void fill_cuda(void *buffers[], void *argument)
{
    const sl_dense w = sl_dense_buffer(buffers[0]);
    sl_cuda_fill(w.rows, w.cols, *(const float *)argument, w.data, w.ld, sl_cuda_task_stream());
}
