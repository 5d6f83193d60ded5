/* Chunks of a row's entries, for walks of attention. Numbers of a chunk lie entry by entry, and
 * within an entry head by head. So logits, exponentials and sums are vectors for one head as well
 * as for many. Then the rows that entries meet are summed head by head, with the sums in registers.
 */
#ifndef SL_CODELETS_KERNELS_ATTENTION_CHUNK_H
#define SL_CODELETS_KERNELS_ATTENTION_CHUNK_H

#include <math.h>
#include <string.h>

#include "codelets/attention.h"
#include "codelets/exponential.h"
#include "codelets/gather.h"

enum {
    ENTRIES = 64,  /* most entries of a chunk */
    LOGITS = 4096, /* most logits of a chunk, over all heads */
    PER_DRAW = 4,  /* heads for which 64 random bits suffice */
    DROPOUT_BITS = 16,
    MOST_PREFETCHED = 256, /* numbers of a row */
};

static const float MOST_POWER = 80.0f; /* e to this power is finite */

/* Entries of a row. An entry has `per` numbers in each of the last arrays: a power of two below
 * sixteen, or a multiple of sixteen. Numbers behind its heads' numbers mean nothing. Entries behind
 * `count` meet the first row with weight 0, up to `all` numbers, a multiple of sixteen. */
struct chunk {
    int64_t count, padded, all;
    const float *row[ENTRIES];           /* the dense row that an entry meets */
    int64_t col[ENTRIES];                /* the number of this row */
    uint32_t to[ENTRIES], from[ENTRIES]; /* the vertices of an entry: row and column of A */
    float weight[LOGITS], alpha[LOGITS];
    float sloped[LOGITS]; /* alpha · the slope of LeakyReLU */
};

SL_INLINE int64_t numbers_per_entry(int64_t heads)
{
    int64_t per = 1;
    SL_UNROLL for (int i = 0; i < 4; i++) per *=
        per < heads ? 2 : 1; /* a power of two up to sixteen */
    return heads <= SL_SIXTEEN ? per : (heads + SL_SIXTEEN - 1) / SL_SIXTEEN * SL_SIXTEEN;
}

SL_INLINE int64_t chunk_entries(int64_t per)
{
    const int64_t most = LOGITS / per / SL_SIXTEEN * SL_SIXTEEN;
    return most < ENTRIES ? most : ENTRIES;
}

/* Return after how many numbers the heads begin anew at a multiple of sixteen. */
SL_INLINE int64_t period_of(int64_t per)
{
    return per > SL_SIXTEEN ? per : SL_SIXTEEN;
}

/* ---- Parts of a chunk ---- */

/* Prefetch the rows of DENSE that the entries behind a chunk meet: COUNT entries from e on, as far
 * as they exist. COUNT > 0, so the tile has entries. An entry of the next block is taken for an
 * entry of this block, so another row may be prefetched. */
SL_INLINE void prefetch_rows(const struct sl_sparse *a, int64_t block, uint32_t e, int64_t count,
                             const struct sl_floats_at *dense)
{
    const uint32_t last = a->row_ptr[a->blocks * a->rows] - 1;
    const int64_t numbers = dense->ld < MOST_PREFETCHED ? dense->ld : MOST_PREFETCHED;
    for (int64_t k = 0; k < count; k++) {
        const uint32_t coming = e + (uint32_t)k < last ? e + (uint32_t)k : last;
        const float *const row =
            dense->data + (block * a->block_cols + sl_sparse_col(a, coming)) * dense->ld;
        for (int64_t j = 0; j < numbers; j += 16)
            __builtin_prefetch(row + j);
    }
}

/* Read entries e … e + count - 1 of block `block` into a chunk; they meet rows of DENSE. Sums of
 * rows take pairs of entries. */
