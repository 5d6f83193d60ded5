/* Numbers of a row's heads, and sums of features of a row's edges: products with W_e, head by head.
 * Numbers (features, heads) are as codelets/pair.h has them. */
#ifndef SL_CODELETS_KERNELS_PAIR_EDGES_H
#define SL_CODELETS_KERNELS_PAIR_EDGES_H

#include <string.h>

#include "codelets/pair.h"
#include "codelets/vector.h"

/* Return row f of W_e. */
SL_INLINE const float *edge_weights(const struct sl_floats_at *vectors, int64_t f)
{
    return vectors->data + (SL_PAIR_VECTORS + f) * vectors->ld;
}

/* Return the sum of `room` products, of fewer than eight columns. */
SL_INLINE float multiply_few(int64_t room, const float *x, const float *y)
{
    float sum = 0.0f;
    for (int64_t j = 0; j < room; j++)
        sum = sl_add_product(sum, x[j], y[j]);
    return sum;
}

/* Return the sums of neighbours of vectors of eight, of a and b in turn. */
#if SL_SHORT_BYTES == 32
#define NEIGHBOURS(a, b)                                        \
    (__builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14) + \
     __builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15))
#endif

/* Set SUM to the sums of eight lanes each, neighbours first. */
SL_INLINE void add_lanes_of_eight(const sl_short (*of)[SL_EIGHT_VECTORS], float *sum)
{
#ifdef NEIGHBOURS
    const sl_short a = NEIGHBOURS(NEIGHBOURS(of[0][0], of[1][0]), NEIGHBOURS(of[2][0], of[3][0])),
                   b = NEIGHBOURS(NEIGHBOURS(of[4][0], of[5][0]), NEIGHBOURS(of[6][0], of[7][0]));
    *(sl_short *)sum = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
                       __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
#else
    for (int v = 0; v < SL_EIGHT; v++) {
        float x[SL_EIGHT];
        memcpy(x, of[v], sizeof x);
        sum[v] = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
    }
#endif
}

#undef NEIGHBOURS

/* Set N (features, heads) to W_e·X, where a head has eight columns or a multiple: eight numbers at
 * a time. */
SL_INLINE void multiply_eights(const struct sl_pair *pair, int64_t heads, int64_t room,
                               const struct sl_floats_at *vectors, const float *x, float *n)
{
    const int64_t count = pair->edges * heads;
    const float *w = edge_weights(vectors, 0);
    float sum[SL_EIGHT];
    for (int64_t i = 0, h = 0; i < count; i += SL_EIGHT) {
        sl_short of[SL_EIGHT][SL_EIGHT_VECTORS] = {{{0}}};
        const int64_t many = count - i < SL_EIGHT ? count - i : SL_EIGHT;
        SL_UNROLL for (int v = 0; v < SL_EIGHT; v++)
        {
            if (v >= many)
                break;
            for (int64_t j = h * room; j < (h + 1) * room; j += SL_EIGHT)
                SL_UNROLL for (int l = 0; l < SL_EIGHT_VECTORS; l++) of[v][l] +=
                    ((const sl_short *)(w + j))[l] * ((const sl_short *)(x + j))[l];
            h++;
            w += h == heads ? vectors->ld : 0;
            h = h == heads ? 0 : h;
        }
        add_lanes_of_eight(of, sum);
        memcpy(n + i, sum, (size_t)many * sizeof *n);
    }
}

/* Set N (features, heads) to W_e·X, with X (H·R). */
SL_INLINE void multiply_edges(const struct sl_pair *pair, const struct sl_floats_at *vectors,
                              const float *x, float *n)
{
    const int64_t heads = pair->attention.heads, room = pair->attention.width;
    if (heads == SL_EIGHT && room == SL_EIGHT)
        multiply_eights(pair, SL_EIGHT, SL_EIGHT, vectors, x, n);
    else if (room >= SL_EIGHT)
        multiply_eights(pair, heads, room, vectors, x, n);
    else
        for (int64_t f = 0; f < pair->edges; f++)
            for (int64_t h = 0; h < heads; h++)
                n[f * heads + h] =
                    multiply_few(room, edge_weights(vectors, f) + h * room, x + h * room);
}

/* Set the `count` columns of head h of TO, and X, to X + N·W_e. */
SL_INLINE void add_head_edges(const struct sl_pair *pair, const struct sl_floats_at *vectors,
                              int64_t h, int64_t count, const float *n, const float *x, float *to)
{
    const int64_t heads = pair->attention.heads;
    const float *const w = edge_weights(vectors, 0) + h * pair->attention.width;
    int64_t j = 0;
    for (; j + SL_SHORT_LANES <= count; j += SL_SHORT_LANES) {
        sl_short sum = *(const sl_short *)(x + j);
        for (int64_t f = 0; f < pair->edges; f++)
            sum += n[f * heads + h] * *(const sl_short *)(w + f * vectors->ld + j);
        *(sl_short *)(to + j) = sum;
    }
    for (; j < count; j++) {
        float sum = x[j];
        for (int64_t f = 0; f < pair->edges; f++)
            sum = sl_add_product(sum, n[f * heads + h], w[f * vectors->ld + j]);
        to[j] = sum;
    }
}

#endif
