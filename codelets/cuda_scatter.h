/* Add rows of H, times a value, to rows of Z that the entries name. The order is always the order
 * of the entries, without atomic operations. A block owns a range of rows of Z and a slice of
 * columns, and keeps both in shared memory. The block walks over all rows of entries, one thread
 * per row, and lists the entries of its range in order. Then each warp takes the listed entries for
 * rows of Z that the warp owns. So one thread adds to each element of Z, in the order of the loop
 * on the CPU. Ranges do not change the result. */
#ifndef SL_CODELETS_CUDA_SCATTER_H
#define SL_CODELETS_CUDA_SCATTER_H

#include "codelets/cuda.h"

enum {
    SL_SCATTER_THREADS = 256,
    SL_SCATTER_WARPS = SL_SCATTER_THREADS / 32,
    SL_SCATTER_HITS = 1024,  /* length of the list */
    SL_SCATTER_SUMS = 8192,  /* floats of Z in shared memory, at most */
    SL_SCATTER_BLOCKS = 512, /* blocks to launch where Z has enough rows */
};

struct sl_scatter {
    int64_t rows; /* rows of entries, and of H */
    int64_t z_rows;
    int64_t width;
    sl_rows h;
    float *z; // (z_rows, ldz)
    int64_t ldz;
    int range; /* rows of Z per block */
    bool accumulate;
};

/* The list of entries of one block. */
struct sl_scatter_list {
    uint32_t row[SL_SCATTER_HITS],
        target[SL_SCATTER_HITS]; /* rows of H; rows of Z, from the first row of the range */
    float value[SL_SCATTER_HITS];
};

/* Add the first `count` entries of the list to the sums (range, 32·S). Lane l has the columns first
 * + l + 32·s. */
template <int S>
__device__ __forceinline__ void sl_scatter_consume(const sl_scatter &p, const sl_scatter_list &list,
                                                   int count, int64_t first, float *sums)
{
    constexpr int AT_ONCE = S == 4 ? 4 : 8; /* loads in flight */
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int base = 0; base < count; base += 32) {
        const int own = base + (int)lane;
        unsigned mine =
            __ballot_sync(0xFFFFFFFFu, own < count && list.target[own] % SL_SCATTER_WARPS == warp);
        while (mine) {
            int hit[AT_ONCE];
            float x[AT_ONCE][S];
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                hit[u] = mine ? base + __ffs((int)mine) - 1 : -1;
                mine &= mine - 1; /* 0 stays 0 */
#pragma unroll
                for (int s = 0; s < S; s++) {
                    const int64_t j = first + lane + 32 * s;
                    x[u][s] = hit[u] >= 0 && j < p.width ? sl_cuda_element(p.h, list.row[hit[u]], j)
                                                         : 0.0f;
                }
            }
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++)
                if (hit[u] >= 0) {
                    float *sum = sums + list.target[hit[u]] * (32 * S) + lane;
#pragma unroll
                    for (int s = 0; s < S; s++)
                        sum[32 * s] = fmaf(list.value[hit[u]], x[u][s], sum[32 * s]);
                }
        }
    }
}

/* Scatter `entries`, a class that has, on the device,
 *     void find(int64_t r, uint32_t from, uint32_t to, uint32_t *begin, uint32_t *end) const
 *         entries [*begin, *end) of row r have a target in [from, to),
 *     uint32_t target(uint32_t e) const
 *     float value(int64_t r, uint32_t e) const. */
