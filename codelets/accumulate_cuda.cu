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

struct scaled_sum {
    float scale;
    const float *factor;
    sl_rows x, y;

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const
    {
        const float by = factor ? scale * factor[r] : scale;
        const sl_cuda_vector<V> a = sl_cuda_load<V>(x, r, j, count, true);
        sl_cuda_vector<V> b = sl_cuda_load<V>(y, r, j, count, true);
#pragma unroll
        for (int i = 0; i < V; i++)
            b.at[i] = fmaf(by, a.at[i], b.at[i]);
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

extern "C" void sl_cuda_add_scaled(int64_t rows, int64_t cols, float scale, const float *factor,
                                   const struct sl_rows *x, const struct sl_rows *y,
                                   struct sl_cuda_queue queue)
{
    const bool aligned = sl_cuda_aligned(rows, *x) && sl_cuda_aligned(rows, *y);
    const scaled_sum sum = {scale, factor, *x, *y};
    if (y->type == SL_BFLOAT16)
        sl_cuda_launch_each("add_scaled", rows, cols, aligned, sum, (__nv_bfloat16 *)y->data, y->ld,
                            queue.stream);
    else
        sl_cuda_launch_each("add_scaled", rows, cols, aligned, sum, (float *)y->data, y->ld,
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

extern "C" void add_scaled_cuda(void *buffers[], void *argument)
{
    const add_scaled_argument *arg = (const add_scaled_argument *)argument;
    const int first = arg->factor != SL_ROW_NONE;
    const sl_rows x = sl_rows_buffer(buffers[first]), y = sl_rows_buffer(buffers[first + 1]);
    sl_cuda_add_scaled(STARPU_MATRIX_GET_NY(buffers[first]), STARPU_MATRIX_GET_NX(buffers[first]),
                       arg->scale, first ? sl_row_scale(buffers[0], arg->factor) : nullptr, &x, &y,
                       sl_cuda_task_queue());
}

extern "C" void metrics_add_cuda(void *buffers[], void *)
{
    const sl_dense y = sl_dense_buffer(buffers[1]);
    sl_cuda_metrics_add((int)(y.rows * y.cols), (const double *)sl_raw_buffer(buffers[0]),
                        (double *)sl_raw_buffer(buffers[1]), sl_cuda_task_queue());
}