SL_INLINE void read_entries(const struct sl_sparse *a, int64_t block, uint32_t e, int64_t count,
                            const struct sl_floats_at *dense, int64_t per, struct chunk *c)
{
    const int64_t unit = per < SL_EIGHT ? SL_SIXTEEN / per : 2;
    c->count = count;
    c->padded = (count + unit - 1) / unit * unit;
    c->all = c->padded * per;
    prefetch_rows(a, block, e + (uint32_t)sl_gather_ahead(dense->ld * 4), count, dense);
    for (int64_t k = 0; k < count; k++) {
        const int64_t col = block * a->block_cols + sl_sparse_col(a, e + (uint32_t)k);
        c->row[k] = dense->data + col * dense->ld;
        c->col[k] = col;
    }
    for (int64_t k = count; k < c->padded; k++) {
        c->row[k] = c->row[0];
        c->col[k] = c->col[0];
    }
    for (int64_t k = 0; k < c->padded; k++) {
        const float weight = k >= count ? 0.0f : a->value ? a->value[e + (uint32_t)k] : 1.0f;
        for (int64_t h = 0; h < per; h++)
            c->weight[k * per + h] = weight;
    }
}

/* Set x = weight · e^(x - top); TOP (period). */
SL_INLINE void exponentiate(const struct chunk *c, int64_t per, const float *top, float *restrict x)
{
    const int64_t period = period_of(per);
    for (int64_t i = 0; i < c->all; i += period)
        for (int64_t j = 0; j < period; j += SL_LANES) {
            sl_floats *const at = (sl_floats *)(x + i + j);
            *at = sl_exponential(*at - *(const sl_floats *)(top + j)) *
                  *(const sl_floats *)(c->weight + i + j);
        }
}

/* Set SUM (heads) to the sums of x over the entries. With few heads, a sum has several of sixteen
 * lanes, which are added one after the other. */
SL_INLINE void sum_heads(const struct chunk *c, int64_t heads, int64_t per, const float *restrict x,
                         float *sum)
{
    const int64_t period = period_of(per);
    for (int64_t first = 0; first < heads; first += SL_SIXTEEN) {
        sl_floats lanes[SL_SIXTEEN_VECTORS] = {{0}};
        float of[SL_SIXTEEN];
        for (int64_t i = first; i < c->all; i += period)
            SL_UNROLL for (int v = 0; v < SL_SIXTEEN_VECTORS; v++) lanes[v] +=
                *(const sl_floats *)(x + i + v * SL_LANES);
        if (heads == 1) {
            sum[0] = sl_add_sixteen(lanes);
            return;
        }
        memcpy(of, lanes, sizeof of);
        for (int64_t h = first; h < heads && h < first + SL_SIXTEEN; h++) {
            sum[h] = 0.0f;
            for (int64_t i = h - first; i < SL_SIXTEEN; i += per)
                sum[h] += of[i];
        }
    }
}

/* Multiply x and y by the scale where 16 random bits keep an element, else by 0. */
SL_INLINE void drop_out(const struct sl_dropout *drop, int64_t count, const uint16_t *restrict bits,
                        float *restrict x, float *restrict y)
{
    const uint32_t threshold = drop->threshold;
    const float scale = drop->scale;
    for (int64_t i = 0; i < count; i++) {
        const float factor = bits[i] >= threshold ? scale : 0.0f;
        x[i] *= factor;
        y[i] *= factor;
    }
}

SL_INLINE void multiply(int64_t count, const float *by, float *x)
{
    for (int64_t i = 0; i < count; i += SL_LANES)
        *(sl_floats *)(x + i) *= *(const sl_floats *)(by + i);
}

/* Set x to the lesser of x and `most`; NaN stays. */
SL_INLINE void limit(int64_t count, float most, float *x)
{
    const sl_floats limits = (sl_floats){0} + most;
    for (int64_t i = 0; i < count; i += SL_LANES) {
        sl_floats *const at = (sl_floats *)(x + i);
        *at = (sl_floats)SL_SELECT(sl_ints, (sl_ints)(*at > most), limits, *at);
    }
}

/* Draw BITS (all) for heads h … h + PER_DRAW - 1, as far as they exist. The layer's head h is a
 * multiple of PER_DRAW. */
SL_INLINE void draw_heads(const struct sl_attention *attention, const struct chunk *c, int64_t per,
                          int64_t h, uint16_t *restrict bits)
{
    uint32_t low[ENTRIES], high[ENTRIES];
    const uint64_t draw = (uint64_t)((attention->first_head + h) / PER_DRAW),
                   key = attention->drop.key + draw * UINT64_C(0x9E3779B97F4A7C15);
    for (int64_t k = 0; k < c->padded; k++)
        sl_rng_block(key, c->to[k], c->from[k], &low[k], &high[k]);
    for (int64_t i = h < 0 ? -h : 0; i < PER_DRAW && h + i < attention->heads; i++) {
        const uint32_t *const word = i < 2 ? low : high;
        const int shift = i % 2 ? DROPOUT_BITS : 0;
        for (int64_t k = 0; k < c->padded; k++)
            bits[k * per + h + i] = (uint16_t)(word[k] >> shift);
    }
}

