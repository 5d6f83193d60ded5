/* Features of a chunk's entries, F (count, features), in walks of codelets/kernels/pair.c. */
#ifndef SL_CODELETS_KERNELS_ATTENTION_EDGES_H
#define SL_CODELETS_KERNELS_ATTENTION_EDGES_H

#include "codelets/kernels/attention_chunk.h"
#include "codelets/kernels/pair_edges.h"

enum {
    /* Columns of all rows of a chunk. The widest row fits, padded by 7 columns for each head. */
    EDGE_COLUMNS = SL_ATTENTION_COLUMNS + (SL_EIGHT - 1) * SL_ATTENTION_HEADS,
    WANTED_EDGE_COLUMNS = 8192, /* they share the first-level cache with other rows */
    FEATURES = 4,               /* features, or entries, that share a load */
};

/* Features of a chunk. GATv2 has rows of its entries: the rows met, plus those of edges. */
struct edge_chunk {
    int64_t features;
    const float *feature;         // (count, features)
    const float *row[ENTRIES];    // (padded)
    const float *number[ENTRIES]; // (padded): a transformer's numbers of an entry
    float at[EDGE_COLUMNS];       // (count, H·R)
};

/* Return how many entries a chunk has whose rows of edges are stored. */
SL_INLINE int64_t stored_entries(int64_t per, int64_t all, int64_t most)
{
    const int64_t unit = per < SL_EIGHT ? SL_SIXTEEN / per : 2, room = EDGE_COLUMNS / all,
                  least = room < unit ? room : unit, wanted = WANTED_EDGE_COLUMNS / all,
                  some = wanted > least ? wanted / least * least : least;
    return some < most ? some : most;
}

/* ---- Rows of edges ---- */

/* Add F·W_e to columns j … of `many` rows of entries k … */
#define DEFINE_ADD(name, type)                                                                   \
    SL_INLINE void name(const struct chunk *c, struct edge_chunk *e, int64_t k, int many,        \
                        int64_t all, const struct sl_floats_at *vectors, int64_t j)              \
    {                                                                                            \
        type sum[FEATURES];                                                                      \
        const float *const feature = e->feature + k * e->features;                               \
        for (int i = 0; i < many; i++)                                                           \
            sum[i] = *(const type *)(c->row[k + i] + j);                                         \
        for (int64_t f = 0; f < e->features; f++) {                                              \
            const type w = *(const type *)(edge_weights(vectors, f) + j);                        \
            SL_UNROLL for (int i = 0; i < many; i++) sum[i] += feature[i * e->features + f] * w; \
        }                                                                                        \
        for (int i = 0; i < many; i++)                                                           \
            *(type *)(e->at + (k + i) * all + j) = sum[i];                                       \
    }
DEFINE_ADD(add_wide_edges, sl_floats)
DEFINE_ADD(add_short_edges, sl_short)
#undef DEFINE_ADD

SL_INLINE void add_entry_edges(const struct chunk *c, struct edge_chunk *e, int64_t k, int many,
                               int64_t all, const struct sl_floats_at *vectors)
{
    int64_t j = 0;
    for (; j + SL_LANES <= all; j += SL_LANES)
        add_wide_edges(c, e, k, many, all, vectors, j);
    for (; j + SL_SHORT_LANES <= all; j += SL_SHORT_LANES)
        add_short_edges(c, e, k, many, all, vectors, j);
    for (; j < all; j++)
        for (int i = 0; i < many; i++) {
            float sum = c->row[k + i][j];
            for (int64_t f = 0; f < e->features; f++)
                sum = sl_add_product(sum, e->feature[(k + i) * e->features + f],
                                     edge_weights(vectors, f)[j]);
            e->at[(k + i) * all + j] = sum;
        }
}

/* Make the rows of a chunk's entries: the rows they meet, plus F·W_e. */
static __attribute__((noinline)) void make_edge_rows(const struct chunk *c, int64_t all,
                                                     const struct sl_floats_at *vectors,
                                                     struct edge_chunk *e)
{
    int64_t k = 0;
    for (; k + FEATURES <= c->count; k += FEATURES)
        add_entry_edges(c, e, k, FEATURES, all, vectors);
    for (; k < c->count; k++)
        add_entry_edges(c, e, k, 1, all, vectors);
    for (k = 0; k < c->padded; k++)
        e->row[k] = e->at + (k < c->count ? k : 0) * all;
}

