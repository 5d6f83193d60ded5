/* Sums of two matrices, the step of every reduction. */
#include "codelets/accumulate.h"

#include "codelets/bfloat16.h"

SL_KERNEL(sl_kernel_accumulate,
          (int64_t rows, int64_t cols, const float *x, int64_t ldx, float *y, int64_t ldy),
          (rows, cols, x, ldx, y, ldy))
{
    sl_join_rows(ldx == cols && ldy == cols, &rows, &cols);
    for (int64_t r = 0; r < rows; r++) {
        const float *restrict const from = x + r * ldx;
        float *restrict const to = y + r * ldy;
        for (int64_t j = 0; j < cols; j++)
            to[j] += from[j];
    }
}

/* Add `by` times the elements of one row. */
SL_INLINE void add_row(int64_t cols, float by, const void *x, bool half_x, void *y, bool half_y)
{
    const float *restrict from = x;
    const uint16_t *restrict half_from = x;
    float *restrict to = y;
    uint16_t *restrict half_to = y;
    for (int64_t j = 0; j < cols; j++) {
        const float term = by * (half_x ? sl_widen(half_from[j]) : from[j]);
        if (half_y)
            half_to[j] = sl_narrow(sl_widen(half_to[j]) + term);
        else
            to[j] += term;
    }
}

SL_KERNEL(sl_kernel_add_scaled,
          (int64_t rows, int64_t cols, float scale, const float *factor, const struct sl_rows *x,
           const struct sl_rows *y),
          (rows, cols, scale, factor, x, y))
{
    const bool half_x = x->type == SL_BFLOAT16, half_y = y->type == SL_BFLOAT16;
    for (int64_t r = 0; r < rows; r++) {
        const float by = factor ? scale * factor[r] : scale;
        const void *from = sl_rows_at(x, r, 0).data;
        void *to = sl_rows_at(y, r, 0).data;
        if (half_x && half_y)
            add_row(cols, by, from, true, to, true);
        else if (half_x)
            add_row(cols, by, from, true, to, false);
        else if (half_y)
            add_row(cols, by, from, false, to, true);
        else
            add_row(cols, by, from, false, to, false);
    }
}
