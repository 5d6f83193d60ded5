/* The walks of attention whose scores need both ends' rows, in chunks of a row's entries. */
#include "codelets/pair.h"

#include "codelets/kernels/attention_edges.h"
#include "codelets/kernels/attention_scores.h"
#include "codelets/kernels/pair_state.h"

SL_APART void score_sums(const struct sl_attention *attention, const struct chunk *c, int64_t per,
                         const struct meeting *m, float *scores)
{
    score_usual(attention, c, per, m, false, scores);
}

SL_INLINE void score(const struct sl_attention *attention, const struct chunk *c, int64_t per,
                     const struct meeting *m, bool products, float *scores)
{
    if (products)
        score_products(attention, c, per, m, scores);
    else
        score_sums(attention, c, per, m, scores);
}

/* Set X += Σ alpha·row, of rows with `room` columns. */
SL_APART void add_all(const struct sl_attention *attention, struct chunk *c, int64_t per,
                      int64_t room, float *x)
{
    if (attention->heads == SL_EIGHT && attention->width == SL_EIGHT) {
        struct sl_attention own = *attention;
        own.heads = SL_EIGHT;
        own.width = SL_EIGHT;
        add_rows(&own, c, SL_EIGHT, room, false, x, x);
    } else {
        add_rows(attention, c, per, room, false, x, x);
    }
}

/* ---- Forward ---- */

/* Turn scores into weights e^(x - m). A larger maximum scales the state. */
SL_APART void weigh(const struct sl_attention *attention, struct chunk *c, int64_t per,
                    const struct parts *to)
{
    float top[SL_ATTENTION_HEADS], sum[SL_ATTENTION_HEADS];
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
}

/* Let a chunk's entries meet the rows at column `column` of the rows that they met. */
SL_INLINE void move_rows(struct chunk *c, int64_t column)
{
    for (int64_t k = 0; k < c->padded; k++)
        c->row[k] += column;
}

SL_APART void drop_weights(const struct sl_attention *attention, int64_t per, const float *vertex,
                           int64_t vertices, bool rows_are_targets, struct chunk *c)
{
    for (int64_t k = 0; k < c->count; k++) {
        const uint32_t own = vertex_at(vertex), met = vertex_at(c->row[k] + vertices);
        c->to[k] = rows_are_targets ? own : met;
        c->from[k] = rows_are_targets ? met : own;
    }
    drop_all(attention, per, c);
}

SL_APART void read_chunk(const struct sl_sparse *a, int64_t block, uint32_t e, int64_t count,
                         const struct sl_floats_at *dense, int64_t per, struct chunk *c)
{
    if (per == SL_EIGHT)
        read_entries(a, block, e, count, dense, SL_EIGHT, c);
    else if (per == 1)
        read_entries(a, block, e, count, dense, 1, c);
    else
        read_entries(a, block, e, count, dense, per, c);
}

/* A walk: its operands, of which each function reads some. */
struct walk {
    const struct sl_pair *pair;
    const struct sl_sparse *a;
    const float *even, *odd;
    struct sl_floats_at vectors, source, target, gradient, out;
    const struct sl_floats_at *edge_back;
};

/* Let E be the features of entries e … EDGES NULL: entries have none. */
SL_INLINE void read_edges(const struct walk *w, uint32_t e, struct edge_chunk *edges)
{
    if (!edges)
        return;
    edges->features = w->pair->edges;
    edges->feature = w->a->edge + e * edges->features;
}

/* Return the rows that a chunk's scores read: those of edges as well, where rows are added. */
SL_INLINE const float *const *rows_of(const struct walk *w, bool products, const struct chunk *c,
                                      struct edge_chunk *edges)
{
    if (!edges || products)
        return c->row;
    make_edge_rows(c, sl_pair_all(w->pair), &w->vectors, edges);
    return edges->row;
}

