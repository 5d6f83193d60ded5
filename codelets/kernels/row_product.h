/* The product of two rows. */
#ifndef SL_CODELETS_KERNELS_ROW_PRODUCT_H
#define SL_CODELETS_KERNELS_ROW_PRODUCT_H

#include "codelets/vector.h"

SL_INLINE float product_of(int64_t count, const float *restrict x, const float *restrict y)
{
    sl_floats lanes[SL_SIXTEEN_VECTORS] = {{0}};
    float sum = 0.0f;
    const int64_t whole = count / SL_SIXTEEN * SL_SIXTEEN;
    for (int64_t j = 0; j < whole; j += SL_SIXTEEN)
        SL_UNROLL for (int v = 0; v < SL_SIXTEEN_VECTORS; v++) lanes[v] +=
            ((const sl_floats *)(x + j))[v] * ((const sl_floats *)(y + j))[v];
    int64_t j = whole;
    for (; j + SL_EIGHT <= count; j += SL_EIGHT)
        SL_UNROLL for (int i = 0; i < SL_EIGHT; i++) sum = sl_add_product(sum, x[j + i], y[j + i]);
    for (; j < count; j++)
        sum = sl_add_product(sum, x[j], y[j]);
    if (whole) /* without whole vectors, the lanes are 0 */
        SL_UNROLL for (int i = 0; i < SL_SIXTEEN; i++) sum += lanes[i / SL_LANES][i % SL_LANES];
    return sum;
}

#endif
