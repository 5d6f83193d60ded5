#include "codelets/cuda.h"

extern "C" {
#include "codelets/init.h"
}

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
            v.at[i] =
                limit * (float)(2.0 * u - 1.0); /* 2u is exact, so fusing does not change bits */
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
                               uint32_t column0, const struct sl_rows *w,
                               struct sl_cuda_queue queue)
{
    sl_cuda_launch_each("glorot", rows, cols, sl_cuda_aligned(rows, *w),
                        uniform{limit, key, row0, column0}, (float *)w->data, w->ld, queue.stream);
}

extern "C" void sl_cuda_fill(int64_t rows, int64_t cols, float value, const struct sl_rows *w,
                             struct sl_cuda_queue queue)
{
    sl_cuda_flatten(&rows, &cols, w->ld == cols);
    const bool aligned = sl_cuda_aligned(rows, *w);
    if (w->type == SL_BFLOAT16)
        sl_cuda_launch_each("fill", rows, cols, aligned, constant{value}, (__nv_bfloat16 *)w->data,
                            w->ld, queue.stream);
    else
        sl_cuda_launch_each("fill", rows, cols, aligned, constant{value}, (float *)w->data, w->ld,
                            queue.stream);
}

extern "C" void glorot_cuda(void *buffers[], void *argument)
{
    const sl_glorot *arg = (const sl_glorot *)argument;
    const sl_dense w = sl_dense_buffer(buffers[0]);
    const struct sl_cuda_queue queue = sl_cuda_task_queue();
    for (int64_t p = 0, at = 0, from, to; p <= SL_GLOROT_PARTS; p++) {
        sl_glorot_rows(arg, (int)p, w.rows, &at, &from, &to);
        const float limit = p < SL_GLOROT_PARTS ? arg->part[p].limit : 0.0f;
        const sl_rows all = sl_float_rows(w.data, w.ld), rows = sl_rows_at(&all, from, 0);
        if (limit > 0.0f)
            sl_cuda_glorot(to - from, w.cols, limit, arg->key, (uint32_t)(arg->first + from), 0,
                           &rows, queue);
        else
            sl_cuda_fill(to - from, w.cols, 0.0f, &rows, queue);
    }
}

extern "C" void fill_cuda(void *buffers[], void *argument)
{
    const fill_argument *arg = (const fill_argument *)argument;
    const sl_rows w = sl_rows_buffer(buffers[0]);
    sl_cuda_fill(arg->rows, STARPU_MATRIX_GET_NX(buffers[0]), arg->value, &w, sl_cuda_task_queue());
}
