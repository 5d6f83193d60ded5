/* Losses on values: a team of lanes per row, the metrics summed in a fixed order. */
#include "codelets/cuda_sums.h"

extern "C" {
#include "codelets/value_loss.h"
}

namespace
{

enum { LANES = 8 };

struct entry {
    double loss;
    float gradient;
    bool right;
};

/* Return loss, gradient and correctness of a known value y at logit z. */
template <int KIND>
__device__ __forceinline__ entry entry_of(const sl_value_loss &v, float z, float y, int64_t j,
                                          bool plain)
{
    if (KIND == SL_VALUE_SQUARE) {
        const double off = (double)z - (double)y;
        return {off * off, 2.0f * (z - y), true};
    }
    const float smoothing = plain ? 0.0f : v.smoothing;
    const float e = expf(-fabsf(z)), share = 1.0f / (1.0f + e);
    const double wanted = (double)y * (1.0 - (double)smoothing) + 0.5 * (double)smoothing;
    const float near = y * (1.0f - smoothing) + 0.5f * smoothing;
    const float w = plain || !v.weights ? 1.0f : v.weights[(y > 0.5f ? v.cols : 0) + j];
    const double loss = fmax((double)z, 0.0) - (double)z * wanted + log1p((double)e);
    return {(double)w * loss, ((z < 0.0f ? e * share : share) - near) * w,
            (z > 0.0f) == (y > 0.5f)};
}

/* Sum each block's rows. GRADIENT: training rows alone, and their gradient G; else all rows with a
 * label. */
template <int KIND, bool GRADIENT>
__global__ void __launch_bounds__(SL_CUDA_SUM_THREADS)
    walk_values(sl_value_loss v, sl_cuda_block_sums *blocks)
{
    const unsigned lane = threadIdx.x % LANES;
    const unsigned team = (LANES == 32 ? 0xFFFFFFFFu : (1u << LANES) - 1u)
                          << (threadIdx.x % 32 / LANES * LANES);
    const int64_t teams = SL_CUDA_SUM_THREADS / LANES;
    const float per_column = v.scale / (float)v.cols;
    double sums[SL_CUDA_SUMS] = {};
    for (int64_t r = blockIdx.x * teams + threadIdx.x / LANES; r < v.rows; r += gridDim.x * teams) {
        const int32_t *const target = v.target + r * (SL_TARGET_FIRST + v.cols);
        const int32_t split = target[SL_TARGET_SPLIT];
        if (target[SL_TARGET_LABEL] < 0 || (GRADIENT && split != SL_SPLIT_TRAIN)) {
            for (int64_t j = lane; GRADIENT && j < v.cols; j += LANES)
                v.g[r * v.ldg + j] = 0.0f;
            continue;
        }
        const float times = v.factor ? per_column * v.factor[r] : per_column;
        double loss = 0.0;
        int wrong = 0;
        for (int64_t j = lane; j < v.cols; j += LANES) {
            const float y = __uint_as_float((uint32_t)target[SL_TARGET_FIRST + j]),
                        z = v.z[r * v.ldz + j];
            const bool known = !isnan(y);
            const entry one = entry_of<KIND>(v, z, known ? y : 0.0f, j, !GRADIENT);
            loss += known ? one.loss : 0.0;
            wrong += known && !one.right;
            if (GRADIENT)
                v.g[r * v.ldg + j] = known ? one.gradient * times : 0.0f;
        }
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2) {
            loss += __shfl_xor_sync(team, loss, distance);
            wrong += __shfl_xor_sync(team, wrong, distance);
        }
        if (lane == 0) {
#pragma unroll
            for (int s = 0; s < SL_SPLITS; s++)
                if (s == split) {
                    sums[s] += loss / (double)v.cols;
                    sums[SL_SPLITS + s] += KIND == SL_VALUE_SIGMOID && !wrong ? 1.0 : 0.0;
                }
        }
    }
    sl_cuda_sum_block(sums, blocks[blockIdx.x]);
}

template <bool GRADIENT>
void launch(const char *name, const sl_value_loss &v, double *metrics, const sl_cuda_queue &queue)
{
    sl_cuda_block_sums *const blocks = (sl_cuda_block_sums *)queue.workspace;
    const int count = sl_cuda_sum_count(v.rows * LANES);
    sl_cuda_launch(name,
                   v.kind == SL_VALUE_SIGMOID ? walk_values<SL_VALUE_SIGMOID, GRADIENT>
                                              : walk_values<SL_VALUE_SQUARE, GRADIENT>,
                   (unsigned)count, SL_CUDA_SUM_THREADS, 0, queue.stream, v, blocks);
    sl_cuda_launch(name, sl_cuda_sum_blocks, 1, SL_CUDA_SUM_THREADS, 0, queue.stream, count, blocks,
                   metrics);
}

} // namespace

extern "C" void sl_cuda_value_loss(const struct sl_value_loss *v, double *metrics,
                                   struct sl_cuda_queue queue)
{
    launch<true>("value_loss", *v, metrics, queue);
}

extern "C" void sl_cuda_value_count(const struct sl_value_loss *v, double *metrics,
                                    struct sl_cuda_queue queue)
{
    launch<false>("value_count", *v, metrics, queue);
}

extern "C" void value_loss_cuda(void *buffers[], void *argument)
{
    const value_loss_argument *arg = (const value_loss_argument *)argument;
    const sl_dense z = sl_dense_buffer(buffers[3 + arg->weighted]);
    struct sl_value_loss v = {};
    v.kind = arg->kind;
    v.rows = z.rows;
    v.cols = z.cols;
    v.scale = arg->scale;
    v.smoothing = arg->smoothing;
    v.weights = arg->weighted ? (const float *)sl_raw_buffer(buffers[2]) : nullptr;
    v.factor = sl_row_scale(buffers[0], arg->factor);
    v.target = (const int32_t *)sl_raw_buffer(buffers[1]);
    v.z = v.g = z.data;
    v.ldz = v.ldg = z.ld;
    sl_cuda_value_loss(&v, (double *)sl_raw_buffer(buffers[2 + arg->weighted]),
                       sl_cuda_task_queue());
}

extern "C" void value_count_cuda(void *buffers[], void *argument)
{
    const value_loss_argument *arg = (const value_loss_argument *)argument;
    const sl_dense z = sl_dense_buffer(buffers[1]);
    struct sl_value_loss v = {};
    v.kind = arg->kind;
    v.rows = z.rows;
    v.cols = z.cols;
    v.target = (const int32_t *)sl_raw_buffer(buffers[0]);
    v.z = z.data;
    v.ldz = z.ld;
    sl_cuda_value_count(&v, (double *)sl_raw_buffer(buffers[2]), sl_cuda_task_queue());
}
