/* What CUDA kernels of normalisation share: a group of lanes has a row, four elements of each lane
 * at a time. */
#ifndef SL_CODELETS_CUDA_NORM_H
#define SL_CODELETS_CUDA_NORM_H

#include "codelets/cuda.h"

extern "C" {
#include "codelets/norm.h"
}

namespace
{

enum {
    V = 4,       /* elements of a lane at a time */
    NARROW = 64, /* columns up to which 8 lanes have a row, else 32 */
};

/* ---- X ---- */

/* As on cores: X = ((h - mean) - rest) · inverse of a row. */
struct moments {
    float mean, rest, inverse;
};

__device__ __forceinline__ float normal(const moments &of, float h)
{
    return (h - of.mean - of.rest) * of.inverse;
}

/* The same of a column, without a rest. */
__device__ __forceinline__ moments moments_of_column(const sl_norm &n, int64_t j)
{
    return {n.mean[j], 0.0f, 1.0f / sqrtf(n.variance[j] + n.epsilon)};
}

/* Over a group of lanes, all of which get the sum. */
template <int LANES> __device__ __forceinline__ float sum_lanes(float sum)
{
    const unsigned lane = threadIdx.x % LANES;
    const unsigned mask = (unsigned)((1ull << LANES) - 1) << (threadIdx.x % 32 - lane);
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(mask, sum, distance);
    return sum;
}

/* Return the variance, which rounding may make negative. */
template <int LANES>
__device__ float spread_of_row(const sl_rows &rows, int64_t r, int64_t cols, int lane, bool aligned,
                               moments *to)
{
    const float share = 1.0f / (float)cols;
    float sum = 0.0f, square = 0.0f;
    for (int64_t j = V * lane; j < cols; j += V * LANES) {
        const sl_cuda_vector<V> h = sl_cuda_load<V>(rows, r, j, cols - j, aligned);
#pragma unroll
        for (int i = 0; i < V; i++)
            sum += h.at[i];
    }
    to->mean = sum_lanes<LANES>(sum) * share;
    sum = 0.0f;
    for (int64_t j = V * lane; j < cols; j += V * LANES) {
        const sl_cuda_vector<V> h = sl_cuda_load<V>(rows, r, j, cols - j, aligned);
#pragma unroll
        for (int i = 0; i < V; i++) {
            const float off = j + i < cols ? h.at[i] - to->mean : 0.0f;
            sum += off;
            square = fmaf(off, off, square);
        }
    }
    to->rest = sum_lanes<LANES>(sum) * share;
    return fmaf(-to->rest, to->rest, sum_lanes<LANES>(square) * share);
}

/* Those of a cut row are there. */
template <int LANES>
__device__ moments moments_of_row(const sl_norm &n, int64_t r, int lane, bool aligned)
{
    moments of = {};
    float variance;
    if (n.moments) {
        of.mean = n.moments[r];
        of.rest = n.moments[n.ldm + r];
        variance = n.moments[2 * n.ldm + r];
    } else {
        variance = spread_of_row<LANES>(n.h, r, n.cols, lane, aligned, &of);
    }
    of.inverse = 1.0f / sqrtf((variance < 0.0f ? 0.0f : variance) + n.epsilon);
    return of;
}

/* The sums of wG and of wG·X over a row. */
template <int LANES>
__device__ void products_of_row(const sl_norm &n, const sl_rows &rows, const moments &of, int64_t r,
                                int lane, bool aligned, float *first, float *second)
{
    *first = *second = 0.0f;
    for (int64_t j = V * lane; j < n.cols; j += V * LANES) {
        const int64_t count = n.cols - j;
        const sl_cuda_vector<V> h = sl_cuda_load<V>(n.h, r, j, count, aligned),
                                g = sl_cuda_load<V>(rows, r, j, count, aligned),
                                w = sl_cuda_load<V>(n.weight + j, count, aligned);
#pragma unroll
        for (int i = 0; i < V; i++) {
            const float product = i < count ? w.at[i] * g.at[i] : 0.0f;
            *first += product;
            *second = fmaf(product, normal(of, h.at[i]), *second);
        }
    }
    *first = sum_lanes<LANES>(*first);
    *second = sum_lanes<LANES>(*second);
}

/* A group of lanes for each row, in blocks of so many threads. */
inline dim3 grid_of_rows(int64_t rows, int64_t cols, int threads)
{
    return dim3((unsigned)sl_cuda_divide_up(rows, threads / (cols > NARROW ? 32 : 8)));
}

} // namespace

#endif
