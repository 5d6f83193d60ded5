/* States of attention whose scores need both ends' rows: merged, and closed. */
#include "codelets/kernels/pair_edges.h"
#include "codelets/kernels/pair_state.h"

SL_INLINE void merge_head(const struct sl_attention *attention, const struct parts *from, int64_t h,
                          const struct parts *to)
{
    const int64_t at = h * attention->width;
    if (from->l[h] == 0.0f)
        return;
    if (to->l[h] == 0.0f)
        to->m[h] = from->m[h];
    const float top = larger(from->m[h], to->m[h]), by = expf(from->m[h] - top);
    if (top > to->m[h])
        scale_head(attention, to, h, expf(to->m[h] - top));
    to->m[h] = top;
    to->l[h] += by * from->l[h];
    add_head(attention->width, by, from->z + at, to->z + at);
    for (int64_t f = 0; f < to->features; f++) {
        const int64_t i = f * attention->heads + h;
        to->b[i] = sl_add_product(to->b[i], by, from->b[i]);
    }
}

SL_KERNEL(sl_kernel_pair_merge,
          (const struct sl_pair *pair, int64_t rows, const uint32_t *index,
           const struct sl_floats_at *other, const struct sl_floats_at *state),
          (pair, rows, index, other, state))
{
    const struct sl_attention *const attention = &pair->attention;
    for (int64_t r = 0; r < rows; r++) {
        const struct parts from = parts_of(pair, other->data + r * other->ld),
                           to = parts_of(pair, state->data + (index ? index[r] : r) * state->ld);
        for (int64_t h = 0; h < attention->heads; h++)
            merge_head(attention, &from, h, &to);
    }
}

SL_KERNEL(sl_kernel_pair_close,
          (const struct sl_pair *pair, int64_t rows, const struct sl_floats_at *vectors,
           const struct sl_floats_at *target, const struct sl_floats_at *state),
          (pair, rows, vectors, target, state))
{
    const struct sl_attention *const attention = &pair->attention;
    for (int64_t r = 0; r < rows; r++) {
        const struct parts to = parts_of(pair, state->data + r * state->ld);
        float *const l = target->data + r * target->ld + sl_attention_all(attention);
        for (int64_t h = 0; h < attention->heads; h++) {
            const float sum = to.l[h];
            if (sum > 0.0f)
                scale_head(attention, &to, h, 1.0f / sum);
            l[h] = to.m[h] = sum > 0.0f ? to.m[h] + logf(sum) : 0.0f;
            if (to.features)
                add_head_edges(pair, vectors, h, attention->width, to.b,
                               to.z + h * attention->width, to.z + h * attention->width);
        }
    }
}
