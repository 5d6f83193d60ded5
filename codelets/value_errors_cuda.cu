/* Errors of predicted numbers: a block for each column, so that the order of additions is fixed. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/value_errors.h"
}

namespace
{

enum { THREADS = 128 };

/* Add the threads' sums: lanes by a tree, then warps in order. All threads get the totals. */
template <int N> __device__ __forceinline__ void sum_block(double (&own)[N])
{
    auto &part = sl_cuda_shared<double[THREADS / 32][N]>();
    __syncthreads(); /* all threads have read earlier totals */
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            own[i] += __shfl_xor_sync(0xFFFFFFFFu, own[i], distance);
    if (threadIdx.x % 32 == 0) {
#pragma unroll
        for (int i = 0; i < N; i++)
            part[threadIdx.x / 32][i] = own[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; i++) {
        own[i] = 0.0;
        for (int w = 0; w < THREADS / 32; w++)
            own[i] += part[w][i];
    }
}

/* Return the split of row r, and set *y to its value in column j; -1 if the value is not known. */
__device__ __forceinline__ int known_value(const sl_value_errors &e, int64_t width, int64_t r,
                                           int64_t j, double *y)
{
    const int32_t *const target = e.target + r * width;
    const float value = __uint_as_float((uint32_t)target[SL_TARGET_FIRST + j]);
    *y = (double)value;
    return target[SL_TARGET_LABEL] < 0 || isnan(value) ? -1 : target[SL_TARGET_SPLIT];
}

__global__ void __launch_bounds__(THREADS)
    find_errors(sl_value_errors e, int64_t width, double *table)
{
    for (int64_t j = blockIdx.x; j < e.columns; j += gridDim.x) {
        double count[2 * SL_SPLITS] = {}, sum[3 * SL_SPLITS] = {}, y;
        for (int64_t r = threadIdx.x; r < e.rows; r += THREADS) {
            const int split = known_value(e, width, r, j, &y);
#pragma unroll
            for (int s = 0; s < SL_SPLITS; s++) {
                count[s] += s == split ? 1.0 : 0.0;
                count[SL_SPLITS + s] += s == split ? y : 0.0;
            }
        }
        sum_block(count);
        for (int64_t r = threadIdx.x; r < e.rows; r += THREADS) {
            const int split = known_value(e, width, r, j, &y);
            const double error = (double)e.z[r * e.ldz + j] - y;
#pragma unroll
            for (int s = 0; s < SL_SPLITS; s++) {
                if (s != split)
                    continue;
                const double off = y - count[SL_SPLITS + s] / count[s];
                sum[s] += off * off;
                sum[SL_SPLITS + s] += fabs(error);
                sum[2 * SL_SPLITS + s] += error * error;
            }
        }
        sum_block(sum);
        double *const to = table + j * SL_TABLE_ERRORS;
#pragma unroll
        for (int s = 0; s < SL_SPLITS; s++) {
            if (threadIdx.x != (unsigned)s)
                continue;
            double *const numbers = to + s * SL_VALUE_ERRORS;
            numbers[SL_KNOWN_VALUES] = count[s];
            numbers[SL_MEAN_VALUE] = count[s] > 0.0 ? count[SL_SPLITS + s] / count[s] : 0.0;
            numbers[SL_VALUE_SPREAD] = sum[s];
            numbers[SL_ABSOLUTE_ERRORS] = sum[SL_SPLITS + s];
            numbers[SL_SQUARED_ERRORS] = sum[2 * SL_SPLITS + s];
        }
    }
}

__global__ void join_tables(int64_t count, const double *from, double *to)
{
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
        const double *const x = from + i * SL_VALUE_ERRORS;
        double *const y = to + i * SL_VALUE_ERRORS;
        const double all = x[SL_KNOWN_VALUES] + y[SL_KNOWN_VALUES],
                     share = all > 0.0 ? x[SL_KNOWN_VALUES] / all : 0.0,
                     apart = x[SL_MEAN_VALUE] - y[SL_MEAN_VALUE];
        y[SL_VALUE_SPREAD] += x[SL_VALUE_SPREAD] + apart * apart * share * y[SL_KNOWN_VALUES];
        y[SL_MEAN_VALUE] += apart * share;
        y[SL_KNOWN_VALUES] = all;
        y[SL_ABSOLUTE_ERRORS] += x[SL_ABSOLUTE_ERRORS];
        y[SL_SQUARED_ERRORS] += x[SL_SQUARED_ERRORS];
    }
}

} // namespace

extern "C" void sl_cuda_value_errors(const struct sl_value_errors *e, double *table,
                                     struct sl_cuda_queue queue)
{
    if (e->columns == 0)
        return;
    const unsigned blocks = (unsigned)(e->columns < 65535 ? e->columns : 65535);
    sl_cuda_launch("value_errors", find_errors, blocks, THREADS, 0, queue.stream, *e,
                   sl_target_width(SL_TARGET_VALUES, e->columns), table);
}

extern "C" void sl_cuda_join_errors(int64_t columns, const double *from, double *to,
                                    struct sl_cuda_queue queue)
{
    sl_cuda_launch("join_errors", join_tables, 1, THREADS, 0, queue.stream, columns * SL_SPLITS,
                   from, to);
}

extern "C" void value_errors_cuda(void *buffers[], void *)
{
    const sl_dense z = sl_dense_buffer(buffers[1]);
    const struct sl_value_errors e = {z.rows, z.cols, (const int32_t *)sl_raw_buffer(buffers[0]),
                                      z.data, z.ld};
    sl_cuda_value_errors(&e, (double *)sl_raw_buffer(buffers[2]), sl_cuda_task_queue());
}

extern "C" void join_errors_cuda(void *buffers[], void *)
{
    sl_cuda_join_errors(STARPU_MATRIX_GET_NY(buffers[1]), (const double *)sl_raw_buffer(buffers[0]),
                        (double *)sl_raw_buffer(buffers[1]), sl_cuda_task_queue());
}
