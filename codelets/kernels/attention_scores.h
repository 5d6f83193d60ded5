/* Scores of a chunk's entries: sums over a head's columns. Their terms lie side by side, for all
 * heads and entries of a chunk, and neighbours are added until one number is left for each head. */
#ifndef SL_CODELETS_KERNELS_ATTENTION_SCORES_H
#define SL_CODELETS_KERNELS_ATTENTION_SCORES_H

#include "codelets/kernels/attention_chunk.h"

enum {
    TERMS = 2 * SL_ATTENTION_HEADS * SL_SIXTEEN, /* terms of two entries at least */
    WANTED_TERMS = 4096,                         /* of a chunk: the first-level cache has them */
};

/* Rows that entries meet, and the own row that all of them meet. Products do not read `even` and
 * `odd`. */
struct meeting {
    const float *const *row;
    const float *own, *even, *odd;
};

/* Return how many terms of a head are added up at last. */
SL_INLINE int64_t terms_of(int64_t room)
{
    return room % SL_SIXTEEN == 0 ? SL_SIXTEEN : room < SL_EIGHT ? room : SL_EIGHT;
}

SL_INLINE int64_t entries_of(int64_t per, int64_t terms)
{
    const int64_t unit = per < SL_EIGHT ? SL_SIXTEEN / per : 2,
                  wanted = WANTED_TERMS / (per * terms) / unit * unit, most = chunk_entries(per),
                  some = wanted < unit ? unit : wanted;
    return some < most ? some : most;
}

SL_INLINE sl_floats size_of(sl_floats x)
{
    return (sl_floats)((sl_ints)x & INT32_MAX);
}

SL_INLINE sl_short short_size_of(sl_short x)
{
    return (sl_short)((sl_short_ints)x & INT32_MAX);
}

SL_INLINE float term(const struct meeting *m, const float *row, int64_t j, bool products)
{
    const float x = products ? row[j] * m->own[j] : row[j] + m->own[j];
    return products ? x : sl_add_product(m->even[j] * x, m->odd[j], fabsf(x));
}

/* ---- Scores ---- */

/* Return the terms of a vector of columns, from column j on. */
SL_INLINE sl_floats terms_at(const struct meeting *m, const float *row, int64_t j, bool products)
{
    const sl_floats one = *(const sl_floats *)(row + j), other = *(const sl_floats *)(m->own + j),
                    x = one + other;
    return products ? one * other
                    : *(const sl_floats *)(m->even + j) * x +
                          *(const sl_floats *)(m->odd + j) * size_of(x);
}

/* Set TERMS to the terms of an entry's `all` columns, one for each column. */
SL_INLINE void columns_of(const struct meeting *m, const float *row, int64_t all, bool products,
                          float *terms)
{
    const int64_t wide = all / SL_LANES * SL_LANES, whole = all / SL_SHORT_LANES * SL_SHORT_LANES;
    for (int64_t j = 0; j < wide; j += SL_LANES)
        *(sl_floats *)(terms + j) = terms_at(m, row, j, products);
    for (int64_t j = wide; j < whole; j += SL_SHORT_LANES) {
        const sl_short one = *(const sl_short *)(row + j), other = *(const sl_short *)(m->own + j);
        if (products) {
            *(sl_short *)(terms + j) = one * other;
        } else {
            const sl_short x = one + other;
            *(sl_short *)(terms + j) = *(const sl_short *)(m->even + j) * x +
                                       *(const sl_short *)(m->odd + j) * short_size_of(x);
        }
    }
    for (int64_t j = whole; j < all; j++)
        terms[j] = term(m, row, j, products);
}

/* Set TERMS (terms) to the sums of a head's columns, every `terms`-th in one sum. */
#define DEFINE_HEAD(name, type, size_of_type, vectors)                                          \
    SL_INLINE void name(const struct meeting *m, const float *row, int64_t first, int64_t room, \
                        bool products, float *terms)                                            \
    {                                                                                           \
        type sum[vectors];                                                                      \
        SL_UNROLL for (int v = 0; v < (vectors); v++) sum[v] = (type){0};                       \
        for (int64_t j = first; j < first + room; j += (vectors) * (int64_t)sizeof(type) / 4)   \
            SL_UNROLL for (int v = 0; v < (vectors); v++)                                       \
            {                                                                                   \
                const type one = ((const type *)(row + j))[v],                                  \
                           other = ((const type *)(m->own + j))[v];                             \
                if (products) {                                                                 \
                    sum[v] += one * other;                                                      \
                } else {                                                                        \
                    const type x = one + other;                                                 \
                    sum[v] += ((const type *)(m->even + j))[v] * x;                             \
                    sum[v] += ((const type *)(m->odd + j))[v] * size_of_type(x);                \
                }                                                                               \
            }                                                                                   \
        SL_UNROLL for (int v = 0; v < (vectors); v++)((type *)terms)[v] = sum[v];               \
    }
