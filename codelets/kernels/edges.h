/* Products of features of a chunk's entries, F (count, features), as a sparse tile has them. */
#ifndef SL_CODELETS_KERNELS_EDGES_H
#define SL_CODELETS_KERNELS_EDGES_H

#include "codelets/vector.h"

/* X (count, cols) += F·W, with W (features, cols). */
SL_INLINE void add_edge_products(int64_t count, int64_t features, const float *restrict edge,
                                 const float *restrict weights, int64_t ld, int64_t cols,
                                 float *restrict x, int64_t x_ld)
{
    for (int64_t e = 0; e < count; e++, edge += features, x += x_ld) {
        int64_t j = 0;
        for (; j + SL_LANES <= cols; j += SL_LANES) {
            sl_floats sum = *(const sl_floats *)(x + j);
            for (int64_t f = 0; f < features; f++)
                sum += edge[f] * *(const sl_floats *)(weights + f * ld + j);
            *(sl_floats *)(x + j) = sum;
        }
        for (; j + SL_SHORT_LANES <= cols; j += SL_SHORT_LANES) {
            sl_short sum = *(const sl_short *)(x + j);
            for (int64_t f = 0; f < features; f++)
                sum += edge[f] * *(const sl_short *)(weights + f * ld + j);
            *(sl_short *)(x + j) = sum;
        }
        for (; j < cols; j++)
            for (int64_t f = 0; f < features; f++)
                x[j] = sl_add_product(x[j], edge[f], weights[f * ld + j]);
    }
}

/* SUMS (features, cols) += Fᵀ·X, with X (count, cols). */
SL_INLINE void add_edge_gradients(int64_t count, int64_t features, const float *restrict edge,
                                  const float *restrict x, int64_t x_ld, int64_t cols,
                                  float *restrict sums, int64_t ld)
{
    for (int64_t f = 0; f < features; f++, sums += ld) {
        int64_t j = 0;
        for (; j + SL_LANES <= cols; j += SL_LANES) {
            sl_floats sum = *(const sl_floats *)(sums + j);
            for (int64_t e = 0; e < count; e++)
                sum += edge[e * features + f] * *(const sl_floats *)(x + e * x_ld + j);
            *(sl_floats *)(sums + j) = sum;
        }
        for (; j + SL_SHORT_LANES <= cols; j += SL_SHORT_LANES) {
            sl_short sum = *(const sl_short *)(sums + j);
            for (int64_t e = 0; e < count; e++)
                sum += edge[e * features + f] * *(const sl_short *)(x + e * x_ld + j);
            *(sl_short *)(sums + j) = sum;
        }
        for (; j < cols; j++)
            for (int64_t e = 0; e < count; e++)
                sums[j] = sl_add_product(sums[j], edge[e * features + f], x[e * x_ld + j]);
    }
}

#endif