/* Add the features' products with NUMBERS, which all entries have, to a transformer's sums. */
SL_INLINE void add_own_numbers(const struct sl_attention *attention, bool products,
                               const struct chunk *c, int64_t per, struct edge_chunk *edges,
                               const float *numbers, float *x)
{
    if (!edges || !products)
        return;
    for (int64_t k = 0; k < c->count; k++)
        edges->number[k] = numbers;
    add_numbers(c, attention->heads, per, edges, x);
}

/* The same with numbers at column `column` of rows, one for each entry. */
SL_INLINE void add_met_numbers(const struct sl_attention *attention, bool products,
                               const struct chunk *c, int64_t per, struct edge_chunk *edges,
                               const float *const *row, int64_t column, float *x)
{
    if (!edges || !products)
        return;
    for (int64_t k = 0; k < c->count; k++)
        edges->number[k] = row[k] + column;
    add_numbers(c, attention->heads, per, edges, x);
}

/* Return how many entries a chunk has at most. */
SL_INLINE int64_t most_entries(const struct walk *w, int64_t per, bool edged)
{
    const int64_t most = entries_of(per, terms_of(w->pair->attention.width));
    return edged && !w->pair->products ? stored_entries(per, sl_pair_all(w->pair), most) : most;
}

SL_INLINE void meet_chunk(const struct sl_attention *attention, const struct walk *w, bool products,
                          struct chunk *c, struct edge_chunk *edges, int64_t per,
                          const float *target, const struct parts *to)
{
    const int64_t all = sl_attention_all(attention), vertices = products ? 2 * all : all;
    const float *const *const row = rows_of(w, products, c, edges);
    score(attention, c, per, &(struct meeting){row, target, w->even, w->odd}, products, c->alpha);
    add_own_numbers(attention, products, c, per, edges, target + all + attention->heads + 1,
                    c->alpha);
    weigh(attention, c, per, to);
    if (attention->drop.threshold) {
        memcpy(c->sloped, c->alpha, (size_t)c->all * sizeof *c->sloped);
        drop_weights(attention, per, target + all + attention->heads, vertices, true, c);
    }
    if (edges && products)
        sum_features(c, attention->heads, per, edges, c->alpha, to->b);
    if (products)
        move_rows(c, all);
    add_all(attention, c, per, w->source.ld - (products ? all : 0), to->z);
}

SL_INLINE void meet(const struct walk *w, struct edge_chunk *edges)
{
    const struct sl_attention *const attention = &w->pair->attention;
    const bool products = w->pair->products;
    const int64_t per = numbers_per_entry(attention->heads),
                  most = most_entries(w, per, edges != NULL);
    const struct sl_sparse *const a = w->a;
    struct chunk c;
    for (int64_t b = 0; b < a->blocks; b++)
        for (int64_t r = 0; r < a->rows; r++) {
            const struct parts to = parts_of(w->pair, w->out.data + r * w->out.ld);
            const uint32_t end = a->row_ptr[b * a->rows + r + 1];
            for (uint32_t e = a->row_ptr[b * a->rows + r]; e < end;) {
                const int64_t count = end - e < most ? end - e : most;
                read_chunk(a, b, e, count, &w->source, per, &c);
                read_edges(w, e, edges);
                meet_chunk(attention, w, products, &c, edges, per,
                           w->target.data + r * w->target.ld, &to);
                e += (uint32_t)count;
            }
        }
}

/* ---- Backward ---- */

/* Add slopes to columns j … of the head whose factors begin at DE: X += Σ_k de(k)·σ, σ 1 where
 * row(k) + OWN > 0, else `negative`. */
