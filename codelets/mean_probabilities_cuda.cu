/* Means of probabilities: a warp has a row, in double precision, and in logarithms, so that no
 * probability is rounded to 0. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/mean_probabilities.h"
}

namespace
{

enum { THREADS = 256, WARPS = THREADS / 32, MOST_BLOCKS = 65536 };

__device__ __forceinline__ double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Return log Σ exp(row) in all lanes. */
__device__ double log_of_sum(const float *row, int64_t count, int lane)
{
    double largest = row[0], sum = 0.0;
    for (int64_t c = lane; c < count; c += 32)
        largest = larger(largest, row[c]);
    for (int distance = 16; distance > 0; distance /= 2)
        largest = larger(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, distance));
    for (int64_t c = lane; c < count; c += 32)
        sum += exp(row[c] - largest);
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
    return largest + log(sum);
}

__device__ double join(int before, double y, double x)
{
    const double largest = larger(y, x);
    return largest + log((before * exp(y - largest) + exp(x - largest)) / (before + 1));
}

__global__ void __launch_bounds__(THREADS) mean_kernel(int before, sl_logits x, sl_logits y)
{
    const int lane = (int)threadIdx.x % 32;
    for (int64_t r = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; r < x.rows;
         r += (int64_t)gridDim.x * WARPS) {
        const float *const from = x.z + r * x.ld;
        float *const to = y.z + r * y.ld;
        const double all = log_of_sum(from, x.classes, lane);
        for (int64_t c = lane; c < x.classes; c += 32)
            to[c] = (float)(before ? join(before, to[c], from[c] - all) : from[c] - all);
    }
}

} // namespace

extern "C" void sl_cuda_mean_probabilities(int before, const struct sl_logits *x,
                                           const struct sl_logits *y, struct sl_cuda_queue queue)
{
    const int64_t blocks = sl_cuda_divide_up(x->rows, (int64_t)WARPS);
    if (x->rows > 0 && x->classes > 0)
        sl_cuda_launch("mean_probabilities", mean_kernel,
                       (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), THREADS, 0,
                       queue.stream, before, *x, *y);
}

extern "C" void mean_probabilities_cuda(void *buffers[], void *argument)
{
    const mean_probabilities_argument *arg = (const mean_probabilities_argument *)argument;
    const sl_dense x = sl_dense_buffer(buffers[0]), y = sl_dense_buffer(buffers[1]);
    const sl_logits from = {x.data, x.rows, x.cols, x.ld}, to = {y.data, y.rows, y.cols, y.ld};
    sl_cuda_mean_probabilities(arg->before, &from, &to, sl_cuda_task_queue());
}
