/* The largest of several matrices, element by element, and the gradient of each matrix. */
#include "codelets/jump_max.h"

#include "codelets/bfloat16.h"

/* Compare a row with the largest so far. Where X is bfloat16, its scaled value is rounded first. */
SL_INLINE void meet_row(int64_t cols, int32_t number, float factor, const void *x, bool half,
                        void *m, int32_t *restrict argmax)
{
    const float *restrict from = x;
    const uint16_t *restrict half_from = x;
    float *restrict to = m;
    uint16_t *restrict half_to = m;
    for (int64_t j = 0; j < cols; j++) {
        const uint16_t rounded = half ? sl_narrow(factor * sl_widen(half_from[j])) : 0;
        const float value = half ? sl_widen(rounded) : factor * from[j];
        const float largest = half ? sl_widen(half_to[j]) : to[j];
        const bool wins = number == 0 || value > largest || value != value;
        if (half)
            half_to[j] = wins ? rounded : half_to[j];
        else
            to[j] = wins ? value : largest;
        argmax[j] = wins ? number : argmax[j];
    }
}

SL_KERNEL(sl_kernel_jump_max,
          (int64_t rows, int64_t cols, int32_t number, const float *factor, const struct sl_rows *x,
           const struct sl_rows *m, int32_t *argmax, int64_t ldc),
          (rows, cols, number, factor, x, m, argmax, ldc))
{
    const bool half = m->type == SL_BFLOAT16;
    for (int64_t r = 0; r < rows; r++) {
        const float by = factor ? factor[r] : 1.0f;
        const void *from = sl_rows_at(x, r, 0).data;
        void *to = sl_rows_at(m, r, 0).data;
        if (half)
            meet_row(cols, number, by, from, true, to, argmax + r * ldc);
        else
            meet_row(cols, number, by, from, false, to, argmax + r * ldc);
    }
}

SL_INLINE void select_row(int64_t cols, int32_t number, const void *g, bool half,
                          const int32_t *restrict argmax, bool accumulate, float *restrict d)
{
    const float *restrict from = g;
    const uint16_t *restrict half_from = g;
    for (int64_t j = 0; j < cols; j++) {
        const float term = half ? sl_widen(half_from[j]) : from[j];
        d[j] = (accumulate ? d[j] : 0.0f) + (argmax[j] == number ? term : 0.0f);
    }
}

SL_KERNEL(sl_kernel_jump_max_back,
          (int64_t rows, int64_t cols, int32_t number, const struct sl_rows *g,
           const int32_t *argmax, int64_t ldc, bool accumulate, float *d, int64_t ldd),
          (rows, cols, number, g, argmax, ldc, accumulate, d, ldd))
{
    const bool half = g->type == SL_BFLOAT16;
    for (int64_t r = 0; r < rows; r++) {
        const void *from = sl_rows_at(g, r, 0).data;
        if (half)
            select_row(cols, number, from, true, argmax + r * ldc, accumulate, d + r * ldd);
        else
            select_row(cols, number, from, false, argmax + r * ldc, accumulate, d + r * ldd);
    }
}
