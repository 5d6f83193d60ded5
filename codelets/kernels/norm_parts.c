/* Moments and products of rows that are cut. codelets/kernels/norm.c normalises with the numbers of
 * whole rows. */
#include "codelets/norm_parts.h"

#include "codelets/kernels/rows_of_norm.h"

SL_KERNEL(sl_kernel_norm_moments,
          (int64_t rows, int64_t cols, const struct sl_rows *h, float *to, int64_t ld),
          (rows, cols, h, to, ld))
{
    for (int64_t r = 0; r < rows; r++) {
        struct moments of;
        find_spreads(h, r, 1, cols, &of);
        to[r] = of.mean;
        to[ld + r] = of.rest;
        to[2 * ld + r] = of.inverse;
    }
}

SL_KERNEL(sl_kernel_norm_products,
          (const struct sl_norm *n, const struct sl_rows *g, float *to, int64_t ld), (n, g, to, ld))
{
    for (int64_t r = 0; r < n->rows; r++) {
        struct moments of;
        find_moments(n, r, 1, &of);
        sum_products(n, g, r, 1, &of);
        to[r] = of.first;
        to[ld + r] = of.second;
    }
}