/* Drop out alpha and sloped of all entries and heads of a chunk. */
SL_INLINE void drop_all(const struct sl_attention *attention, int64_t per, struct chunk *c)
{
    uint16_t bits[LOGITS];
    if (per != attention->heads)
        memset(bits, 0, (size_t)c->all * sizeof *bits);
    for (int64_t k = c->count; k < c->padded; k++)
        c->to[k] = c->from[k] = 0;
    for (int64_t h = -(attention->first_head % PER_DRAW); h < attention->heads; h += PER_DRAW)
        draw_heads(attention, c, per, h, bits);
    drop_out(&attention->drop, c->all, bits, c->alpha, c->sloped);
}

/* Return the number of a vertex, which a row holds as bits. */
SL_INLINE uint32_t vertex_at(const float *at)
{
    uint32_t vertex;
    memcpy(&vertex, at, sizeof vertex);
    return vertex ^ SL_ATTENTION_VERTEX;
}

/* ---- Sums of rows ---- */

/* Add a chunk's rows to columns j …, `vectors` vectors of `type`, of the head whose numbers begin
 * at ALPHA and SLOPED: X += Σ_k alpha(k)·row(k), Y += Σ_k sloped(k)·row(k). Even and odd entries
 * have sums of their own. */
#define DEFINE_ADD(name, type, vectors)                                                  \
    SL_INLINE void name(const struct chunk *c, int64_t per, const float *alpha,          \
                        const float *sloped, int64_t j, bool both, float *x, float *y)   \
    {                                                                                    \
        type even[vectors], odd[vectors], even_y[vectors], odd_y[vectors];               \
        SL_UNROLL for (int v = 0; v < (vectors); v++)                                    \
        {                                                                                \
            even[v] = ((const type *)x)[v];                                              \
            even_y[v] = both ? ((const type *)y)[v] : (type){0};                         \
            odd[v] = odd_y[v] = (type){0};                                               \
        }                                                                                \
        for (int64_t k = 0; k < c->count; k += 2, alpha += 2 * per, sloped += 2 * per) { \
            const type *const ones = (const type *)(c->row[k] + j),                      \
                              *const others = (const type *)(c->row[k + 1] + j);         \
            SL_UNROLL for (int v = 0; v < (vectors); v++)                                \
            {                                                                            \
                const type one = ones[v], other = others[v];                             \
                even[v] += alpha[0] * one;                                               \
                odd[v] += alpha[per] * other;                                            \
                if (both) {                                                              \
                    even_y[v] += sloped[0] * one;                                        \
                    odd_y[v] += sloped[per] * other;                                     \
                }                                                                        \
            }                                                                            \
        }                                                                                \
        SL_UNROLL for (int v = 0; v < (vectors); v++)                                    \
        {                                                                                \
            ((type *)x)[v] = even[v] + odd[v];                                           \
            if (both)                                                                    \
                ((type *)y)[v] = even_y[v] + odd_y[v];                                   \
        }                                                                                \
    }
enum { WIDE = SL_LANES < SL_SIXTEEN ? 2 : 1 }; /* vectors of a slice: 8 sums in registers */
DEFINE_ADD(add_wide, sl_floats, WIDE)
DEFINE_ADD(add_short, sl_short, 1)
#undef DEFINE_ADD

/* Add rows to the last columns, fewer than a short vector, where rows end with them. */
SL_INLINE void add_rest(const struct chunk *c, int64_t per, const float *alpha, const float *sloped,
                        int64_t j, int64_t count, bool both, float *x, float *y)
{
    for (int64_t k = 0; k < c->count; k++)
        for (int64_t i = 0; i < count; i++) {
            x[i] += alpha[k * per] * c->row[k][j + i];
            if (both)
                y[i] += sloped[k * per] * c->row[k][j + i];
        }
}

