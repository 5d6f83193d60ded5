/* The parts of a row's state in attention whose scores need both ends' rows. */
#ifndef SL_CODELETS_KERNELS_PAIR_STATE_H
#define SL_CODELETS_KERNELS_PAIR_STATE_H

#include "codelets/kernels/attention_chunk.h"
#include "codelets/pair.h"

struct parts {
    float *z, *m, *l, *b;
    int64_t features; /* of B: 0 where there is none */
};

SL_INLINE struct parts parts_of(const struct sl_pair *pair, float *state)
{
    const int64_t all = sl_pair_all(pair), heads = pair->attention.heads;
    return (struct parts){state, state + all, state + all + heads, state + all + 2 * heads,
                          pair->products ? pair->edges : 0};
}

SL_INLINE void scale_head(const struct sl_attention *attention, const struct parts *to, int64_t h,
                          float by)
{
    to->l[h] *= by;
    scale(attention->width, by, to->z + h * attention->width);
    for (int64_t f = 0; f < to->features; f++)
        to->b[f * attention->heads + h] *= by;
}

#endif
