#include "codelets/clip.h"

#include <math.h>

#include "codelets/vector.h"

/* Entry j of a row goes to sum j mod 8; a product of two floats is exact in double. So neither
 * vectors nor fused operations change a bit. */
SL_KERNEL_RETURNS(double, sl_kernel_square_sum,
                  (int64_t rows, int64_t cols, const float *x, int64_t ldx), (rows, cols, x, ldx))
{
    enum { SUMS = 8 };
    double part[SUMS] = {0.0};
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * ldx;
        int64_t j = 0;
        for (; j + SUMS <= cols; j += SUMS)
            for (int s = 0; s < SUMS; s++)
                part[s] += (double)row[j + s] * (double)row[j + s];
        for (int s = 0; j + s < cols; s++)
            part[s] += (double)row[j + s] * (double)row[j + s];
    }
    for (int half = SUMS / 2; half; half /= 2)
        for (int s = 0; s < half; s++)
            part[s] += part[s + half];
    return part[0];
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