template <int S, class Entries>
__global__ void __launch_bounds__(SL_SCATTER_THREADS)
    sl_scatter_kernel(sl_scatter p, Entries entries)
{
    float *const sums = sl_cuda_launched_shared<float>(); // (range, 32·S)
    sl_scatter_list &list = sl_cuda_shared<sl_scatter_list>();
    auto &warp_count = sl_cuda_shared<uint32_t[SL_SCATTER_WARPS]>();
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t from = (int64_t)blockIdx.x * p.range, first = (int64_t)blockIdx.y * (32 * S);
    const int64_t to = from + p.range < p.z_rows ? from + p.range : p.z_rows;

    /* A thread reads and writes only the sums of its own warp's rows and its own columns. */
    for (int64_t i = warp; i < to - from; i += SL_SCATTER_WARPS)
#pragma unroll
        for (int s = 0; s < S; s++) {
            const int64_t j = first + lane + 32 * s;
            sums[i * (32 * S) + lane + 32 * s] =
                p.accumulate && j < p.width ? p.z[(from + i) * p.ldz + j] : 0.0f;
        }

    for (int64_t start = 0; start < p.rows; start += SL_SCATTER_THREADS) {
        const int64_t r = start + threadIdx.x;
        uint32_t begin = 0, end = 0;
        if (r < p.rows)
            entries.find(r, (uint32_t)from, (uint32_t)to, &begin, &end);
        /* This call is also the barrier between reading warp_count below and writing it anew. */
        if (!__syncthreads_or(end > begin))
            continue;

        /* `before`: entries of the threads before this one. */
        uint32_t through = end - begin;
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
            const uint32_t below = __shfl_up_sync(0xFFFFFFFFu, through, distance);
            if (lane >= (unsigned)distance)
                through += below;
        }
        if (lane == 31)
            warp_count[warp] = through;
        __syncthreads();
        uint32_t before = through - (end - begin), total = 0;
        for (unsigned w = 0; w < SL_SCATTER_WARPS; w++) {
            if (w < warp)
                before += warp_count[w];
            total += warp_count[w];
        }

        for (uint32_t listed = 0; listed < total; listed += SL_SCATTER_HITS) {
            uint32_t e = before < listed ? begin + (listed - before) : begin;
            for (; e < end && before + (e - begin) < listed + SL_SCATTER_HITS; e++) {
                const uint32_t at = before + (e - begin) - listed;
                list.row[at] = (uint32_t)r;
                list.target[at] = entries.target(e) - (uint32_t)from;
                list.value[at] = entries.value(r, e);
            }
            __syncthreads();
            const uint32_t left = total - listed;
            sl_scatter_consume<S>(p, list, (int)(left < SL_SCATTER_HITS ? left : SL_SCATTER_HITS),
                                  first, sums);
            __syncthreads();
        }
    }

    for (int64_t i = warp; i < to - from; i += SL_SCATTER_WARPS)
#pragma unroll
        for (int s = 0; s < S; s++) {
            const int64_t j = first + lane + 32 * s;
            if (j < p.width)
                p.z[(from + i) * p.ldz + j] = sums[i * (32 * S) + lane + 32 * s];
        }
}

template <int S, class Entries>
static void sl_scatter_launch_slices(const char *name, sl_scatter p, const Entries &entries,
                                     cudaStream_t stream)
{
    const int64_t spread = sl_cuda_divide_up(p.z_rows, SL_SCATTER_BLOCKS),
                  most = SL_SCATTER_SUMS / (32 * S);
    p.range = (int)(spread < most ? spread : most);
    const dim3 grid((unsigned)sl_cuda_divide_up(p.z_rows, p.range),
                    (unsigned)sl_cuda_divide_up(p.width, 32 * S));
    const size_t shared = (size_t)p.range * 32 * S * sizeof(float);
    sl_cuda_launch(name, sl_scatter_kernel<S, Entries>, grid, SL_SCATTER_THREADS, shared, stream, p,
                   entries);
}

/* Choose p.range and the slices, and launch. */
template <class Entries>
static void sl_scatter_launch(const char *name, const sl_scatter &p, const Entries &entries,
                              cudaStream_t stream)
{
    if (p.z_rows == 0 || p.width == 0)
        return;
    if (p.width <= 32)
        sl_scatter_launch_slices<1>(name, p, entries, stream);
    else if (p.width <= 64)
        sl_scatter_launch_slices<2>(name, p, entries, stream);
    else
        sl_scatter_launch_slices<4>(name, p, entries, stream);
}

#endif
