/* The walks of graph attention. The entries of a row are worked on in chunks. Numbers of a chunk
 * lie entry by entry, and within an entry head by head. So logits, exponentials and sums are
 * vectors for one head as well as for many. Then the rows of P, or G, are summed head by head, with
 * the sums in registers. */
#include "codelets/attention.h"

#include <math.h>
#include <string.h>

#include "codelets/exponential.h"

enum {
    ENTRIES = 64,  /* most entries of a chunk */
    LOGITS = 4096, /* most logits of a chunk, over all heads */
    PER_DRAW = 4,  /* heads for which 64 random bits suffice */
    DROPOUT_BITS = 16,
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

/* Read entries e … e + count - 1 of block `block` into a chunk; they meet rows of DENSE. Sums of
 * rows take pairs of entries. */
SL_INLINE void read_entries(const struct sl_sparse *a, int64_t block, uint32_t e, int64_t count,
                            const struct sl_floats_at *dense, int64_t per, struct chunk *c)
{
    const int64_t unit = per < SL_EIGHT ? SL_SIXTEEN / per : 2;
    c->count = count;
    c->padded = (count + unit - 1) / unit * unit;
    c->all = c->padded * per;
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

/* Set x = LeakyReLU(x), and `slope` to the slope at x. */
SL_INLINE void leak(int64_t count, float negative, float *x, float *slope)
{
    const sl_floats one = (sl_floats){0} + 1.0f, other = (sl_floats){0} + negative;
    for (int64_t i = 0; i < count; i += SL_LANES) {
        sl_floats *const at = (sl_floats *)(x + i), *const of = (sl_floats *)(slope + i);
        *of = (sl_floats)SL_SELECT(sl_ints, (sl_ints)(*at > 0.0f), one, other);
        *at *= *of;
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

/* ---- Forward ---- */

/* Pointers to the parts of a row's state. */
struct parts {
    float *z, *m, *l, *sloped, *q;
};

SL_INLINE struct parts parts_of(const struct sl_attention *attention, float *state)
{
    const int64_t all = sl_attention_all(attention), heads = attention->heads;
    return (struct parts){state, state + all, state + all + heads, state + all + 2 * heads,
                          state + 2 * all + 2 * heads};
}

SL_INLINE void scale(int64_t count, float by, float *restrict x)
{
    for (int64_t i = 0; i < count; i++)
        x[i] *= by;
}

/* Multiply all of head h in the state by `by`, for a larger maximum. */
SL_INLINE void scale_head(const struct sl_attention *attention, const struct parts *to, int64_t h,
                          float by)
{
    to->l[h] *= by;
    scale(attention->width, by, to->z + h * attention->width);
    if (attention->training) {
        to->q[h] *= by;
        scale(attention->width, by, to->sloped + h * attention->width);
    }
}

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

/* Turn logits into weights e^(x - m). A larger maximum scales the state. */
SL_INLINE void weigh(const struct sl_attention *attention, struct chunk *c, int64_t per,
                     const struct parts *to)
{
    float top[SL_ATTENTION_HEADS], sum[SL_ATTENTION_HEADS];
    leak(c->all, attention->slope, c->alpha, c->sloped);
    find_largest(c, attention->heads, per, top);
    for (int64_t h = 0; h < attention->heads; h++) {
        if (to->l[h] == 0.0f) {
            to->m[h] = top[h] == -INFINITY ? 0.0f : top[h];
        } else if (top[h] > to->m[h]) {
            scale_head(attention, to, h, expf(to->m[h] - top[h]));
            to->m[h] = top[h];
        }
        top[h] = to->m[h];
    }
    repeat(attention->heads, per, top);
    exponentiate(c, per, top, c->alpha);
    sum_heads(c, attention->heads, per, c->alpha, sum);
    for (int64_t h = 0; h < attention->heads; h++)
        to->l[h] += sum[h];
    if (!attention->training)
        return;
    multiply(c->all, c->alpha, c->sloped);
    sum_heads(c, attention->heads, per, c->sloped, sum);
    for (int64_t h = 0; h < attention->heads; h++)
        to->q[h] += sum[h];
}

/* Make the logits of a chunk, whose rows of P have t from column `all` on. */
SL_INLINE void add_scores(struct chunk *c, int64_t heads, int64_t per, const float *scores,
                          int64_t all)
{
    for (int64_t k = 0; k < c->padded; k++)
        for (int64_t h = 0; h < per; h++)
            c->alpha[k * per + h] = h < heads ? scores[h] + c->row[k][all + h] : 0.0f;
}

SL_INLINE void meet_chunk(const struct sl_attention *attention, struct chunk *c, int64_t per,
                          const float *scores, int64_t room, bool training, const struct parts *to)
{
    const int64_t all = sl_attention_all(attention);
    add_scores(c, attention->heads, per, scores, all);
    weigh(attention, c, per, to);
    if (training && attention->drop.threshold) {
        for (int64_t k = 0; k < c->count; k++) {
            c->to[k] = vertex_at(scores + 2 * attention->heads);
            c->from[k] = vertex_at(c->row[k] + all + attention->heads);
        }
        drop_all(attention, per, c);
    }
    add_rows(attention, c, per, room, training, to->z, to->sloped);
}

SL_INLINE void meet_all(const struct sl_attention *attention, const struct sl_sparse *a,
                        const struct sl_floats_at *projected, const struct sl_floats_at *scores,
                        bool training, const struct sl_floats_at *state)
{
    const int64_t per = numbers_per_entry(attention->heads), most = chunk_entries(per);
    struct chunk c;
    for (int64_t b = 0; b < a->blocks; b++)
        for (int64_t r = 0; r < a->rows; r++) {
            const struct parts to = parts_of(attention, state->data + r * state->ld);
            const uint32_t end = a->row_ptr[b * a->rows + r + 1];
            for (uint32_t e = a->row_ptr[b * a->rows + r]; e < end;) {
                const int64_t count = end - e < most ? end - e : most;
                read_entries(a, b, e, count, projected, per, &c);
                meet_chunk(attention, &c, per, scores->data + r * scores->ld, projected->ld,
                           training, &to);
                e += (uint32_t)count;
            }
        }
}

/* Meet all entries. `heads` equals attention->heads, and may be a constant at compile time. */
SL_INLINE void meet_heads(const struct sl_attention *attention, int32_t heads,
                          const struct sl_sparse *a, const struct sl_floats_at *projected,
                          const struct sl_floats_at *scores, const struct sl_floats_at *state)
{
    struct sl_attention own = *attention;
    own.heads = heads;
    if (attention->training)
        meet_all(&own, a, projected, scores, true, state);
    else
        meet_all(&own, a, projected, scores, false, state);
}

SL_KERNEL(sl_kernel_attention,
          (const struct sl_attention *attention, const struct sl_sparse *a,
           const struct sl_floats_at *projected, const struct sl_floats_at *scores, bool accumulate,
           const struct sl_floats_at *state),
          (attention, a, projected, scores, accumulate, state))
{
    for (int64_t r = 0; r < a->rows && !accumulate; r++)
        memset(state->data + r * state->ld, 0,
               (size_t)sl_attention_state(attention) * sizeof *state->data);
    if (attention->heads == 1)
        meet_heads(attention, 1, a, projected, scores, state);
    else if (attention->heads == SL_EIGHT)
        meet_heads(attention, SL_EIGHT, a, projected, scores, state);
    else
        meet_heads(attention, attention->heads, a, projected, scores, state);
}

/* ---- Merged and closed ---- */

SL_INLINE void add_head(int64_t count, float by, const float *restrict from, float *restrict to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += by * from[i];
}

SL_INLINE void merge_head(const struct sl_attention *attention, const struct parts *from, int64_t h,
                          const struct parts *to)
{
    const int64_t at = h * attention->width;
    if (from->l[h] == 0.0f)
        return;
    if (to->l[h] == 0.0f)
        to->m[h] = from->m[h];
    const float top = from->m[h] > to->m[h] ? from->m[h] : to->m[h];
    const float by = expf(from->m[h] - top);
    if (top > to->m[h])
        scale_head(attention, to, h, expf(to->m[h] - top));
    to->m[h] = top;
    to->l[h] += by * from->l[h];
    add_head(attention->width, by, from->z + at, to->z + at);
    if (attention->training) {
        to->q[h] += by * from->q[h];
        add_head(attention->width, by, from->sloped + at, to->sloped + at);
    }
}

SL_KERNEL(sl_kernel_attention_merge,
          (const struct sl_attention *attention, int64_t rows, const uint32_t *index,
           const struct sl_floats_at *other, const struct sl_floats_at *state),
          (attention, rows, index, other, state))
{
    for (int64_t r = 0; r < rows; r++) {
        const int64_t into = index ? index[r] : r;
        const struct parts from = parts_of(attention, other->data + r * other->ld),
                           to = parts_of(attention, state->data + into * state->ld);
        for (int64_t h = 0; h < attention->heads; h++)
            merge_head(attention, &from, h, &to);
    }
}

SL_KERNEL(sl_kernel_attention_close,
          (const struct sl_attention *attention, int64_t rows, const struct sl_floats_at *scores,
           const struct sl_floats_at *state),
          (attention, rows, scores, state))
{
    for (int64_t r = 0; r < rows; r++) {
        const struct parts to = parts_of(attention, state->data + r * state->ld);
        float *const l = scores->data + r * scores->ld + attention->heads;
        for (int64_t h = 0; h < attention->heads; h++) {
            const float sum = to.l[h];
            if (sum > 0.0f)
                scale_head(attention, &to, h, 1.0f / sum);
            l[h] = to.m[h] = sum > 0.0f ? to.m[h] + logf(sum) : 0.0f;
        }
    }
}

/* ---- Backward ---- */

/* Read logits, L and r of each entry and head of a chunk. */
SL_INLINE void read_back(struct chunk *c, int64_t heads, int64_t per, const float *t,
                         const struct sl_floats_at *scores, int64_t all, float *restrict log_sum,
                         float *restrict r)
{
    for (int64_t k = 0; k < c->padded; k++) {
        const float *const at = scores->data + c->col[k] * scores->ld, *const row = c->row[k] + all;
        const int64_t i = k * per;
        for (int64_t h = 0; h < per; h++) {
            c->alpha[i + h] = h < heads ? at[h] + t[h] : 0.0f;
            log_sum[i + h] = h < heads ? at[heads + h] : 0.0f;
            r[i + h] = h < heads ? row[h] : 0.0f;
        }
    }
}

/* Set alpha and sloped to the weights of the chunk's entries in the rows that they meet. Add the
 * sums of sloped · r to V (heads). */
SL_INLINE void weigh_back(const struct sl_attention *attention, struct chunk *c, int64_t per,
                          const float *t, const struct sl_floats_at *scores, float *v)
{
    static const float none[SL_ATTENTION_HEADS];
    float log_sum[LOGITS], r[LOGITS];
    float *const x = c->alpha;
    const int64_t all = sl_attention_all(attention);
    read_back(c, attention->heads, per, t, scores, all, log_sum, r);
    leak(c->all, attention->slope, x, c->sloped);
    for (int64_t i = 0; i < c->all; i += SL_LANES)
        *(sl_floats *)(x + i) -= *(const sl_floats *)(log_sum + i);
    limit(c->all, MOST_POWER, x);
    exponentiate(c, per, none, x);
    limit(c->all, 1.0f, x); /* above 1 by rounding, or with the L of an old epoch */
    multiply(c->all, x, c->sloped);
    multiply(c->all, c->sloped, r);
    sum_heads(c, attention->heads, per, r, v);
}

SL_INLINE void back_chunk(const struct sl_attention *attention, struct chunk *c, int64_t per,
                          const struct sl_floats_at *scores, const float *projected, int64_t room,
                          float *to, float *sloped)
{
    const int64_t all = sl_attention_all(attention);
    float v[SL_ATTENTION_HEADS];
    weigh_back(attention, c, per, projected + all, scores, v);
    for (int64_t h = 0; h < attention->heads; h++)
        to[all + h] -= v[h];
    if (attention->drop.threshold) {
        for (int64_t k = 0; k < c->count; k++) {
            c->from[k] = vertex_at(projected + all + attention->heads);
            c->to[k] = vertex_at(scores->data + c->col[k] * scores->ld + 2 * attention->heads);
        }
        drop_all(attention, per, c);
    }
    add_rows(attention, c, per, room, true, to, sloped);
}

/* Add P·U to dt. */
SL_INLINE void finish_back(const struct sl_attention *attention, const float *restrict projected,
                           const float *restrict sloped, float *restrict dt)
{
    for (int64_t h = 0; h < attention->heads; h++) {
        float sum = 0.0f;
        for (int64_t j = h * attention->width; j < (h + 1) * attention->width; j++)
            sum = sl_add_product(sum, projected[j], sloped[j]);
        dt[h] += sum;
    }
}

SL_INLINE void meet_back(const struct sl_attention *attention, const struct sl_sparse *at,
                         const struct sl_floats_at *gradient, const struct sl_floats_at *scores,
                         const struct sl_floats_at *projected, const struct sl_floats_at *back)
{
    const int64_t per = numbers_per_entry(attention->heads), most = chunk_entries(per),
                  all = sl_attention_all(attention);
    float sloped[SL_ATTENTION_COLUMNS];
    struct chunk c;
    for (int64_t b = 0; b < at->blocks; b++)
        for (int64_t r = 0; r < at->rows; r++) {
            float *const to = back->data + r * back->ld;
            const float *const own = projected->data + r * projected->ld;
            const uint32_t end = at->row_ptr[b * at->rows + r + 1];
            for (uint32_t e = at->row_ptr[b * at->rows + r]; e < end;) {
                const int64_t count = end - e < most ? end - e : most;
                read_entries(at, b, e, count, gradient, per, &c);
                memset(sloped, 0, (size_t)all * sizeof *sloped);
                back_chunk(attention, &c, per, scores, own, gradient->ld, to, sloped);
                finish_back(attention, own, sloped, to + all);
                e += (uint32_t)count;
            }
        }
}

SL_KERNEL(sl_kernel_attention_back,
          (const struct sl_attention *attention, const struct sl_sparse *at,
           const struct sl_floats_at *gradient, const struct sl_floats_at *scores,
           const struct sl_floats_at *projected, bool accumulate, const struct sl_floats_at *back),
          (attention, at, gradient, scores, projected, accumulate, back))
{
    struct sl_attention own = *attention;
    for (int64_t r = 0; r < at->rows && !accumulate; r++)
        memset(back->data + r * back->ld, 0,
               (size_t)sl_attention_projected(attention) * sizeof *back->data);
    if (attention->heads == 1) {
        own.heads = 1;
        meet_back(&own, at, gradient, scores, projected, back);
    } else if (attention->heads == SL_EIGHT) {
        own.heads = SL_EIGHT;
        meet_back(&own, at, gradient, scores, projected, back);
    } else {
        meet_back(attention, at, gradient, scores, projected, back);
    }
}
