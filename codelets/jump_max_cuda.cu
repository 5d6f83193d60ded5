#include "codelets/cuda.h"

extern "C" {
#include "codelets/jump_max.h"
}

namespace
{

struct meeting {
    int32_t number;
    const float *factor;
    sl_rows x, m;
    int32_t *argmax;
    int64_t ldc;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        const float by = factor ? factor[r] : 1.0f;
        const sl_cuda_vector<V> a = sl_cuda_load<V>(x, r, j, count, true);
        sl_cuda_vector<V> b = sl_cuda_load<V>(m, r, j, number ? count : 0, true);
        int32_t *names = argmax + r * ldc + j;
#pragma unroll
        for (int i = 0; i < V; i++) {
            const float scaled = by * a.at[i];
            const float value = m.type == SL_BFLOAT16 ? float(__nv_bfloat16(scaled)) : scaled;
            const bool wins = number == 0 || value > b.at[i] || value != value;
            b.at[i] = wins ? value : b.at[i];
            if (wins && i < count)
                names[i] = number;
        }
        return b;
    }
};

struct selection {
    int32_t number;
    sl_rows g;
    const int32_t *argmax;
    int64_t ldc;
    bool accumulate;
    const float *d;
    int64_t ldd;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        const sl_cuda_vector<V> a = sl_cuda_load<V>(g, r, j, count, true);
        sl_cuda_vector<V> b = sl_cuda_load<V>(d + r * ldd + j, accumulate ? count : 0);
        const int32_t *names = argmax + r * ldc + j;
#pragma unroll
        for (int i = 0; i < V; i++)
            b.at[i] += i < count && names[i] == number ? a.at[i] : 0.0f;
        return b;
    }
};

} // namespace

extern "C" void sl_cuda_jump_max(int64_t rows, int64_t cols, int32_t number, const float *factor,
                                 const struct sl_rows *x, const struct sl_rows *m, int32_t *argmax,
                                 int64_t ldc, struct sl_cuda_queue queue)
{
    const bool aligned = sl_cuda_aligned(rows, *x) && sl_cuda_aligned(rows, *m);
    const meeting meet = {number, factor, *x, *m, argmax, ldc};
    if (m->type == SL_BFLOAT16)
        sl_cuda_launch_each("jump_max", rows, cols, aligned, meet, (__nv_bfloat16 *)m->data, m->ld,
                            queue.stream);
    else
        sl_cuda_launch_each("jump_max", rows, cols, aligned, meet, (float *)m->data, m->ld,
                            queue.stream);
}

extern "C" void sl_cuda_jump_max_back(int64_t rows, int64_t cols, int32_t number,
                                      const struct sl_rows *g, const int32_t *argmax, int64_t ldc,
                                      bool accumulate, float *d, int64_t ldd,
                                      struct sl_cuda_queue queue)
{
    const bool aligned = sl_cuda_aligned(rows, *g) && sl_cuda_aligned(rows, d, ldd);
    const selection select = {number, *g, argmax, ldc, accumulate, d, ldd};
    sl_cuda_launch_each("jump_max_back", rows, cols, aligned, select, d, ldd, queue.stream);
}

extern "C" void jump_max_cuda(void *buffers[], void *argument)
{
    const jump_max_argument *arg = (const jump_max_argument *)argument;
    void **last = buffers + (arg->factor != SL_ROW_NONE);
    const sl_rows x = sl_rows_buffer(last[0]), m = sl_rows_buffer(last[2]);
    sl_cuda_jump_max(STARPU_MATRIX_GET_NY(last[0]), STARPU_MATRIX_GET_NX(last[0]), arg->number,
                     last > buffers ? sl_row_scale(buffers[0], arg->factor) : nullptr, &x, &m,
                     (int32_t *)sl_raw_buffer(last[1]), sl_dense_buffer(last[1]).ld,
                     sl_cuda_task_queue());
}

extern "C" void jump_max_back_cuda(void *buffers[], void *argument)
{
    const jump_max_argument *arg = (const jump_max_argument *)argument;
    const sl_rows g = sl_rows_buffer(buffers[0]);
    const sl_dense d = sl_dense_buffer(buffers[2]);
    sl_cuda_jump_max_back(
        d.rows, d.cols, arg->number, &g, (const int32_t *)sl_raw_buffer(buffers[1]),
        sl_dense_buffer(buffers[1]).ld, arg->accumulate, d.data, d.ld, sl_cuda_task_queue());
}
