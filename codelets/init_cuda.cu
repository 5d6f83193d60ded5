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
    const int64_t edges = sl_glorot_row(arg, arg->rows, w.rows),
                  others = sl_glorot_row(arg, arg->rows + arg->edges, w.rows),
                  rest = sl_glorot_row(arg, arg->rows + arg->edges + arg->others, w.rows);
    const sl_rows first = sl_float_rows(w.data, w.ld), second = sl_rows_at(&first, edges, 0),
                  next = sl_rows_at(&first, others, 0), last = sl_rows_at(&first, rest, 0);
    const struct sl_cuda_queue queue = sl_cuda_task_queue();
    sl_cuda_glorot(edges, w.cols, arg->limit, arg->key, (uint32_t)arg->first, 0, &first, queue);
    sl_cuda_glorot(others - edges, w.cols, arg->edges_limit, arg->key,
                   (uint32_t)(arg->first + edges), 0, &second, queue);
    sl_cuda_glorot(rest - others, w.cols, arg->others_limit, arg->key,
                   (uint32_t)(arg->first + others), 0, &next, queue);
    sl_cuda_fill(w.rows - rest, w.cols, 0.0f, &last, queue);
}

extern "C" void fill_cuda(void *buffers[], void *argument)
{
    const fill_argument *arg = (const fill_argument *)argument;
    const sl_rows w = sl_rows_buffer(buffers[0]);
    sl_cuda_fill(arg->rows, STARPU_MATRIX_GET_NX(buffers[0]), arg->value, &w, sl_cuda_task_queue());
}
