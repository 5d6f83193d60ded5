/* The walks of graph attention. The entries of a row are worked on in chunks. Of a chunk, the
 * logits of each head lie together, so that exponentials and random numbers are vectors. Then the
 * rows of P, or G, are summed head by head, with the sums in registers. */
#include "codelets/attention.h"

#include <math.h>
#include <string.h>

#include "codelets/exponential.h"

enum {
    ENTRIES = 64,  /* most of a chunk */
    LOGITS = 4096, /* most of a chunk, over all heads */
    PER_DRAW = 4,  /* heads for which 64 random bits suffice */
    DROPOUT_BITS = 16,
};

static const float MOST_POWER = 80.0f; /* e to this power is finite */

/* Entries of a row. Arrays (heads, stride); entries behind `count` have alpha = 0. */
struct chunk {
    int64_t count, stride;
    const float *row[ENTRIES];           /* the dense row that an entry meets, */
    int64_t col[ENTRIES];                /* and its number */
    uint32_t to[ENTRIES], from[ENTRIES]; /* the vertices of an entry: row and column of A */
    float weight[ENTRIES];
    float alpha[LOGITS], sloped[LOGITS]; /* sloped: alpha · the slope of LeakyReLU */
};

static int64_t chunk_entries(const struct sl_attention *how)
{
    const int64_t most = LOGITS / how->heads / SL_SIXTEEN * SL_SIXTEEN;
    return most < ENTRIES ? most : ENTRIES;
}

SL_INLINE float *head_of(float *of, const struct chunk *c, int64_t h)
{
    return of + h * c->stride;
}

/* ---- Parts of a chunk ---- */

/* Entries e … e + count - 1 of block `block` meet rows of DENSE. */
SL_INLINE void read_entries(const struct sl_sparse *a, int64_t block, uint32_t e, int64_t count,
                            const struct sl_floats_at *dense, struct chunk *c)
{
    c->count = count;
    c->stride = (count + SL_SIXTEEN - 1) / SL_SIXTEEN * SL_SIXTEEN;
    for (int64_t k = 0; k < count; k++) {
        const int64_t col = block * a->block_cols + sl_sparse_col(a, e + (uint32_t)k);
        c->row[k] = dense->data + col * dense->ld;
        c->col[k] = col;
        c->weight[k] = a->value ? a->value[e + (uint32_t)k] : 1.0f;
    }
    for (int64_t k = count; k < c->stride; k++) {
        c->row[k] = c->row[0];
        c->col[k] = c->col[0];
        c->weight[k] = 0.0f;
    }
}

/* x = LeakyReLU(x), and its slope. */
SL_INLINE void leak(int64_t stride, float negative, float *x, float *slope)
{
    const sl_floats one = (sl_floats){0} + 1.0f, other = (sl_floats){0} + negative;
    for (int64_t k = 0; k < stride; k += SL_LANES) {
        sl_floats *const at = (sl_floats *)(x + k), *const of = (sl_floats *)(slope + k);
        *of = (sl_floats)SL_SELECT(sl_ints, (sl_ints)(*at > 0.0f), one, other);
        *at *= *of;
    }
}

/* x = weight · e^(x - top). */
SL_INLINE void exponentiate(const struct chunk *c, float top, float *restrict x)
{
    for (int64_t k = 0; k < c->stride; k += SL_LANES) {
        sl_floats *const at = (sl_floats *)(x + k);
        *at = sl_exponential(*at - top) * *(const sl_floats *)(c->weight + k);
    }
}

SL_INLINE float sum_of(int64_t count, const float *restrict x)
{
    sl_floats sum[SL_SIXTEEN_VECTORS] = {{0}};
    for (int64_t k = 0; k < count; k += SL_SIXTEEN)
        SL_UNROLL for (int v = 0; v < SL_SIXTEEN_VECTORS; v++) sum[v] +=
            *(const sl_floats *)(x + k + v * SL_LANES);
    return sl_add_sixteen(sum);
}

/* FACTOR (stride) = the scale where `shift` bits on a word keeps an entry, else 0. */
SL_INLINE void decide(const struct sl_dropout *drop, int64_t stride, int shift,
                      const uint32_t *word, float *factor)
{
    const sl_words scale = (sl_words)((sl_floats){0} + drop->scale);
    const int32_t least = (int32_t)drop->threshold;
    for (int64_t k = 0; k < stride; k += SL_LANES) {
        const sl_words bits = *(const sl_words_at *)(word + k) >> shift & 0xFFFF;
        *(sl_floats *)(factor + k) = (sl_floats)((sl_words)((sl_ints)bits >= least) & scale);
    }
}

