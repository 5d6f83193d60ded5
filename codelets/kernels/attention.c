/* The walks of graph attention, in chunks of a row's entries. */
#include "codelets/attention.h"

#include "codelets/kernels/attention_scores.h"
#include "codelets/kernels/edges.h"
#include "codelets/kernels/row_product.h"

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

/* Features of a tile's entries, with EDGE and EDGE_BACK. */
struct edges {
    int64_t features;
    const float *feature; // (entries, features)
    const struct sl_floats_at *edge, *back;
};

/* Add F·EDGE to the logits of a chunk, which begins at entry e. */
SL_APART void add_edges(const struct edges *edges, uint32_t e, int64_t heads, int64_t per,
                        struct chunk *c)
{
    add_edge_products(c->count, edges->features, edges->feature + e * edges->features,
                      edges->edge->data, edges->edge->ld, heads, c->alpha, per);
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

SL_INLINE void meet_chunk(const struct sl_attention *attention, const struct edges *edges,
                          uint32_t e, struct chunk *c, int64_t per, const float *scores,
                          int64_t room, const struct parts *to)
{
    const int64_t all = sl_attention_all(attention);
    add_scores(c, attention->heads, per, scores, all);
    if (edges)
        add_edges(edges, e, attention->heads, per, c);
    weigh(attention, c, per, to);
    if (attention->training && attention->drop.threshold) {
        for (int64_t k = 0; k < c->count; k++) {
            c->to[k] = vertex_at(scores + 2 * attention->heads);
            c->from[k] = vertex_at(c->row[k] + all + attention->heads);
        }
        drop_all(attention, per, c);
    }
    add_rows(attention, c, per, room, attention->training, to->z, to->sloped);
}

SL_INLINE void meet_all(const struct sl_attention *attention, const struct sl_sparse *a,
                        const struct sl_floats_at *projected, const struct sl_floats_at *scores,
                        const struct edges *edges, const struct sl_floats_at *state)
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
                meet_chunk(attention, edges, e, &c, per, scores->data + r * scores->ld,
                           projected->ld, &to);
                e += (uint32_t)count;
            }
        }
}

/* Meet all entries; heads of usual layers are constants at compile time. */
SL_INLINE void meet(const struct sl_attention *attention, const struct sl_sparse *a,
                    const struct sl_floats_at *projected, const struct sl_floats_at *scores,
                    const struct sl_floats_at *state)
{
    struct sl_attention own = *attention;
    if (attention->heads == 1) {
        own.heads = 1;
        meet_all(&own, a, projected, scores, NULL, state);
    } else if (attention->heads == SL_EIGHT) {
        own.heads = SL_EIGHT;
        meet_all(&own, a, projected, scores, NULL, state);
    } else {
        meet_all(attention, a, projected, scores, NULL, state);
    }
}

/* Edges with features: one walk for any number of heads, apart from the walk without features. */
SL_APART void meet_edges(const struct sl_attention *attention, const struct sl_sparse *a,
                         const struct sl_floats_at *projected, const struct sl_floats_at *scores,
                         const struct sl_floats_at *edge, const struct sl_floats_at *state)
{
    const struct edges edges = {a->edge_features, a->edge, edge, NULL};
    meet_all(attention, a, projected, scores, &edges, state);
}

SL_KERNEL(sl_kernel_attention,
          (const struct sl_attention *attention, const struct sl_sparse *a,
           const struct sl_floats_at *projected, const struct sl_floats_at *scores,
           const struct sl_floats_at *edge, bool accumulate, const struct sl_floats_at *state),
          (attention, a, projected, scores, edge, accumulate, state))
{
    for (int64_t r = 0; r < a->rows && !accumulate; r++)
        memset(state->data + r * state->ld, 0,
               (size_t)sl_attention_state(attention) * sizeof *state->data);
    if (edge)
        meet_edges(attention, a, projected, scores, edge, state);
    else
        meet(attention, a, projected, scores, state);
}

/* ---- Merged and closed ---- */

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
 * sums of sloped · r to V (heads); with EDGES, leave sloped · r in `weight`. The chunk begins at
 * entry e. */
SL_INLINE void weigh_back(const struct sl_attention *attention, const struct edges *edges,
                          uint32_t e, struct chunk *c, int64_t per, const float *t,
                          const struct sl_floats_at *scores, float *v)
{
    static const float none[SL_ATTENTION_HEADS];
    float log_sum[LOGITS], r[LOGITS];
    float *const x = c->alpha;
    const int64_t all = sl_attention_all(attention);
    read_back(c, attention->heads, per, t, scores, all, log_sum, r);
    if (edges)
        add_edges(edges, e, attention->heads, per, c);
    leak(c->all, attention->slope, x, c->sloped);
    for (int64_t i = 0; i < c->all; i += SL_LANES)
        *(sl_floats *)(x + i) -= *(const sl_floats *)(log_sum + i);
    limit(c->all, MOST_POWER, x);
    exponentiate(c, per, none, x);
    limit(c->all, 1.0f, x); /* above 1 by rounding, or with the L of an old epoch */
    multiply(c->all, x, c->sloped);
    multiply(c->all, c->sloped, r);
    if (edges)
        memcpy(c->weight, r, (size_t)c->all * sizeof *r);
    else
        sum_heads(c, attention->heads, per, r, v);
}

/* Set PRODUCTS to G·P of each entry and head; 0 for heads that do not exist. */
SL_APART void multiply_rows(const struct sl_attention *attention, const struct chunk *c,
                            int64_t per, const float *own, float *products)
{
    const int64_t width = attention->width;
    if (width <= 2 || width == 4 || width % SL_EIGHT == 0) {
        score_products(attention, c, per, &(struct meeting){c->row, own, NULL, NULL}, products);
        return;
    }
    for (int64_t k = 0; k < c->padded; k++)
        for (int64_t h = 0; h < per; h++)
            products[k * per + h] = h < attention->heads
                                        ? product_of(width, c->row[k] + h * width, own + h * width)
                                        : 0.0f;
}