#define DEFINE_ADD(name, type, ints, vectors)                                                  \
    SL_INLINE void name(const struct chunk *c, int64_t per, const float *de, const float *own, \
                        float negative, int64_t j, float *x)                                   \
    {                                                                                          \
        type even[vectors], odd[vectors];                                                      \
        const type one = (type){0} + 1.0f, other = (type){0} + negative;                       \
        SL_UNROLL for (int v = 0; v < (vectors); v++)                                          \
        {                                                                                      \
            even[v] = ((const type *)x)[v];                                                    \
            odd[v] = (type){0};                                                                \
        }                                                                                      \
        for (int64_t k = 0; k < c->count; k += 2, de += 2 * per) {                             \
            const type *const first = (const type *)(c->row[k] + j),                           \
                              *const second = (const type *)(c->row[k + 1] + j);               \
            SL_UNROLL for (int v = 0; v < (vectors); v++)                                      \
            {                                                                                  \
                const type at = ((const type *)(own + j))[v];                                  \
                const type up = first[v] + at, down = second[v] + at;                          \
                even[v] += de[0] * (type)SL_SELECT(ints, (ints)(up > 0.0f), one, other);       \
                odd[v] += de[per] * (type)SL_SELECT(ints, (ints)(down > 0.0f), one, other);    \
            }                                                                                  \
        }                                                                                      \
        SL_UNROLL for (int v = 0; v < (vectors); v++)((type *)x)[v] = even[v] + odd[v];        \
    }
DEFINE_ADD(slopes_wide, sl_floats, sl_ints, WIDE)
DEFINE_ADD(slopes_short, sl_short, sl_short_ints, 1)
#undef DEFINE_ADD

/* Add slopes to a vector of columns: X += Σ_k factor(k)·σ. A row of FACTOR has `ld` numbers. */
#define DEFINE_ADD(name, type, ints)                                                              \
    SL_INLINE void name(const struct chunk *c, const float *factor, int64_t ld, const float *own, \
                        float negative, int64_t j, float *x)                                      \
    {                                                                                             \
        const type at = *(const type *)(own + j), one = (type){0} + 1.0f,                         \
                   other = (type){0} + negative;                                                  \
        type sum = *(const type *)(x + j);                                                        \
        for (int64_t k = 0; k < c->count; k++) {                                                  \
            const type met = *(const type *)(c->row[k] + j) + at;                                 \
            sum += *(const type *)(factor + k * ld + j) *                                         \
                   (type)SL_SELECT(ints, (ints)(met > 0.0f), one, other);                         \
        }                                                                                         \
        *(type *)(x + j) = sum;                                                                   \
    }
DEFINE_ADD(heads_wide, sl_floats, sl_ints)
DEFINE_ADD(heads_short, sl_short, sl_short_ints)
#undef DEFINE_ADD

/* X (heads · width) += Σ sloped·σ, of heads that are narrower than a short vector. Factors are
 * repeated for each column of a head, so that vectors span heads. */
SL_APART void add_narrow_slopes(const struct sl_attention *attention, const struct chunk *c,
                                int64_t per, const float *own, float *x)
{
    const int64_t room = attention->width, all = sl_attention_all(attention), ld = per * room,
                  wide = all / SL_LANES * SL_LANES, whole = all / SL_SHORT_LANES * SL_SHORT_LANES;
    float factor[TERMS];
    for (int64_t i = 0; i < c->all; i++)
        for (int64_t r = 0; r < room; r++)
            factor[i * room + r] = c->sloped[i];
    for (int64_t j = 0; j < wide; j += SL_LANES)
        heads_wide(c, factor, ld, own, attention->slope, j, x);
    for (int64_t j = wide; j < whole; j += SL_SHORT_LANES)
        heads_short(c, factor, ld, own, attention->slope, j, x);
    for (int64_t j = whole; j < all; j++)
        for (int64_t k = 0; k < c->count; k++)
            x[j] = sl_add_product(x[j], factor[k * ld + j],
                                  c->row[k][j] + own[j] > 0.0f ? 1.0f : attention->slope);
}

/* X (heads · width) += Σ sloped·σ. */
SL_INLINE void add_slopes_of(const struct sl_attention *attention, const struct chunk *c,
                             int64_t per, const float *own, float *x)
{
    for (int64_t h = 0; h < attention->heads; h++) {
        const float *const de = c->sloped + h;
        int64_t j = h * attention->width;
        const int64_t end = j + attention->width;
        for (; j + WIDE * SL_LANES <= end; j += WIDE * SL_LANES)
            slopes_wide(c, per, de, own, attention->slope, j, x + j);
        for (; j + SL_SHORT_LANES <= end; j += SL_SHORT_LANES)
            slopes_short(c, per, de, own, attention->slope, j, x + j);
    }
}

