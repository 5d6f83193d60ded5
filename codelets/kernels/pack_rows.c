#include "codelets/pack_rows.h"

#include <string.h>

#include "codelets/bfloat16.h"

SL_KERNEL(sl_kernel_pack_rows,
          (int64_t count, int64_t cols, const uint32_t *index, const struct sl_rows *x,
           const struct sl_rows *y),
          (count, cols, index, x, y))
{
    enum { AHEAD = 8 }; /* rows between prefetching a row and copying it */
    const size_t bytes = (size_t)cols * sl_type_size(y->type);
    for (int64_t r = 0; r < count; r++) {
        if (r + AHEAD < count)
            __builtin_prefetch(sl_rows_at(x, index[r + AHEAD], 0).data);
        memcpy(sl_rows_at(y, r, 0).data, sl_rows_at(x, index[r], 0).data, bytes);
    }
}

static void add_rows(int64_t count, int64_t cols, const uint32_t *index, const float *restrict x,
                     int64_t ldx, float *restrict y, int64_t ldy)
{
    for (int64_t r = 0; r < count; r++)
        for (int64_t j = 0; j < cols; j++)
            y[index[r] * ldy + j] += x[r * ldx + j];
}

static void add_half_rows(int64_t count, int64_t cols, const uint32_t *index, const uint16_t *x,
                          int64_t ldx, uint16_t *y, int64_t ldy)
{
    for (int64_t r = 0; r < count; r++)
        for (int64_t j = 0; j < cols; j++) {
            uint16_t *to = &y[index[r] * ldy + j];
            *to = sl_narrow(sl_widen(*to) + sl_widen(x[r * ldx + j]));
        }
}

SL_KERNEL(sl_kernel_unpack_rows,
          (int64_t count, int64_t cols, const uint32_t *index, bool accumulate,
           const struct sl_rows *x, const struct sl_rows *y),
          (count, cols, index, accumulate, x, y))
{
    const size_t bytes = (size_t)cols * sl_type_size(y->type);
    if (accumulate && y->type == SL_BFLOAT16)
        add_half_rows(count, cols, index, x->data, x->ld, y->data, y->ld);
    else if (accumulate)
        add_rows(count, cols, index, x->data, x->ld, y->data, y->ld);
    else
        for (int64_t r = 0; r < count; r++)
            memcpy(sl_rows_at(y, index[r], 0).data, sl_rows_at(x, r, 0).data, bytes);
}
