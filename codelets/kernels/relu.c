#include "codelets/relu.h"
#include "codelets/vector.h"

SL_KERNEL(sl_kernel_relu, (int64_t rows, int64_t cols, float *z, int64_t ldz), (rows, cols, z, ldz))
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            z[r * ldz + j] =
                z[r * ldz + j] < 0.0f ? 0.0f : z[r * ldz + j]; /* NaN < 0 is false: it stays */
}

SL_KERNEL(sl_kernel_relu_backward,
          (int64_t rows, int64_t cols, float scale, const float *h, int64_t ldh, float *g,
           int64_t ldg),
          (rows, cols, scale, h, ldh, g, ldg))
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++) {
            const float x = scale * g[r * ldg + j]; /* also where it is not wanted: no branch */
            g[r * ldg + j] = h[r * ldh + j] > 0.0f ? x : 0.0f;
        }
}