SL_APART void add_slopes(const struct sl_attention *attention, const struct chunk *c, int64_t per,
                         const float *own, float *x)
{
    if (attention->heads == SL_EIGHT && attention->width == SL_EIGHT) {
        struct sl_attention usual = *attention;
        usual.heads = SL_EIGHT;
        usual.width = SL_EIGHT;
        add_slopes_of(&usual, c, SL_EIGHT, own, x);
    } else if (attention->width < SL_EIGHT) {
        add_narrow_slopes(attention, c, per, own, x);
    } else {
        add_slopes_of(attention, c, per, own, x);
    }
}

/* Set TO to the numbers of each entry and head. */
SL_INLINE void spread(const struct chunk *c, int64_t heads, int64_t per, const float *const *from,
                      float *restrict to)
{
    if (heads == SL_EIGHT)
        for (int64_t k = 0; k < c->padded; k++)
            memcpy(to + k * SL_EIGHT, from[k], SL_EIGHT * sizeof *to);
    else
        for (int64_t k = 0; k < c->padded; k++)
            for (int64_t h = 0; h < per; h++)
                to[k * per + h] = h < heads ? from[k][h] : 0.0f;
}

/* Numbers of a chunk going back. */
struct back {
    const float *log_sum[ENTRIES], *r[ENTRIES]; /* of an entry, for each head */
    const float *gradient[ENTRIES], *value[ENTRIES];
};

/* From scores in alpha and G·V in sloped, make alpha the weight α μ of an entry, and sloped de. */
SL_APART void weigh_back(const struct sl_attention *attention, struct chunk *c, int64_t per,
                         const struct back *b, const float *vertex, int64_t vertices,
                         bool rows_are_targets)
{
    static const float none[SL_ATTENTION_HEADS];
    float numbers[LOGITS];
    float *const x = c->alpha;
    spread(c, attention->heads, per, b->log_sum, numbers);
    for (int64_t i = 0; i < c->all; i += SL_LANES)
        *(sl_floats *)(x + i) -= *(const sl_floats *)(numbers + i);
    limit(c->all, MOST_POWER, x);
    exponentiate(c, per, none, x);
    limit(c->all, 1.0f, x); /* above 1 by rounding */
    multiply(c->all, x, c->sloped);
    spread(c, attention->heads, per, b->r, numbers);
    multiply(c->all, x, numbers);
    if (attention->drop.threshold)
        drop_weights(attention, per, vertex, vertices, rows_are_targets, c);
    for (int64_t i = 0; i < c->all; i += SL_LANES)
        *(sl_floats *)(c->sloped + i) -= *(const sl_floats *)(numbers + i);
}

/* Set X += Σ sloped·row. */
SL_INLINE void add_sloped(const struct sl_attention *attention, struct chunk *c, int64_t per,
                          int64_t room, float *x)
{
    memcpy(c->alpha, c->sloped, (size_t)c->all * sizeof *c->alpha);
    add_all(attention, c, per, room, x);
}

