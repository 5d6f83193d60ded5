#include "codelets/relu.h"
#include "codelets/vector.h"

SL_KERNEL(sl_kernel_relu, (int64_t rows, int64_t cols, float *z, int64_t ldz), (rows, cols, z, ldz))
{
    sl_join_rows(ldz == cols, &rows, &cols);
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
    sl_join_rows(ldh == cols && ldg == cols, &rows, &cols);
    for (int64_t r = 0; r < rows; r++) {
        const float *restrict const mask = h + r * ldh;
        float *restrict const to = g + r * ldg;
        for (int64_t j = 0; j < cols; j++) {
            const float x = scale * to[j]; /* also where it is not wanted: no branch */
            to[j] = mask[j] > 0.0f ? x : 0.0f;
        }
    }
}
