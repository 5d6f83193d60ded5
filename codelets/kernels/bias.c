#include "codelets/bias.h"

#include "codelets/bfloat16.h"

SL_KERNEL(sl_kernel_bias_gradient,
          (int64_t rows, int64_t cols, const float *factor, const struct sl_rows *g, float *db),
          (rows, cols, factor, g, db))
{
    for (int64_t j = 0; j < cols; j++)
        db[j] = 0.0f;
    for (int64_t r = 0; r < rows; r++) {
        const float f = factor ? factor[r] : 1.0f;
        const float *row = (const float *)g->data + r * g->ld;
        const uint16_t *half = (const uint16_t *)g->data + r * g->ld;
        float *restrict const to = db;
        if (g->type == SL_FLOAT32)
            for (int64_t j = 0; j < cols; j++)
                to[j] += f * row[j];
        else
            for (int64_t j = 0; j < cols; j++)
                to[j] += f * sl_widen(half[j]);
    }
}
