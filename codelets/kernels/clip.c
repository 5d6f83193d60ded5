#include "codelets/clip.h"

#include <math.h>

#include "codelets/vector.h"

/* Entry j of a row goes to sum j mod 8; a product of two floats is exact in double. So neither
 * vectors nor fused operations change a bit. */
SL_KERNEL_RETURNS(double, sl_kernel_square_sum,
                  (int64_t rows, int64_t cols, const float *x, int64_t ldx), (rows, cols, x, ldx))
{
    sl_reals sum[SL_DOUBLE_VECTORS];
    SL_UNROLL for (int v = 0; v < SL_DOUBLE_VECTORS; v++) sum[v] = (sl_reals){0};
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * ldx;
        int64_t j = 0;
        for (; j + SL_EIGHT <= cols; j += SL_EIGHT)
            SL_UNROLL for (int v = 0; v < SL_DOUBLE_VECTORS; v++)
            {
                const sl_reals own = sl_reals_at(row + j, v);
                sum[v] += own * own;
            }
        if (j < cols) {
            float last[SL_EIGHT] = {0.0f};
            for (int i = 0; j + i < cols; i++)
                last[i] = row[j + i];
            SL_UNROLL for (int v = 0; v < SL_DOUBLE_VECTORS; v++)
            {
                const sl_reals own = sl_reals_at(last, v);
                sum[v] += own * own;
            }
        }
    }
    return sl_fold_reals(sum, false);
}

SL_KERNEL(sl_kernel_clip,
          (int64_t rows, int64_t cols, double limit, double squares, float *x, int64_t ldx),
          (rows, cols, limit, squares, x, ldx))
{
    const double by = limit / sqrt(squares);
    const float factor = (float)by;
    for (int64_t r = 0; by < 1.0 && r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            x[r * ldx + j] *= factor;
}