/* Make dx of a chunk in `sloped`, from weights there and sloped · r, before dropout, in `weight`.
 * Add the sums of dx to dt, and Fᵀ·dx to EDGE_BACK. */
SL_APART void differentiate(const struct sl_attention *attention, const struct edges *edges,
                            uint32_t e, struct chunk *c, int64_t per, const float *own, float *dt)
{
    float products[LOGITS], sum[SL_ATTENTION_HEADS];
    multiply_rows(attention, c, per, own, products);
    for (int64_t i = 0; i < c->all; i += SL_LANES) {
        sl_floats *const dx = (sl_floats *)(c->sloped + i);
        *dx = *dx * *(const sl_floats *)(products + i) - *(const sl_floats *)(c->weight + i);
    }
    sum_heads(c, attention->heads, per, c->sloped, sum);
    for (int64_t h = 0; h < attention->heads; h++)
        dt[h] += sum[h];
    add_edge_gradients(c->count, edges->features, edges->feature + e * edges->features, c->sloped,
                       per, attention->heads, edges->back->data, edges->back->ld);
}

SL_INLINE void back_chunk(const struct sl_attention *attention, const struct edges *edges,
                          uint32_t e, struct chunk *c, int64_t per,
                          const struct sl_floats_at *scores, const float *projected, int64_t room,
                          float *to, float *sloped)
{
    const int64_t all = sl_attention_all(attention);
    float v[SL_ATTENTION_HEADS];
    weigh_back(attention, edges, e, c, per, projected + all, scores, v);
    for (int64_t h = 0; !edges && h < attention->heads; h++)
        to[all + h] -= v[h];
    if (attention->drop.threshold) {
        for (int64_t k = 0; k < c->count; k++) {
            c->from[k] = vertex_at(projected + all + attention->heads);
            c->to[k] = vertex_at(scores->data + c->col[k] * scores->ld + 2 * attention->heads);
        }
        drop_all(attention, per, c);
    }
    add_rows(attention, c, per, room, !edges, to, sloped);
    if (edges)
        differentiate(attention, edges, e, c, per, projected, to + all);
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

SL_INLINE void meet_all_back(const struct sl_attention *attention, const struct sl_sparse *at,
                             const struct sl_floats_at *gradient, const struct sl_floats_at *scores,
                             const struct sl_floats_at *projected, const struct edges *edges,
                             const struct sl_floats_at *back)
{
    const int64_t per = numbers_per_entry(attention->heads),
                  most = edges ? entries_of(per, terms_of(attention->width)) : chunk_entries(per),
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
                if (!edges)
                    memset(sloped, 0, (size_t)all * sizeof *sloped);
                back_chunk(attention, edges, e, &c, per, scores, own, gradient->ld, to, sloped);
                if (!edges)
                    finish_back(attention, own, sloped, to + all);
                e += (uint32_t)count;
            }
        }
}

SL_INLINE void meet_back(const struct sl_attention *attention, const struct sl_sparse *at,
                         const struct sl_floats_at *gradient, const struct sl_floats_at *scores,
                         const struct sl_floats_at *projected, const struct edges *edges,
                         const struct sl_floats_at *back)
{
    struct sl_attention own = *attention;
    if (attention->heads == 1) {
        own.heads = 1;
        meet_all_back(&own, at, gradient, scores, projected, edges, back);
    } else if (attention->heads == SL_EIGHT) {
        own.heads = SL_EIGHT;
        meet_all_back(&own, at, gradient, scores, projected, edges, back);
    } else {
        meet_all_back(attention, at, gradient, scores, projected, edges, back);
    }
}

/* The walk back with features, whose heads are worth constants (a third faster). EDGE_BACK starts
 * at 0 unless it accumulates. */
SL_APART void meet_edges_back(const struct sl_attention *attention, const struct sl_sparse *at,
                              const struct sl_floats_at *gradient,
                              const struct sl_floats_at *scores,
                              const struct sl_floats_at *projected, const struct sl_floats_at *edge,
                              const struct sl_floats_at *back, bool accumulate,
                              const struct sl_floats_at *edge_back)
{
    const struct edges edges = {at->edge_features, at->edge, edge, edge_back};
    for (int64_t f = 0; f < edges.features && !accumulate; f++)
        memset(edges.back->data + f * edges.back->ld, 0,
               (size_t)attention->heads * sizeof *edges.back->data);
    meet_back(attention, at, gradient, scores, projected, &edges, back);
}

SL_KERNEL(sl_kernel_attention_back,
          (const struct sl_attention *attention, const struct sl_sparse *at,
           const struct sl_floats_at *gradient, const struct sl_floats_at *scores,
           const struct sl_floats_at *projected, const struct sl_floats_at *edge, bool accumulate,
           const struct sl_floats_at *back, bool edge_accumulate,
           const struct sl_floats_at *edge_back),
          (attention, at, gradient, scores, projected, edge, accumulate, back, edge_accumulate,
           edge_back))
{
    for (int64_t r = 0; r < at->rows && !accumulate; r++)
        memset(back->data + r * back->ld, 0,
               (size_t)sl_attention_projected(attention) * sizeof *back->data);
    if (edge)
        meet_edges_back(attention, at, gradient, scores, projected, edge, back, edge_accumulate,
                        edge_back);
    else
        meet_back(attention, at, gradient, scores, projected, NULL, back);
}