SL_INLINE void multiply(int64_t stride, const float *by, float *x)
{
    for (int64_t k = 0; k < stride; k += SL_LANES)
        *(sl_floats *)(x + k) *= *(const sl_floats *)(by + k);
}

/* x = the lesser of x and `most`; NaN stays. */
SL_INLINE void limit(int64_t stride, float most, float *x)
{
    const sl_floats limits = (sl_floats){0} + most;
    for (int64_t k = 0; k < stride; k += SL_LANES) {
        sl_floats *const at = (sl_floats *)(x + k);
        *at = (sl_floats)SL_SELECT(sl_ints, (sl_ints)(*at > most), limits, *at);
    }
}

/* Drop out alpha and sloped of heads h … h + PER_DRAW - 1, as far as there are such. The layer's
 * head h is a multiple of PER_DRAW. */
SL_INLINE void drop_heads(const struct sl_attention *how, struct chunk *c, int64_t h)
{
    uint32_t low[ENTRIES], high[ENTRIES];
    float factor[ENTRIES];
    const uint64_t draw = (uint64_t)((how->first_head + h) / PER_DRAW),
                   key = how->drop.key + draw * UINT64_C(0x9E3779B97F4A7C15);
    for (int64_t k = 0; k < c->stride; k++)
        sl_rng_block(key, c->to[k], c->from[k], &low[k], &high[k]);
    for (int64_t i = h < 0 ? -h : 0; i < PER_DRAW && h + i < how->heads; i++) {
        decide(&how->drop, c->stride, i % 2 ? DROPOUT_BITS : 0, i < 2 ? low : high, factor);
        multiply(c->stride, factor, head_of(c->alpha, c, h + i));
        multiply(c->stride, factor, head_of(c->sloped, c, h + i));
    }
}

SL_INLINE void drop_all(const struct sl_attention *how, struct chunk *c)
{
    for (int64_t k = c->count; k < c->stride; k++)
        c->to[k] = c->from[k] = 0;
    for (int64_t h = -(how->first_head % PER_DRAW); h < how->heads; h += PER_DRAW)
        drop_heads(how, c, h);
}

/* The number of a vertex that a row has as bits. */
SL_INLINE uint32_t vertex_at(const float *at)
{
    uint32_t vertex;
    memcpy(&vertex, at, sizeof vertex);
    return vertex ^ SL_ATTENTION_VERTEX;
}

/* ---- Sums of rows ---- */

/* Columns j … of the rows, `vectors` of `type`: X += Σ_k alpha[k]·row(k), Y += Σ_k
 * sloped[k]·row(k). Even and odd entries have sums of their own. */
