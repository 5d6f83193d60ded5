/* Rows and states of pair attention (codelets/pair.h), for the CUDA files that walk over pairs. */
#ifndef SL_CODELETS_CUDA_PAIR_H
#define SL_CODELETS_CUDA_PAIR_H

#include "codelets/cuda.h"

extern "C" {
#include "codelets/pair.h"
}

__device__ __forceinline__ float *sl_pair_row_at(const sl_floats_at &of, int64_t r)
{
    return of.data + r * of.ld;
}

/* Return the columns of all heads, with their room: sl_pair_all on the device. */
__device__ __forceinline__ int64_t sl_pair_all_of(const sl_pair &pair)
{
    return pair.attention.heads * pair.attention.width;
}

/* Return feature f's number of head h of numbers that begin at N. */
__device__ __forceinline__ float sl_pair_number(const sl_pair &pair, const float *n, int64_t f,
                                                int64_t h)
{
    return n[f * pair.attention.heads + h];
}

/* Return x + N·W_e, for column j of all heads with their room. */
__device__ __forceinline__ float sl_pair_add_edges(const sl_pair &pair, const sl_floats_at &vectors,
                                                   const float *n, int64_t j, float x)
{
    const int64_t h = j / pair.attention.width;
    for (int64_t f = 0; f < pair.edges; f++)
        x = fmaf(sl_pair_number(pair, n, f, h), sl_pair_row_at(vectors, SL_PAIR_VECTORS + f)[j], x);
    return x;
}

/* The sum of several chunks' rows, as an operation on each element; BEFORE (…), or NULL: 0. */
struct sl_pair_chunks {
    int64_t chunks, columns;
    const float *sums; // (chunks, …, columns)
    int64_t step;      /* from chunk to chunk */
    const float *before;
    int64_t ld; /* of BEFORE */

    template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t) const
    {
        float sum = before ? before[r * ld + j] : 0.0f;
        for (int64_t i = 0; i < chunks; i++)
            sum += sums[i * step + r * columns + j];
        return {{sum}};
    }
};

/* Make EDGE_BACK = [EDGE_BACK +] M of GATv2, of sl_cuda_pair_again. */
extern "C" void sl_cuda_pair_edge_sums(const struct sl_pair *pair, const struct sl_sparse *a,
                                       const struct sl_floats_at *vectors_at,
                                       const struct sl_floats_at *source,
                                       const struct sl_floats_at *target,
                                       const struct sl_floats_at *gradient_at, bool accumulate,
                                       const struct sl_floats_at *edge_back,
                                       struct sl_cuda_queue queue);

static inline sl_floats_at sl_pair_floats(void *buffer, int64_t r = 0)
{
    const sl_dense tile = sl_dense_buffer(buffer);
    return {tile.data + r * tile.ld, tile.ld};
}

#endif