/* Meet sources once more, in row r of A. */
SL_INLINE void again_chunk(const struct sl_attention *attention, const struct walk *w,
                           bool products, struct chunk *c, struct edge_chunk *edges, int64_t per,
                           int64_t r)
{
    const int64_t all = sl_attention_all(attention), heads = attention->heads,
                  vertices = products ? 2 * all : all;
    const float *const *const row = rows_of(w, products, c, edges);
    const float *const target = w->target.data + r * w->target.ld, *const gradient =
                                                                       w->gradient.data +
                                                                       r * w->gradient.ld;
    float *const to = w->out.data + r * w->out.ld;
    struct back b;
    for (int64_t k = 0; k < c->padded; k++) {
        b.log_sum[k] = target + all;
        b.r[k] = gradient + all;
        b.value[k] = c->row[k] + (products ? all : 0);
    }
    score(attention, c, per, &(struct meeting){row, target, w->even, w->odd}, products, c->alpha);
    score(attention, c, per, &(struct meeting){b.value, gradient, NULL, NULL}, true, c->sloped);
    add_own_numbers(attention, products, c, per, edges, target + all + heads + 1, c->alpha);
    add_own_numbers(attention, products, c, per, edges, gradient + all + heads, c->sloped);
    weigh_back(attention, c, per, &b, target + all + heads, vertices, true);
    if (edges && products)
        sum_features(c, heads, per, edges, c->sloped, to + all);
    if (products)
        add_sloped(attention, c, per, w->source.ld, to);
    else if (edges)
        add_edge_slopes(attention, c, per, target, edges, to, w->edge_back);
    else
        add_slopes(attention, c, per, target, to);
}

/* Meet targets and their gradients, in row r of Aᵀ. The chunk's rows are those of targets. */
SL_INLINE void back_chunk(const struct sl_attention *attention, const struct walk *w, bool products,
                          struct chunk *c, struct edge_chunk *edges, int64_t per, int64_t r)
{
    const int64_t all = sl_attention_all(attention), heads = attention->heads,
                  values = products ? all : 0;
    const float *const *const met = rows_of(w, products, c, edges);
    const float *const source = w->source.data + r * w->source.ld, *row[ENTRIES];
    float *const to = w->out.data + r * w->out.ld;
    struct back b;
    for (int64_t k = 0; k < c->padded; k++) {
        row[k] = c->row[k];
        b.gradient[k] = w->gradient.data + c->col[k] * w->gradient.ld;
        b.log_sum[k] = c->row[k] + all;
        b.r[k] = b.gradient[k] + all;
    }
    score(attention, c, per, &(struct meeting){met, source, w->even, w->odd}, products, c->alpha);
    score(attention, c, per, &(struct meeting){b.gradient, source + values, NULL, NULL}, true,
          c->sloped);
    add_met_numbers(attention, products, c, per, edges, row, all + heads + 1, c->alpha);
    add_met_numbers(attention, products, c, per, edges, b.gradient, all + heads, c->sloped);
    weigh_back(attention, c, per, &b, source + all + values, all + heads, false);
    memcpy(c->row, b.gradient, (size_t)c->padded * sizeof *row);
    add_all(attention, c, per, w->gradient.ld, to + all);
    memcpy(c->row, edges && !products ? edges->row : row, (size_t)c->padded * sizeof *row);
    if (products)
        add_sloped(attention, c, per, w->target.ld, to);
    else
        add_slopes(attention, c, per, source, to);
}

SL_INLINE void meet_back(const struct walk *w, bool again, struct edge_chunk *edges)
{
    const struct sl_attention *const attention = &w->pair->attention;
    const bool products = w->pair->products;
    const int64_t per = numbers_per_entry(attention->heads),
                  most = most_entries(w, per, edges != NULL);
    const struct sl_sparse *const a = w->a;
    struct chunk c;
    for (int64_t b = 0; b < a->blocks; b++)
        for (int64_t r = 0; r < a->rows; r++) {
            const uint32_t end = a->row_ptr[b * a->rows + r + 1];
            for (uint32_t e = a->row_ptr[b * a->rows + r]; e < end;) {
                const int64_t count = end - e < most ? end - e : most;
                read_chunk(a, b, e, count, again ? &w->source : &w->target, per, &c);
                read_edges(w, e, edges);
                if (again)
                    again_chunk(attention, w, products, &c, edges, per, r);
                else
                    back_chunk(attention, w, products, &c, edges, per, r);
                e += (uint32_t)count;
            }
        }
}

/* ---- The kernels ---- */

static void clear_rows(int64_t rows, int64_t cols, const struct sl_floats_at *of)
{
    for (int64_t r = 0; r < rows; r++)
        memset(of->data + r * of->ld, 0, (size_t)cols * sizeof *of->data);
}