/* Turn the rows of edges of a head into de·σ. */
SL_INLINE void slope_head(const struct chunk *c, int64_t per, int64_t h, int64_t room, int64_t all,
                          const float *own, float negative, struct edge_chunk *e)
{
    for (int64_t k = 0; k < c->count; k++) {
        const float de = c->sloped[k * per + h], less = de * negative;
        float *const x = e->at + k * all + h * room;
        for (int64_t j = 0; j < room; j++)
            x[j] = x[j] + own[h * room + j] > 0.0f ? de : less;
    }
}

/* Add rows of edges to columns j … of `many` sums: SUMS += Fᵀ·X. FEATURE NULL: one sum of rows. */
#define DEFINE_ADD(name, type)                                                                     \
    SL_INLINE void name(int64_t count, const struct edge_chunk *e, const float *feature, int many, \
                        int64_t all, int64_t j, float *sums, int64_t ld)                           \
    {                                                                                              \
        type sum[FEATURES];                                                                        \
        for (int i = 0; i < many; i++)                                                             \
            sum[i] = *(const type *)(sums + i * ld + j);                                           \
        for (int64_t k = 0; k < count; k++) {                                                      \
            const type x = *(const type *)(e->at + k * all + j);                                   \
            SL_UNROLL for (int i = 0; i < many; i++) sum[i] +=                                     \
                feature ? (type)(feature[k * e->features + i] * x) : x;                            \
        }                                                                                          \
        for (int i = 0; i < many; i++)                                                             \
            *(type *)(sums + i * ld + j) = sum[i];                                                 \
    }
DEFINE_ADD(sum_wide_edges, sl_floats)
DEFINE_ADD(sum_short_edges, sl_short)
#undef DEFINE_ADD

SL_INLINE void sum_edges(int64_t count, const struct edge_chunk *e, const float *feature, int many,
                         int64_t all, float *sums, int64_t ld)
{
    int64_t j = 0;
    for (; j + SL_LANES <= all; j += SL_LANES)
        sum_wide_edges(count, e, feature, many, all, j, sums, ld);
    for (; j + SL_SHORT_LANES <= all; j += SL_SHORT_LANES)
        sum_short_edges(count, e, feature, many, all, j, sums, ld);
    for (; j < all; j++)
        for (int i = 0; i < many; i++)
            for (int64_t k = 0; k < count; k++)
                sums[i * ld + j] =
                    sl_add_product(sums[i * ld + j], feature ? feature[k * e->features + i] : 1.0f,
                                   e->at[k * all + j]);
}

/* X (H·R) += Σ de σ, and M (features, H·R) += Fᵀ·(de σ), of rows that make_edge_rows made. M NULL:
 * X alone. */
static __attribute__((noinline)) void add_edge_slopes(const struct sl_attention *attention,
                                                      const struct chunk *c, int64_t per,
                                                      const float *own, struct edge_chunk *e,
                                                      float *x, const struct sl_floats_at *m)
{
    const int64_t all = sl_attention_all(attention), room = attention->width,
                  features = m ? e->features : 0;
    for (int64_t h = 0; h < attention->heads; h++)
        if (room == SL_EIGHT)
            slope_head(c, per, h, SL_EIGHT, all, own, attention->slope, e);
        else
            slope_head(c, per, h, room, all, own, attention->slope, e);
    sum_edges(c->count, e, NULL, 1, all, x, 0);
    int64_t f = 0;
    for (; f + FEATURES <= features; f += FEATURES)
        sum_edges(c->count, e, e->feature + f, FEATURES, all, m->data + f * m->ld, m->ld);
    for (; f < features; f++)
        sum_edges(c->count, e, e->feature + f, 1, all, m->data + f * m->ld, m->ld);
}

/* ---- Numbers of edges ---- */

/* Add F·N to heads h …, a short vector of them, of `many` entries k … */
SL_INLINE void add_vectors(const struct edge_chunk *e, int64_t k, int many, int64_t heads,
                           int64_t per, int64_t h, float *x)
{
    sl_short sum[FEATURES];
    const float *const feature = e->feature + k * e->features;
    for (int i = 0; i < many; i++)
        sum[i] = *(const sl_short *)(x + (k + i) * per + h);
    for (int64_t f = 0; f < e->features; f++)
        SL_UNROLL for (int i = 0; i < many; i++) sum[i] +=
            feature[i * e->features + f] * *(const sl_short *)(e->number[k + i] + f * heads + h);
    for (int i = 0; i < many; i++)
        *(sl_short *)(x + (k + i) * per + h) = sum[i];
}

SL_INLINE void add_number(const struct edge_chunk *e, int64_t k, int64_t heads, int64_t h, float *x)
{
    const float *const feature = e->feature + k * e->features, *const n = e->number[k] + h;
    float sum = *x;
    for (int64_t f = 0; f < e->features; f++)
        sum = sl_add_product(sum, feature[f], n[f * heads]);
    *x = sum;
}

