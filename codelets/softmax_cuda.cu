/* Softmax cross-entropy and accuracy counts: a team of lanes per row, the metrics summed in a fixed
 * order. */
#include "codelets/cuda_sums.h"

extern "C" {
#include "codelets/softmax.h"
}

namespace
{

/* A logit and its column. */
struct candidate {
    float value;
    int64_t column;
};

__device__ __forceinline__ candidate better(candidate a, candidate b)
{
    return b.value > a.value || (b.value == a.value && b.column < a.column) ? b : a;
}

/* Return the first largest logit, as the CPU's loop finds it, in all lanes of the team. A NaN is
 * never larger than a logit before it, and no logit is larger than a NaN at the start. */
template <int LANES>
__device__ __forceinline__ candidate first_largest(int64_t classes, const float *z, unsigned lane,
                                                   unsigned team)
{
    candidate best = {-INFINITY, INT64_MAX};
    for (int64_t j = lane; j < classes; j += LANES)
        best = better(best, candidate{z[j], j}); /* false for NaN */
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2) {
        candidate other;
        other.value = __shfl_xor_sync(team, best.value, distance);
        other.column = __shfl_xor_sync(team, best.column, distance);
        best = better(best, other);
    }
    if (isnan(z[0]))
        best = candidate{z[0], 0};
    return best;
}

/* Return Σ exp(z - largest) in all lanes of the team. */
template <int LANES>
__device__ __forceinline__ double exp_sum(int64_t classes, const float *z, float largest,
                                          unsigned lane, unsigned team)
{
    double sum = 0.0;
    for (int64_t j = lane; j < classes; j += LANES)
        sum += (double)expf(z[j] - largest);
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(team, sum, distance);
    return sum;
}

struct logits {
    int64_t rows, classes;
    const int32_t *target; // (rows, 2)
    const float *z;
    int64_t ldz;
};

/* The gradient's address and factors. */
struct gradient {
    float scale;
    const float *factor; // (rows), or NULL: all 1
    float *g;
    int64_t ldg;
};

/* Sum each block's rows. GRADIENT: sum only training rows, and write G = (softmax - onehot) · scale
 * · factor there, 0 elsewhere. */
template <int LANES, bool GRADIENT>
__global__ void __launch_bounds__(SL_CUDA_SUM_THREADS)
    walk_rows(logits p, gradient out, sl_cuda_block_sums *blocks)
{
    constexpr int TEAMS = SL_CUDA_SUM_THREADS / LANES;
    const unsigned lane = threadIdx.x % LANES;
    const unsigned team = (unsigned)((1ull << LANES) - 1) << (threadIdx.x % 32 - lane);
    double sums[SL_CUDA_SUMS] = {};
    for (int64_t r = (int64_t)blockIdx.x * TEAMS + threadIdx.x / LANES; r < p.rows;
         r += (int64_t)gridDim.x * TEAMS) {
        const int32_t label = p.target[2 * r], split = p.target[2 * r + 1];
        if (label < 0 || (GRADIENT && split != SL_SPLIT_TRAIN)) {
            if (GRADIENT)
                for (int64_t j = lane; j < p.classes; j += LANES)
                    out.g[r * out.ldg + j] = 0.0f;
            continue;
        }
        const float *row = p.z + r * p.ldz;
        const candidate best = first_largest<LANES>(p.classes, row, lane, team);
        const double sum = exp_sum<LANES>(p.classes, row, best.value, lane, team);
        if (lane == 0) {
            const double loss = (double)best.value + log(sum) - (double)row[label];
            const double correct = best.column == label && !isnan(best.value) ? 1.0 : 0.0;
#pragma unroll
            for (int s = 0; s < SL_SPLITS; s++)
                if (s == split) {
                    sums[s] += loss;
                    sums[SL_SPLITS + s] += correct;
                }
        }
        if (GRADIENT) {
            __syncwarp(team); /* G may be Z, which lane 0 has read by now */
            const float whole = out.factor ? out.scale * out.factor[r] : out.scale,
                        share = whole / (float)sum;
            for (int64_t j = lane; j < p.classes; j += LANES)
                out.g[r * out.ldg + j] =
                    expf(row[j] - best.value) * share - (j == label ? whole : 0.0f);
        }
    }
    sl_cuda_sum_block(sums, blocks[blockIdx.x]);
}

template <int LANES, bool GRADIENT>
void launch(const char *name, const logits &p, const gradient &out, double *metrics,
            void *workspace, cudaStream_t stream)
{
    const int count = sl_cuda_sum_count(p.rows * LANES);
    sl_cuda_block_sums *const blocks = (sl_cuda_block_sums *)workspace;
    sl_cuda_launch(name, walk_rows<LANES, GRADIENT>, (unsigned)count, SL_CUDA_SUM_THREADS, 0,
                   stream, p, out, blocks);
    sl_cuda_launch(name, sl_cuda_sum_blocks, 1, SL_CUDA_SUM_THREADS, 0, stream, count, blocks,
                   metrics);
}

template <bool GRADIENT>
void launch_team(const char *name, const logits &p, const gradient &out, double *metrics,
                 void *workspace, cudaStream_t stream)
{
    if (p.classes <= 8)
        launch<8, GRADIENT>(name, p, out, metrics, workspace, stream);
    else if (p.classes <= 16)
        launch<16, GRADIENT>(name, p, out, metrics, workspace, stream);
    else
        launch<32, GRADIENT>(name, p, out, metrics, workspace, stream);
}

} // namespace

extern "C" void sl_cuda_softmax_loss(const struct sl_softmax *s, double *metrics,
                                     struct sl_cuda_queue queue)
{
    launch_team<true>("softmax_loss", logits{s->rows, s->classes, s->target, s->z, s->ldz},
                      gradient{s->scale, s->factor, s->g, s->ldg}, metrics, queue.workspace,
                      queue.stream);
}

extern "C" void sl_cuda_accuracy(int64_t rows, int64_t classes, const int32_t *target,
                                 const float *z, int64_t ldz, double *metrics,
                                 struct sl_cuda_queue queue)
{
    launch_team<false>("accuracy", logits{rows, classes, target, z, ldz}, gradient{}, metrics,
                       queue.workspace, queue.stream);
}

extern "C" void softmax_loss_cuda(void *buffers[], void *argument)
{
    const softmax_argument *arg = (const softmax_argument *)argument;
    const sl_dense z = sl_dense_buffer(buffers[3]);
    const struct sl_softmax softmax = {z.rows,
                                       z.cols,
                                       arg->scale,
                                       sl_row_scale(buffers[0], arg->factor),
                                       (const int32_t *)sl_raw_buffer(buffers[1]),
                                       z.data,
                                       z.ld,
                                       z.data,
                                       z.ld};
    sl_cuda_softmax_loss(&softmax, (double *)sl_raw_buffer(buffers[2]), sl_cuda_task_queue());
}

extern "C" void accuracy_cuda(void *buffers[], void *)
{
    const sl_dense z = sl_dense_buffer(buffers[1]);
    sl_cuda_accuracy(z.rows, z.cols, (const int32_t *)sl_raw_buffer(buffers[0]), z.data, z.ld,
                     (double *)sl_raw_buffer(buffers[2]), sl_cuda_task_queue());
}