DEFINE_HEAD(sixteen_of, sl_floats, size_of, SL_SIXTEEN_VECTORS)
DEFINE_HEAD(eight_of, sl_short, short_size_of, SL_EIGHT_VECTORS)
#undef DEFINE_HEAD

/* Set TO (count / 2) to the sums of neighbours in X (count). */
SL_INLINE void add_neighbours(int64_t count, const float *x, float *to)
{
    for (int64_t i = 0; i < count / 2; i += SL_LANES) {
        const sl_floats a = *(const sl_floats *)(x + 2 * i),
                        b = *(const sl_floats *)(x + 2 * i + SL_LANES);
        *(sl_floats *)(to + i) = SL_EVEN(a, b) + SL_ODD(a, b);
    }
}

/* Return sums of neighbours, of a and b in turn: of four lanes of each where a vector has eight. */
SL_INLINE sl_floats neighbours_of(sl_floats a, sl_floats b)
{
#if SL_VECTOR_BYTES == 32
    return __builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14) +
           __builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15);
#else
    return SL_EVEN(a, b) + SL_ODD(a, b);
#endif
}

/* Return the sums of each eight lanes of eight vectors, neighbours first. */
SL_INLINE sl_floats eights_of(const sl_floats *of)
{
    const sl_floats a = neighbours_of(neighbours_of(of[0], of[1]), neighbours_of(of[2], of[3])),
                    b = neighbours_of(neighbours_of(of[4], of[5]), neighbours_of(of[6], of[7]));
#if SL_VECTOR_BYTES == 32
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
           __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
#else
    return neighbours_of(a, b);
#endif
}

/* Set TO (count / 8) to the sums of each eight of X (count). */
SL_INLINE void add_eights(int64_t count, const float *x, float *to)
{
    for (int64_t i = 0; i < count / SL_EIGHT; i += SL_LANES)
        *(sl_floats *)(to + i) = eights_of((const sl_floats *)(x + SL_EIGHT * i));
}

/* Set SCORES as score_all does, for eight heads of eight columns: terms stay in registers. */
SL_INLINE void score_eights(const struct chunk *c, const struct meeting *m, bool products,
                            float *scores)
{
    enum { ALL = SL_EIGHT * SL_EIGHT };
    for (int64_t i = 0; i < c->padded * SL_EIGHT; i += SL_LANES) {
        sl_floats of[SL_EIGHT];
        SL_UNROLL for (int v = 0; v < SL_EIGHT; v++) of[v] =
            terms_at(m, m->row[i / SL_EIGHT + v * SL_LANES / ALL],
                     i % SL_EIGHT * SL_EIGHT + v * SL_LANES % ALL, products);
        *(sl_floats *)(scores + i) = eights_of(of);
    }
}

SL_INLINE void score_all(int64_t heads, int64_t room, const struct chunk *c, int64_t per,
                         const struct meeting *m, bool products, float *scores)
{
    const int64_t each = terms_of(room);
    float terms[TERMS];
    for (int64_t k = 0; k < c->padded; k++) {
        float *const to = terms + k * per * each;
        if (room == each)
            columns_of(m, m->row[k], heads * room, products, to);
        for (int64_t h = 0; room != each && h < heads; h++)
            if (each == SL_SIXTEEN)
                sixteen_of(m, m->row[k], h * room, room, products, to + h * each);
            else
                eight_of(m, m->row[k], h * room, room, products, to + h * each);
        for (int64_t j = heads * each; j < per * each; j++)
            to[j] = 0.0f;
    }
    if (each < SL_EIGHT) {
        for (int64_t left = each; left > 1; left /= 2)
            add_neighbours(c->all * left, terms, terms);
        memcpy(scores, terms, (size_t)c->all * sizeof *scores);
        return;
    }
    if (each == SL_SIXTEEN)
        add_neighbours(c->all * SL_SIXTEEN, terms, terms);
    add_eights(c->all * SL_EIGHT, terms, scores);
}

/* Heads and room of usual layers are constants at compile time. */
SL_INLINE void score_usual(const struct sl_attention *attention, const struct chunk *c, int64_t per,
                           const struct meeting *m, bool products, float *scores)
{
    if (attention->heads == SL_EIGHT && attention->width == SL_EIGHT)
        score_eights(c, m, products, scores);
    else if (attention->heads == 1 && attention->width == SL_EIGHT)
        score_all(1, SL_EIGHT, c, 1, m, products, scores);
    else
        score_all(attention->heads, attention->width, c, per, m, products, scores);
}

/* Functions of a chunk are not inlined: constants of several in one function would not fit into
 * registers. */
#define SL_APART static __attribute__((noinline))

/* Set SCORES to the scores of a chunk; 0 for heads that do not exist. */
SL_APART void score_products(const struct sl_attention *attention, const struct chunk *c,
                             int64_t per, const struct meeting *m, float *scores)
{
    score_usual(attention, c, per, m, true, scores);
}

#endif