SL_INLINE void add_numbers_of(const struct chunk *c, int64_t heads, int64_t per,
                              const struct edge_chunk *e, float *x)
{
    const int64_t whole = heads / SL_SHORT_LANES * SL_SHORT_LANES;
    for (int64_t h = 0; h < whole; h += SL_SHORT_LANES) {
        int64_t k = 0;
        for (; k + FEATURES <= c->count; k += FEATURES)
            add_vectors(e, k, FEATURES, heads, per, h, x);
        for (; k < c->count; k++)
            add_vectors(e, k, 1, heads, per, h, x);
    }
    for (int64_t k = 0; k < c->count; k++)
        for (int64_t h = whole; h < heads; h++)
            add_number(e, k, heads, h, x + k * per + h);
}

/* X (count, per) += F·N, with the numbers N (features, heads) of each entry. */
static __attribute__((noinline)) void add_numbers(const struct chunk *c, int64_t heads, int64_t per,
                                                  const struct edge_chunk *e, float *x)
{
    if (heads == SL_EIGHT)
        add_numbers_of(c, SL_EIGHT, SL_EIGHT, e, x);
    else if (heads == 1)
        add_numbers_of(c, 1, 1, e, x);
    else
        add_numbers_of(c, heads, per, e, x);
}

/* Add the features of heads h …, a short vector of them, to `many` features' numbers. */
SL_INLINE void sum_heads_features(const struct chunk *c, int64_t heads, int64_t per,
                                  const float *feature, int64_t features, int many, const float *x,
                                  float *n)
{
    sl_short sum[FEATURES];
    for (int i = 0; i < many; i++)
        sum[i] = *(const sl_short *)(n + i * heads);
    for (int64_t k = 0; k < c->count; k++) {
        const sl_short weight = *(const sl_short *)(x + k * per);
        SL_UNROLL for (int i = 0; i < many; i++) sum[i] += feature[k * features + i] * weight;
    }
    for (int i = 0; i < many; i++)
        *(sl_short *)(n + i * heads) = sum[i];
}

/* Add the features of one head, which are every `heads`-th number. */
SL_INLINE void sum_head_features(const struct chunk *c, int64_t heads, int64_t per,
                                 const struct edge_chunk *e, const float *x, float *n)
{
    int64_t f = 0;
    for (; f + SL_SHORT_LANES <= e->features; f += SL_SHORT_LANES) {
        float numbers[SL_SHORT_LANES];
        SL_UNROLL for (int i = 0; i < SL_SHORT_LANES; i++) numbers[i] = n[(f + i) * heads];
        sl_short sum = *(const sl_short *)numbers;
        for (int64_t k = 0; k < c->count; k++)
            sum += x[k * per] * *(const sl_short *)(e->feature + k * e->features + f);
        memcpy(numbers, &sum, sizeof sum);
        SL_UNROLL for (int i = 0; i < SL_SHORT_LANES; i++) n[(f + i) * heads] = numbers[i];
    }
    for (; f < e->features; f++)
        for (int64_t k = 0; k < c->count; k++)
            n[f * heads] =
                sl_add_product(n[f * heads], e->feature[k * e->features + f], x[k * per]);
}

SL_INLINE void sum_features_of(const struct chunk *c, int64_t heads, int64_t per,
                               const struct edge_chunk *e, const float *x, float *n)
{
    int64_t h = 0;
    for (; h + SL_SHORT_LANES <= heads; h += SL_SHORT_LANES) {
        int64_t f = 0;
        for (; f + FEATURES <= e->features; f += FEATURES)
            sum_heads_features(c, heads, per, e->feature + f, e->features, FEATURES, x + h,
                               n + f * heads + h);
        for (; f < e->features; f++)
            sum_heads_features(c, heads, per, e->feature + f, e->features, 1, x + h,
                               n + f * heads + h);
    }
    for (; h < heads; h++)
        sum_head_features(c, heads, per, e, x + h, n + h);
}

/* N (features, heads) += Fᵀ·X, with X (count, per). */
static __attribute__((noinline)) void sum_features(const struct chunk *c, int64_t heads,
                                                   int64_t per, const struct edge_chunk *e,
                                                   const float *x, float *n)
{
    if (heads == SL_EIGHT)
        sum_features_of(c, SL_EIGHT, SL_EIGHT, e, x, n);
    else if (heads == 1)
        sum_features_of(c, 1, 1, e, x, n);
    else
        sum_features_of(c, heads, per, e, x, n);
}

#endif