/* Add rows to `count` columns, fewer than a vector, where rows have room for a whole vector. */
SL_INLINE void add_lanes(const struct chunk *c, int64_t per, const float *alpha,
                         const float *sloped, int64_t j, int64_t count, bool both, float *x,
                         float *y)
{
    float wide[SL_SHORT_LANES] = {0}, wide_y[SL_SHORT_LANES] = {0};
    memcpy(wide, x, (size_t)count * sizeof *x);
    if (both)
        memcpy(wide_y, y, (size_t)count * sizeof *y);
    add_short(c, per, alpha, sloped, j, both, wide, wide_y);
    memcpy(x, wide, (size_t)count * sizeof *x);
    if (both)
        memcpy(y, wide_y, (size_t)count * sizeof *y);
}

/* X (heads · width) += Σ alpha·row, and, where `both`, Y += Σ sloped·row; the rows have `room`
 * columns. */
SL_INLINE void add_rows(const struct sl_attention *attention, struct chunk *c, int64_t per,
                        int64_t room, bool both, float *x, float *y)
{
    for (int64_t h = 0; h < attention->heads; h++) {
        const float *const alpha = c->alpha + h, *const sloped = c->sloped + h;
        int64_t j = h * attention->width;
        const int64_t end = j + attention->width;
        for (; j + WIDE * SL_LANES <= end; j += WIDE * SL_LANES)
            add_wide(c, per, alpha, sloped, j, both, x + j, y + j);
        for (; j + SL_SHORT_LANES <= end; j += SL_SHORT_LANES)
            add_short(c, per, alpha, sloped, j, both, x + j, y + j);
        if (j < end && j + SL_SHORT_LANES <= room)
            add_lanes(c, per, alpha, sloped, j, end - j, both, x + j, y + j);
        else if (j < end)
            add_rest(c, per, alpha, sloped, j, end - j, both, x + j, y + j);
    }
}

/* ---- Maxima ---- */

SL_INLINE float larger(float a, float b)
{
    return b > a ? b : a;
}

/* Set TOP (heads) to the largest logits of entries with a weight; -infinity without such an entry.
 */
SL_INLINE void find_largest(const struct chunk *c, int64_t heads, int64_t per, float *top)
{
    const int64_t period = period_of(per);
    const sl_floats least = (sl_floats){0} - INFINITY;
    for (int64_t first = 0; first < heads; first += SL_SIXTEEN) {
        sl_floats most[SL_SIXTEEN_VECTORS];
        float of[SL_SIXTEEN];
        SL_UNROLL for (int v = 0; v < SL_SIXTEEN_VECTORS; v++) most[v] = least;
        for (int64_t i = first; i < c->all; i += period)
            SL_UNROLL for (int v = 0; v < SL_SIXTEEN_VECTORS; v++)
            {
                const int64_t at = i + v * SL_LANES;
                const sl_ints weighs = (sl_ints)(*(const sl_floats *)(c->weight + at) > 0.0f);
                const sl_floats with = (sl_floats)SL_SELECT(
                    sl_ints, weighs, *(const sl_floats *)(c->alpha + at), least);
                const sl_ints more = (sl_ints)(with > most[v]);
                most[v] = (sl_floats)SL_SELECT(sl_ints, more, with, most[v]);
            }
        if (heads == 1) {
            top[0] = -INFINITY;
            SL_UNROLL for (int i = 0; i < SL_SIXTEEN; i++) top[0] =
                larger(top[0], most[i / SL_LANES][i % SL_LANES]);
            return;
        }
        memcpy(of, most, sizeof of);
        for (int64_t h = first; h < heads && h < first + SL_SIXTEEN; h++) {
            top[h] = -INFINITY;
            for (int64_t i = h - first; i < SL_SIXTEEN; i += per)
                top[h] = larger(top[h], of[i]);
        }
    }
}

/* Repeat the heads' numbers, with which TOP (period) begins, with 0 for heads that do not exist. */
SL_INLINE void repeat(int64_t heads, int64_t per, float *top)
{
    for (int64_t h = heads; h < per; h++)
        top[h] = 0.0f;
    for (int64_t i = per; i < period_of(per); i++)
        top[i] = top[i - per];
}

SL_INLINE void scale(int64_t count, float by, float *restrict x)
{
    for (int64_t i = 0; i < count; i++)
        x[i] *= by;
}

SL_INLINE void add_head(int64_t count, float by, const float *restrict from, float *restrict to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += by * from[i];
}

#endif