/* Clear the room behind the heads' first columns. */
static void clear_room(const struct sl_pair *pair, int64_t rows, const struct sl_floats_at *of)
{
    const int64_t room = pair->attention.width, rest = room - pair->width;
    for (int64_t r = 0; rest > 0 && r < rows; r++)
        for (int64_t h = 0; h < pair->attention.heads; h++)
            memset(of->data + r * of->ld + h * room + pair->width, 0,
                   (size_t)rest * sizeof *of->data);
}

enum way { FORWARD, AGAIN, BACK };

SL_INLINE struct walk walk_of(const struct sl_pair *pair, const struct sl_sparse *a,
                              const struct sl_floats_at *vectors, const struct sl_floats_at *source,
                              const struct sl_floats_at *target, const struct sl_floats_at *out)
{
    return (struct walk){
        .pair = pair,
        .a = a,
        .even = vectors->data + SL_PAIR_EVEN * vectors->ld,
        .odd = vectors->data + SL_PAIR_ODD * vectors->ld,
        .vectors = *vectors,
        .source = *source,
        .target = *target,
        .out = *out,
    };
}

SL_INLINE void walk_with(const struct walk *w, enum way way, struct edge_chunk *edges)
{
    if (way == FORWARD)
        meet(w, edges);
    else
        meet_back(w, way == AGAIN, edges);
}

SL_APART void walk_edges(const struct walk *w, enum way way)
{
    struct edge_chunk edges;
    walk_with(w, way, &edges);
}

SL_INLINE void walk(const struct walk *w, enum way way)
{
    if (w->pair->edges)
        walk_edges(w, way);
    else
        walk_with(w, way, NULL);
}

SL_KERNEL(sl_kernel_pair,
          (const struct sl_pair *pair, const struct sl_sparse *a,
           const struct sl_floats_at *vectors, const struct sl_floats_at *source,
           const struct sl_floats_at *target, bool accumulate, const struct sl_floats_at *state),
          (pair, a, vectors, source, target, accumulate, state))
{
    const struct walk w = walk_of(pair, a, vectors, source, target, state);
    if (!accumulate)
        clear_rows(a->rows, sl_pair_state(pair), state);
    walk(&w, FORWARD);
}

SL_KERNEL(sl_kernel_pair_again,
          (const struct sl_pair *pair, const struct sl_sparse *a,
           const struct sl_floats_at *vectors, const struct sl_floats_at *source,
           const struct sl_floats_at *target, const struct sl_floats_at *gradient, bool accumulate,
           const struct sl_floats_at *target_back, bool edge_accumulate,
           const struct sl_floats_at *edge_back),
          (pair, a, vectors, source, target, gradient, accumulate, target_back, edge_accumulate,
           edge_back))
{
    struct walk w = walk_of(pair, a, vectors, source, target, target_back);
    w.gradient = *gradient;
    w.edge_back = edge_back;
    if (!accumulate)
        clear_rows(a->rows, sl_pair_target_back(pair), target_back);
    if (edge_back && !edge_accumulate)
        clear_rows(pair->edges, sl_pair_all(pair), edge_back);
    walk(&w, AGAIN);
    clear_room(pair, a->rows, target_back);
    if (edge_back)
        clear_room(pair, pair->edges, edge_back);
}

SL_KERNEL(sl_kernel_pair_back,
          (const struct sl_pair *pair, const struct sl_sparse *at,
           const struct sl_floats_at *vectors, const struct sl_floats_at *gradient,
           const struct sl_floats_at *target, const struct sl_floats_at *source, bool accumulate,
           const struct sl_floats_at *source_back),
          (pair, at, vectors, gradient, target, source, accumulate, source_back))
{
    struct walk w = walk_of(pair, at, vectors, source, target, source_back);
    w.gradient = *gradient;
    if (!accumulate)
        clear_rows(at->rows, 2 * sl_pair_all(pair), source_back);
    walk(&w, BACK);
    clear_room(pair, at->rows, source_back);
}
