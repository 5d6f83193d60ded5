/* Functions that CUDA kernels of normalisation share. A group of lanes has a row; each lane reads
 * four elements at a time. */
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

/* Moments of a row, as on cores: X = ((h - mean) - rest) · inverse. */
struct moments {
    float mean, rest, inverse;
};

__device__ __forceinline__ float normal(const moments &of, float h)
{
    return (h - of.mean - of.rest) * of.inverse;
}

/* Return the moments of column j; the rest is 0. */
__device__ __forceinline__ moments moments_of_column(const sl_norm &n, int64_t j)
{
    return {n.mean[j], 0.0f, 1.0f / sqrtf(n.variance[j] + n.epsilon)};
}

/* Return the sum over a group of lanes, in all lanes of the group. */
template <int LANES> __device__ __forceinline__ float sum_lanes(float sum)
{
    const unsigned lane = threadIdx.x % LANES;
    const unsigned mask = (unsigned)((1ull << LANES) - 1) << (threadIdx.x % 32 - lane);
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(mask, sum, distance);
    return sum;
}

/* Set mean and rest of row r. Return its variance, which rounding may make negative. */
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

/* Return the moments of row r. A cut row's moments are in n.moments. */
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

/* Set *first and *second to the sums of wG and of wG·X over row r. */
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

/* Return the grid with a group of lanes for each row, in blocks of `threads` threads. */
inline dim3 grid_of_rows(int64_t rows, int64_t cols, int threads)
{
    return dim3((unsigned)sl_cuda_divide_up(rows, threads / (cols > NARROW ? 32 : 8)));
}

} // namespace

#endif
