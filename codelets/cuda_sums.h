/* Sums of a tile's metrics, for several CUDA operations: first within each block, then over the
 * blocks, in a fixed order. */
#ifndef SL_CODELETS_CUDA_SUMS_H
#define SL_CODELETS_CUDA_SUMS_H

#include "codelets/cuda.h"

extern "C" {
#include "codelets/metrics.h"
#include "core/split.h"
}

enum {
    SL_CUDA_SUMS = 2 * SL_SPLITS, /* losses, then correct counts, as in a metrics tile */
    SL_CUDA_SUM_THREADS = 256,
    SL_CUDA_SUM_WARPS = SL_CUDA_SUM_THREADS / 32,
    SL_CUDA_SUM_BLOCKS = 1024, /* most blocks */
};
static_assert((int)SL_METRIC_LOSS == 0 && (int)SL_METRIC_CORRECT == (int)SL_SPLITS &&
                  (int)SL_METRICS >= (int)SL_CUDA_SUMS,
              "sums are laid out like metrics");

/* The sums of one block; the workspace holds the sums of all blocks. */
typedef double sl_cuda_block_sums[SL_CUDA_SUMS];
static_assert(SL_CUDA_SUM_BLOCKS * sizeof(sl_cuda_block_sums) <= SL_RUNTIME_WORKSPACE,
              "all sums have room");

/* Write the block's sums to out (SL_CUDA_SUMS): add lanes by a tree, then warps in order. */
__device__ __forceinline__ void sl_cuda_sum_block(double (&sums)[SL_CUDA_SUMS], double *out)
{
    auto &part = sl_cuda_shared<double[SL_CUDA_SUM_WARPS][SL_CUDA_SUMS]>();
#pragma unroll
    for (int i = 0; i < SL_CUDA_SUMS; i++)
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            sums[i] += __shfl_xor_sync(0xFFFFFFFFu, sums[i], distance);
    if (threadIdx.x % 32 == 0) {
#pragma unroll
        for (int i = 0; i < SL_CUDA_SUMS; i++)
            part[threadIdx.x / 32][i] = sums[i];
    }
    __syncthreads();
    if (threadIdx.x < SL_CUDA_SUMS) {
        double total = 0.0;
        for (int w = 0; w < SL_CUDA_SUM_WARPS; w++)
            total += part[w][threadIdx.x];
        out[threadIdx.x] = total;
    }
}

/* Set metrics to the sums over `count` blocks: thread t adds blocks t, t + threads, … */
static __global__ void __launch_bounds__(SL_CUDA_SUM_THREADS)
    sl_cuda_sum_blocks(int count, const sl_cuda_block_sums *blocks, double *metrics)
{
    double sums[SL_CUDA_SUMS] = {};
    for (int b = (int)threadIdx.x; b < count; b += SL_CUDA_SUM_THREADS)
#pragma unroll
        for (int i = 0; i < SL_CUDA_SUMS; i++)
            sums[i] += blocks[b][i];
    sl_cuda_sum_block(sums, metrics);
    if (threadIdx.x >= SL_CUDA_SUMS && threadIdx.x < SL_METRICS)
        metrics[threadIdx.x] = 0.0;
}

/* Return how many blocks to launch for the work of `threads` threads. */
static inline int sl_cuda_sum_count(int64_t threads)
{
    const int64_t wanted = sl_cuda_divide_up(threads, SL_CUDA_SUM_THREADS);
    const int64_t most = SL_CUDA_SUM_BLOCKS;
    return (int)(wanted < 1 ? 1 : wanted < most ? wanted : most);
}

#endif
