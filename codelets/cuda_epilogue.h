/* The steps after a sum (struct sl_epilogue), on elements that are in registers. */
#ifndef SL_CODELETS_CUDA_EPILOGUE_H
#define SL_CODELETS_CUDA_EPILOGUE_H

#include <float.h>

#include "codelets/cuda.h"

extern "C" {
#include "codelets/epilogue.h"
}

/* Return whether the epilogue's operands can be read four elements at a time. */
static inline bool sl_cuda_epilogue_aligned(const sl_epilogue &e, int64_t rows, int64_t cols)
{
    return sl_cuda_aligned(1, e.bias, cols) && sl_cuda_aligned(rows, e.mask);
}

/* Apply the epilogue to elements (r, j) … (r, j + V - 1) of Z; the first `count` exist. `aligned`:
 * the result of sl_cuda_epilogue_aligned. Factor and bias are one operation wherever they are, so
 * that all kernels round alike. */
template <int V>
__device__ __forceinline__ void sl_cuda_finish(const sl_epilogue &e, bool aligned, int64_t r,
                                               int64_t j, int64_t count, sl_cuda_vector<V> *z)
{
    const float before = e.before ? e.scale * e.before[r] : e.scale,
                factor = e.factor ? before * e.factor[r] : before;
    sl_cuda_vector<V> bias = {};
    if (e.bias)
        bias = sl_cuda_load<V>(e.bias + j, count, aligned);
#pragma unroll
    for (int i = 0; i < V; i++)
        z->at[i] = fmaf(z->at[i], factor, bias.at[i]);
    if (e.relu) {
#pragma unroll
        for (int i = 0; i < V; i++)
            z->at[i] = z->at[i] < 0.0f ? 0.0f : z->at[i]; /* NaN < 0 is false: it stays */
    }
    if (e.elu) {
#pragma unroll
        for (int i = 0; i < V; i++) {
            const float below = z->at[i] <= 0.0f ? expm1f(z->at[i]) : z->at[i];
            z->at[i] = below == 0.0f ? FLT_MIN : below; /* 0 means dropped */
        }
    }
    if (e.mask.data) {
        const sl_cuda_vector<V> mask = sl_cuda_load<V>(e.mask, r, j, count, aligned);
        const float elu_back = e.mask_scale ? e.elu_back * e.mask_scale[r] : e.elu_back;
#pragma unroll
        for (int i = 0; i < V; i++)
            z->at[i] = mask.at[i] > 0.0f ? z->at[i]
                       : mask.at[i] < 0.0f && elu_back > 0.0f
                           ? z->at[i] * (1.0f + elu_back * mask.at[i])
                           : 0.0f;
    }
    if (e.drop.threshold)
        sl_cuda_drop<V>(e.drop, e.vertex[r], e.column0 + (uint32_t)j, z);
    if (e.after) {
        const float after = e.after[r];
#pragma unroll
        for (int i = 0; i < V; i++)
            z->at[i] *= after;
    }
}

#endif
