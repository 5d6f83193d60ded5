/* Softmax cross-entropy with class weights and label smoothing: a team of lanes per row. */
#include "codelets/cuda_sums.h"

extern "C" {
#include "codelets/weighted_softmax.h"
}

namespace
{

enum { LANES = 8 };

__device__ __forceinline__ double wanted(const sl_weighted_softmax &w, int32_t label, int64_t j)
{
    const double smoothing = (double)w.smoothing;
    const double share =
        (j == label ? 1.0 - smoothing : 0.0) + smoothing / (double)w.softmax.classes;
    return w.weights ? (double)w.weights[j] * share : share;
}

__device__ __forceinline__ double sum_team(double x, unsigned team)
{
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        x += __shfl_xor_sync(team, x, distance);
    return x;
}

/* Return whether the label is the first largest logit, as the CPU's kernel finds it. */
__device__ __forceinline__ bool is_right(const sl_softmax &s, const float *z, int32_t label,
                                         unsigned lane, unsigned team)
{
    double beaten = isnan(z[0]) || isnan(z[label]) ? 1.0 : 0.0;
    for (int64_t j = lane; j < s.classes; j += LANES)
        beaten += z[j] > z[label] || (z[j] == z[label] && j < label) ? 1.0 : 0.0;
    return sum_team(beaten, team) == 0.0;
}

__global__ void __launch_bounds__(SL_CUDA_SUM_THREADS)
    walk_weighted(sl_weighted_softmax w, sl_cuda_block_sums *blocks)
{
    const sl_softmax &s = w.softmax;
    const unsigned lane = threadIdx.x % LANES;
    const unsigned team = ((1u << LANES) - 1u) << (threadIdx.x % 32 / LANES * LANES);
    const int64_t teams = SL_CUDA_SUM_THREADS / LANES;
    double sums[SL_CUDA_SUMS] = {};
    for (int64_t r = blockIdx.x * teams + threadIdx.x / LANES; r < s.rows; r += gridDim.x * teams) {
        const int32_t label = s.target[2 * r];
        const float *const z = s.z + r * s.ldz;
        float *const g = s.g + r * s.ldg;
        if (label < 0 || s.target[2 * r + 1] != SL_SPLIT_TRAIN) {
            for (int64_t j = lane; j < s.classes; j += LANES)
                g[j] = 0.0f;
            continue;
        }
        const bool right = is_right(s, z, label, lane, team);
        float largest = z[0];
        for (int64_t j = lane; j < s.classes; j += LANES)
            largest = z[j] > largest ? z[j] : largest;
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2) {
            const float other = __shfl_xor_sync(team, largest, distance);
            largest = other > largest ? other : largest;
        }
        double sum = 0.0, loss = 0.0, all = 0.0;
        for (int64_t j = lane; j < s.classes; j += LANES)
            sum += exp((double)z[j] - (double)largest);
        const double logarithm = log(sum_team(sum, team));
        for (int64_t j = lane; j < s.classes; j += LANES) {
            const double t = wanted(w, label, j);
            all += t;
            loss += t * (logarithm + (double)largest - (double)z[j]);
        }
        loss = sum_team(loss, team);
        all = sum_team(all, team);
        if (lane == 0) {
            sums[SL_SPLIT_TRAIN] += loss;
            sums[SL_SPLITS + SL_SPLIT_TRAIN] += right ? 1.0 : 0.0;
        }
        const double times = (double)s.scale * (s.factor ? (double)s.factor[r] : 1.0);
        __syncwarp(team); /* G may be Z */
        for (int64_t j = lane; j < s.classes; j += LANES)
            g[j] = (float)(times * (all * exp((double)z[j] - (double)largest - logarithm) -
                                    wanted(w, label, j)));
    }
    sl_cuda_sum_block(sums, blocks[blockIdx.x]);
}

} // namespace

extern "C" void sl_cuda_weighted_softmax(const struct sl_weighted_softmax *w, double *metrics,
                                         struct sl_cuda_queue queue)
{
    sl_cuda_block_sums *const blocks = (sl_cuda_block_sums *)queue.workspace;
    const int count = sl_cuda_sum_count(w->softmax.rows * LANES);
    sl_cuda_launch("weighted_softmax", walk_weighted, (unsigned)count, SL_CUDA_SUM_THREADS, 0,
                   queue.stream, *w, blocks);
    sl_cuda_launch("weighted_softmax", sl_cuda_sum_blocks, 1, SL_CUDA_SUM_THREADS, 0, queue.stream,
                   count, blocks, metrics);
}

extern "C" void weighted_softmax_cuda(void *buffers[], void *argument)
{
    const weighted_softmax_argument *arg = (const weighted_softmax_argument *)argument;
    const sl_dense z = sl_dense_buffer(buffers[3 + arg->weighted]);
    const float *weights = arg->weighted ? (const float *)sl_raw_buffer(buffers[2]) : nullptr;
    struct sl_weighted_softmax w = {};
    w.softmax = {z.rows,
                 z.cols,
                 arg->scale,
                 sl_row_scale(buffers[0], arg->factor),
                 (const int32_t *)sl_raw_buffer(buffers[1]),
                 z.data,
                 z.ld,
                 z.data,
                 z.ld};
    w.smoothing = arg->smoothing;
    w.weights = weights ? weights + z.cols : nullptr;
    sl_cuda_weighted_softmax(&w, (double *)sl_raw_buffer(buffers[2 + arg->weighted]),
                             sl_cuda_task_queue());
}