#define DEFINE_ADD(name, type, vectors)                                                            \
    SL_INLINE void name(const struct chunk *c, const float *alpha, const float *sloped, int64_t j, \
                        bool both, float *x, float *y)                                             \
    {                                                                                              \
        type even[vectors], odd[vectors], even_y[vectors], odd_y[vectors];                         \
        SL_UNROLL for (int v = 0; v < (vectors); v++)                                              \
        {                                                                                          \
            even[v] = ((const type *)x)[v];                                                        \
            even_y[v] = both ? ((const type *)y)[v] : (type){0};                                   \
            odd[v] = odd_y[v] = (type){0};                                                         \
        }                                                                                          \
        for (int64_t k = 0; k < c->count; k += 2) { /* the arrays are padded */                    \
            const type *const ones = (const type *)(c->row[k] + j),                                \
                              *const others = (const type *)(c->row[k + 1] + j);                   \
            SL_UNROLL for (int v = 0; v < (vectors); v++)                                          \
            {                                                                                      \
                const type one = ones[v], other = others[v];                                       \
                even[v] += alpha[k] * one;                                                         \
                odd[v] += alpha[k + 1] * other;                                                    \
                if (both) {                                                                        \
                    even_y[v] += sloped[k] * one;                                                  \
                    odd_y[v] += sloped[k + 1] * other;                                             \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        SL_UNROLL for (int v = 0; v < (vectors); v++)                                              \
        {                                                                                          \
            ((type *)x)[v] = even[v] + odd[v];                                                     \
            if (both)                                                                              \
                ((type *)y)[v] = even_y[v] + odd_y[v];                                             \
        }                                                                                          \
    }
enum { WIDE = SL_LANES < SL_SIXTEEN ? 2 : 1 }; /* vectors: 8 sums in registers */
DEFINE_ADD(add_wide, sl_floats, WIDE)
DEFINE_ADD(add_short, sl_short, 1)
#undef DEFINE_ADD

/* The last columns, fewer than a short vector, where rows end with them. */
SL_INLINE void add_rest(const struct chunk *c, const float *alpha, const float *sloped, int64_t j,
                        int64_t count, bool both, float *x, float *y)
{
    for (int64_t k = 0; k < c->count; k++)
        for (int64_t i = 0; i < count; i++) {
            x[i] += alpha[k] * c->row[k][j + i];
            if (both)
                y[i] += sloped[k] * c->row[k][j + i];
        }
}

/* The same where rows go on for a vector. */
SL_INLINE void add_lanes(const struct chunk *c, const float *alpha, const float *sloped, int64_t j,
                         int64_t count, bool both, float *x, float *y)
{
    float wide[SL_SHORT_LANES] = {0}, wide_y[SL_SHORT_LANES] = {0};
    memcpy(wide, x, (size_t)count * sizeof *x);
    if (both)
        memcpy(wide_y, y, (size_t)count * sizeof *y);
    add_short(c, alpha, sloped, j, both, wide, wide_y);
    memcpy(x, wide, (size_t)count * sizeof *x);
    if (both)
        memcpy(y, wide_y, (size_t)count * sizeof *y);
}

/* X (heads · width) += Σ alpha·row, and, where `both`, Y += Σ sloped·row; the rows have `room`
 * columns. */
SL_INLINE void add_rows(const struct sl_attention *how, struct chunk *c, int64_t room, bool both,
                        float *x, float *y)
{
    for (int64_t h = 0; h < how->heads; h++) {
        const float *const alpha = head_of(c->alpha, c, h), *const sloped =
                                                                head_of(c->sloped, c, h);
        int64_t j = h * how->width;
        const int64_t end = j + how->width;
        for (; j + WIDE * SL_LANES <= end; j += WIDE * SL_LANES)
            add_wide(c, alpha, sloped, j, both, x + j, y + j);
        for (; j + SL_SHORT_LANES <= end; j += SL_SHORT_LANES)
            add_short(c, alpha, sloped, j, both, x + j, y + j);
        if (j < end && j + SL_SHORT_LANES <= room)
            add_lanes(c, alpha, sloped, j, end - j, both, x + j, y + j);
        else if (j < end)
            add_rest(c, alpha, sloped, j, end - j, both, x + j, y + j);
    }
}

/* ---- Forward ---- */

/* Where the parts of a state begin. */
struct parts {
    float *z, *m, *l, *sloped, *q;
};

SL_INLINE struct parts parts_of(const struct sl_attention *how, float *state)
{
    const int64_t all = sl_attention_all(how), heads = how->heads;
    return (struct parts){state, state + all, state + all + heads, state + all + 2 * heads,
                          state + 2 * all + 2 * heads};
}

SL_INLINE void scale(int64_t count, float by, float *restrict x)
{
    for (int64_t i = 0; i < count; i++)
        x[i] *= by;
}

/* Everything of head h in the state is for a larger maximum: times `by`. */
SL_INLINE void scale_head(const struct sl_attention *how, const struct parts *to, int64_t h,
                          float by)
{
    to->l[h] *= by;
    scale(how->width, by, to->z + h * how->width);
    if (how->training) {
        to->q[h] *= by;
        scale(how->width, by, to->sloped + h * how->width);
    }
}

/* The largest logit whose entry has a weight; -infinity: there is none. */
SL_INLINE float largest(const struct chunk *c, const float *restrict x)
{
    const sl_floats least = (sl_floats){0} - INFINITY;
    sl_floats most = least;
    for (int64_t k = 0; k < c->stride; k += SL_LANES) {
        const sl_ints weighs = (sl_ints)(*(const sl_floats *)(c->weight + k) > 0.0f);
        const sl_floats with =
            (sl_floats)SL_SELECT(sl_ints, weighs, *(const sl_floats *)(x + k), least);
        const sl_ints larger = (sl_ints)(with > most);
        most = (sl_floats)SL_SELECT(sl_ints, larger, with, most);
    }
    float top = -INFINITY;
    for (int i = 0; i < SL_LANES; i++)
        top = most[i] > top ? most[i] : top;
    return top;
}

/* Logits to weights e^(x - m) of head h. A larger maximum scales the state. */
SL_INLINE void weigh(const struct sl_attention *how, struct chunk *c, int64_t h,
                     const struct parts *to)
{
    float *const x = head_of(c->alpha, c, h), *const sloped = head_of(c->sloped, c, h);
    leak(c->stride, how->slope, x, sloped);
    const float top = largest(c, x);
    if (to->l[h] == 0.0f) {
        to->m[h] = top == -INFINITY ? 0.0f : top;
    } else if (top > to->m[h]) {
        scale_head(how, to, h, expf(to->m[h] - top));
        to->m[h] = top;
    }
    exponentiate(c, to->m[h], x);
    to->l[h] += sum_of(c->stride, x);
    if (how->training) {
        multiply(c->stride, x, sloped);
        to->q[h] += sum_of(c->stride, sloped);
    }
}

SL_INLINE void meet_chunk(const struct sl_attention *how, struct chunk *c, const float *scores,
                          int64_t room, bool training, const struct parts *to)
{
    const int64_t all = sl_attention_all(how);
    for (int64_t h = 0; h < how->heads; h++) {
        float *const x = head_of(c->alpha, c, h);
        for (int64_t k = 0; k < c->stride; k++)
            x[k] = scores[h] + c->row[k][all + h];
    }
    for (int64_t h = 0; h < how->heads; h++)
        weigh(how, c, h, to);
    if (training && how->drop.threshold) {
        for (int64_t k = 0; k < c->count; k++) {
            c->to[k] = vertex_at(scores + 2 * how->heads);
            c->from[k] = vertex_at(c->row[k] + all + how->heads);
        }
        drop_all(how, c);
    }
    add_rows(how, c, room, training, to->z, to->sloped);
}

SL_INLINE void meet_all(const struct sl_attention *how, const struct sl_sparse *a,
                        const struct sl_floats_at *projected, const struct sl_floats_at *scores,
                        bool training, const struct sl_floats_at *state)
{
    const int64_t most = chunk_entries(how);
    struct chunk c;
    for (int64_t b = 0; b < a->blocks; b++)
        for (int64_t r = 0; r < a->rows; r++) {
            const struct parts to = parts_of(how, state->data + r * state->ld);
            const uint32_t end = a->row_ptr[b * a->rows + r + 1];
            for (uint32_t e = a->row_ptr[b * a->rows + r]; e < end;) {
                const int64_t count = end - e < most ? end - e : most;
                read_entries(a, b, e, count, projected, &c);
                meet_chunk(how, &c, scores->data + r * scores->ld, projected->ld, training, &to);
                e += (uint32_t)count;
            }
        }
}

SL_KERNEL(sl_kernel_attention,
          (const struct sl_attention *how, const struct sl_sparse *a,
           const struct sl_floats_at *projected, const struct sl_floats_at *scores, bool accumulate,
           const struct sl_floats_at *state),
          (how, a, projected, scores, accumulate, state))
{
    for (int64_t r = 0; r < a->rows && !accumulate; r++)
        memset(state->data + r * state->ld, 0,
               (size_t)sl_attention_state(how) * sizeof *state->data);
    if (how->training)
        meet_all(how, a, projected, scores, true, state);
    else
        meet_all(how, a, projected, scores, false, state);
}

/* ---- Merged and closed ---- */

SL_INLINE void add_head(int64_t count, float by, const float *restrict from, float *restrict to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += by * from[i];
}

SL_INLINE void merge_head(const struct sl_attention *how, const struct parts *from, int64_t h,
                          const struct parts *to)
{
    const int64_t at = h * how->width;
    if (from->l[h] == 0.0f)
        return;
    if (to->l[h] == 0.0f)
        to->m[h] = from->m[h];
    const float top = from->m[h] > to->m[h] ? from->m[h] : to->m[h];
    const float by = expf(from->m[h] - top);
    if (top > to->m[h])
        scale_head(how, to, h, expf(to->m[h] - top));
    to->m[h] = top;
    to->l[h] += by * from->l[h];
    add_head(how->width, by, from->z + at, to->z + at);
    if (how->training) {
        to->q[h] += by * from->q[h];
        add_head(how->width, by, from->sloped + at, to->sloped + at);
    }
}

SL_KERNEL(sl_kernel_attention_merge,
          (const struct sl_attention *how, int64_t rows, const uint32_t *index,
           const struct sl_floats_at *other, const struct sl_floats_at *state),
          (how, rows, index, other, state))
{
    for (int64_t r = 0; r < rows; r++) {
        const int64_t into = index ? index[r] : r;
        const struct parts from = parts_of(how, other->data + r * other->ld),
                           to = parts_of(how, state->data + into * state->ld);
        for (int64_t h = 0; h < how->heads; h++)
            merge_head(how, &from, h, &to);
    }
}

SL_KERNEL(sl_kernel_attention_close,
          (const struct sl_attention *how, int64_t rows, const struct sl_floats_at *scores,
           const struct sl_floats_at *state),
          (how, rows, scores, state))
{
    for (int64_t r = 0; r < rows; r++) {
        const struct parts to = parts_of(how, state->data + r * state->ld);
        float *const l = scores->data + r * scores->ld + how->heads;
        for (int64_t h = 0; h < how->heads; h++) {
            const float sum = to.l[h];
            if (sum > 0.0f)
                scale_head(how, &to, h, 1.0f / sum);
            l[h] = to.m[h] = sum > 0.0f ? to.m[h] + logf(sum) : 0.0f;
        }
    }
}

/* ---- Backward ---- */

/* alpha, sloped: the weights of the chunk's entries in the rows that they meet. */
SL_INLINE void weigh_back(const struct sl_attention *how, struct chunk *c, int64_t h, float t,
                          const struct sl_floats_at *scores, float *v)
{
    float *const x = head_of(c->alpha, c, h), *const sloped = head_of(c->sloped, c, h);
    float log_sum[ENTRIES], r[ENTRIES];
    for (int64_t k = 0; k < c->stride; k++) {
        const float *const at = scores->data + c->col[k] * scores->ld;
        x[k] = at[h] + t;
        log_sum[k] = at[how->heads + h];
        r[k] = c->row[k][sl_attention_all(how) + h];
    }
    leak(c->stride, how->slope, x, sloped);
    for (int64_t k = 0; k < c->stride; k += SL_LANES)
        *(sl_floats *)(x + k) -= *(const sl_floats *)(log_sum + k);
    limit(c->stride, MOST_POWER, x);
    exponentiate(c, 0.0f, x);
    limit(c->stride, 1.0f, x); /* more: by rounding, or with the L of an old epoch */
    multiply(c->stride, x, sloped);
    multiply(c->stride, sloped, r);
    *v = sum_of(c->stride, r);
}

SL_INLINE void back_chunk(const struct sl_attention *how, struct chunk *c,
                          const struct sl_floats_at *scores, const float *projected, int64_t room,
                          float *to, float *sloped)
{
    const int64_t all = sl_attention_all(how);
    for (int64_t h = 0; h < how->heads; h++) {
        float v;
        weigh_back(how, c, h, projected[all + h], scores, &v);
        to[all + h] -= v;
    }
    if (how->drop.threshold) {
        for (int64_t k = 0; k < c->count; k++) {
            c->from[k] = vertex_at(projected + all + how->heads);
            c->to[k] = vertex_at(scores->data + c->col[k] * scores->ld + 2 * how->heads);
        }
        drop_all(how, c);
    }
    add_rows(how, c, room, true, to, sloped);
}

/* dt += P·U. */
SL_INLINE void finish_back(const struct sl_attention *how, const float *restrict projected,
                           const float *restrict sloped, float *restrict dt)
{
    for (int64_t h = 0; h < how->heads; h++) {
        float sum = 0.0f;
        for (int64_t j = h * how->width; j < (h + 1) * how->width; j++)
            sum = sl_add_product(sum, projected[j], sloped[j]);
        dt[h] += sum;
    }
}

SL_KERNEL(sl_kernel_attention_back,
          (const struct sl_attention *how, const struct sl_sparse *at,
           const struct sl_floats_at *gradient, const struct sl_floats_at *scores,
           const struct sl_floats_at *projected, bool accumulate, const struct sl_floats_at *back),
          (how, at, gradient, scores, projected, accumulate, back))
{
    const int64_t most = chunk_entries(how), all = sl_attention_all(how);
    float sloped[SL_ATTENTION_COLUMNS];
    struct chunk c;
    for (int64_t r = 0; r < at->rows && !accumulate; r++)
        memset(back->data + r * back->ld, 0,
               (size_t)sl_attention_projected(how) * sizeof *back->data);
    for (int64_t b = 0; b < at->blocks; b++)
        for (int64_t r = 0; r < at->rows; r++) {
            float *const to = back->data + r * back->ld;
            const float *const own = projected->data + r * projected->ld;
            const uint32_t end = at->row_ptr[b * at->rows + r + 1];
            for (uint32_t e = at->row_ptr[b * at->rows + r]; e < end;) {
                const int64_t count = end - e < most ? end - e : most;
                read_entries(at, b, e, count, gradient, &c);
                memset(sloped, 0, (size_t)all * sizeof *sloped);
                back_chunk(how, &c, scores, own, gradient->ld, to, sloped);
                finish_back(how, own, sloped, to + all);
                e += (uint32_t)count;
            }
        }
}
