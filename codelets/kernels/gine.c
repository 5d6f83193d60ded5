/* GINE's aggregation and its gradients. Some entries are taken together, so that a load of weights
 * serves all of them. Their messages stay in registers, for a slice of the columns. */
#include "codelets/gine.h"

#include <string.h>

#include "codelets/gather.h"
#include "codelets/vector.h"

enum {
    TOGETHER = 4,                        /* most entries that are taken together */
    MOST = SL_VECTOR_BYTES < 64 ? 2 : 4, /* most vectors of a slice */
    /* Gradients of EDGE are summed for CHUNK entries apart, and for some columns at a time. */
    CHUNK = 512,
    WIDE = 64,
    NARROW = 32, /* columns where there are many features */
    SUMS = (SL_EDGE_FEATURES + 1) * NARROW,
};

/* A walk over A or Aᵀ. Entries meet rows of MET. OWN and OUT have a row for each row of A or Aᵀ. */
struct walk {
    const struct sl_sparse *a;
    struct sl_floats_at met, own, edge, out;
    bool has_out;
    uint32_t ahead; /* entries between prefetching a row and using it */
};

SL_INLINE int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

SL_INLINE uint32_t ahead_of(int64_t cols)
{
    return (uint32_t)sl_gather_ahead(cols * (int64_t)sizeof(float));
}

/* ---- Columns ---- */

/* Return a vector of columns, or, if `single`, the first column alone. */
SL_INLINE sl_floats load(const float *x, bool single)
{
    return single ? sl_load_lanes(x, 1) : *(const sl_floats *)x;
}

static void clear(int64_t rows, int64_t cols, const struct sl_floats_at *of)
{
    for (int64_t r = 0; r < rows; r++)
        memset(of->data + r * of->ld, 0, (size_t)cols * sizeof *of->data);
}

/* A slice of a row: `vectors` vectors from column j on, of which `count` columns exist. */
struct slice {
    int64_t j, count;
    int vectors;
    bool single; /* operands have no room for a whole vector: take a column */
};

/* Run `with(slice)` for all slices of columns j … end - 1. `room`: columns that may be read. */
#define EACH_SLICE(j, end, room, with)                                 \
    do {                                                               \
        for (; (j) + MOST * SL_LANES <= (end); (j) += MOST * SL_LANES) \
            with(((struct slice){j, MOST * SL_LANES, MOST, false}));   \
        for (; (j) + SL_LANES <= (end); (j) += SL_LANES)               \
            with(((struct slice){j, SL_LANES, 1, false}));             \
        if ((j) < (end) && (j) + SL_LANES <= (room)) {                 \
            with(((struct slice){j, (end) - (j), 1, false}));          \
            (j) = (end);                                               \
        }                                                              \
        for (; (j) < (end); (j)++)                                     \
            with(((struct slice){j, 1, 1, true}));                     \
    } while (0)

/* ---- Messages ---- */

/* Return the row that entry e of block b meets, from the slice on. Prefetch the row that a later
 * entry meets. An entry of the next block is taken for an entry of this block, so
 * another row may be prefetched. */
SL_INLINE const float *meet_row(const struct walk *w, int64_t b, uint32_t e, const struct slice *s)
{
    const struct sl_sparse *const a = w->a;
    const uint32_t last = a->row_ptr[a->blocks * a->rows] - 1,
                   coming = e + w->ahead < last ? e + w->ahead : last;
    const float *const rows = w->met.data + b * a->block_cols * w->met.ld + s->j,
                       *const row = rows + sl_sparse_col(a, coming) * w->met.ld;
    SL_UNROLL for (int at = 0; at < s->vectors * SL_LANES; at += 16) __builtin_prefetch(row + at);
    return rows + sl_sparse_col(a, e) * w->met.ld;
}

/* Add f·W of `entries` entries from e on to X. */
SL_INLINE void add_features(const struct walk *w, uint32_t e, int entries, const struct slice *s,
                            sl_floats x[TOGETHER][MOST])
{
    const int64_t features = w->a->edge_features;
    const float *const f = w->a->edge + e * features, *weights = w->edge.data + s->j;
    for (int64_t k = 0; k < features; k++, weights += w->edge.ld) {
        sl_floats weight[MOST];
        SL_UNROLL for (int v = 0; v < s->vectors; v++) weight[v] =
            load(weights + v * SL_LANES, s->single);
        SL_UNROLL for (int i = 0; i < entries; i++) SL_UNROLL for (int v = 0; v < s->vectors; v++)
            x[i][v] += f[i * features + k] * weight[v];
    }
}

SL_INLINE const float *bias_of(const struct walk *w, const struct slice *s)
{
    return w->edge.data + w->a->edge_features * w->edge.ld + s->j;
}

/* ---- Forward ---- */

/* Return x, or 0 where x < 0; NaN stays. */
SL_INLINE sl_floats rectify(sl_floats x)
{
    return (sl_floats)((sl_ints)x & ~(sl_ints)(x < 0.0f));
}

/* Add the messages of `entries` entries from e on to SUM. */
SL_INLINE void add_messages(const struct walk *w, int64_t b, uint32_t e, int entries,
                            const struct slice *s, sl_floats *sum)
{
    const float *const bias = bias_of(w, s);
    sl_floats x[TOGETHER][MOST];
    SL_UNROLL for (int i = 0; i < entries; i++)
    {
        const float *const row = meet_row(w, b, e + (uint32_t)i, s);
        SL_UNROLL for (int v = 0; v < s->vectors; v++) x[i][v] =
            load(row + v * SL_LANES, s->single) + load(bias + v * SL_LANES, s->single);
    }
    add_features(w, e, entries, s, x);
    SL_UNROLL for (int i = 0; i < entries; i++) SL_UNROLL for (int v = 0; v < s->vectors; v++)
        sum[v] += rectify(x[i][v]);
}

/* Make a slice of row r from the entries of block b. `fresh`: OUT has nothing yet. */
SL_INLINE void slice_of(const struct walk *w, int64_t b, int64_t r, struct slice s, bool fresh)
{
    const uint32_t *const row_ptr = w->a->row_ptr + b * w->a->rows + r, end = row_ptr[1];
    uint32_t e = row_ptr[0];
    float *const out = w->out.data + r * w->out.ld + s.j;
    sl_floats sum[MOST];
    SL_UNROLL for (int v = 0; v < s.vectors; v++)
    {
        sum[v] = (sl_floats){0};
        if (!fresh)
            sum[v] = sl_load_some(out + v * SL_LANES, s.count - v * SL_LANES);
    }
    for (; !s.single && end - e >= TOGETHER; e += TOGETHER)
        add_messages(w, b, e, TOGETHER, &s, sum);
    if (!s.single && end - e >= 2) {
        add_messages(w, b, e, 2, &s, sum);
        e += 2;
    }
    for (; e < end; e++)
        add_messages(w, b, e, 1, &s, sum);
    SL_UNROLL for (int v = 0; v < s.vectors; v++)
        sl_store_some(sum[v], s.count - v * SL_LANES, out + v * SL_LANES);
}

SL_KERNEL(sl_kernel_gine,
          (const struct sl_sparse *a, int64_t cols, const struct sl_floats_at *x,
           const struct sl_floats_at *edge, bool accumulate, const struct sl_floats_at *out),
          (a, cols, x, edge, accumulate, out))
{
    const struct walk w = {.a = a, .met = *x, .edge = *edge, .out = *out, .ahead = ahead_of(cols)};
    const int64_t room = least(x->ld, edge->ld);
    if (a->blocks == 0 && !accumulate)
        clear(a->rows, cols, out);
    for (int64_t b = 0; b < a->blocks; b++)
        for (int64_t r = 0; r < a->rows; r++) {
            const bool fresh = !accumulate && b == 0;
            int64_t j = 0;
#define WITH(slice) slice_of(&w, b, r, slice, fresh)
            EACH_SLICE(j, cols, room, WITH);
#undef WITH
        }
}

/* ---- Backward ---- */

/* Add m ∘ G of `entries` entries from e on to SUM, and f ⊗ (m ∘ G) to SUMS, whose rows are `ld`
 * numbers apart. OWN is the row's X + bias. */
SL_INLINE void add_gradients(const struct walk *w, int64_t b, uint32_t e, int entries,
                             const struct slice *s, const sl_floats *own, sl_floats *sum,
                             float *sums, int64_t ld)
{
    const int64_t features = w->a->edge_features;
    const float *const f = w->a->edge + e * features;
    sl_floats x[TOGETHER][MOST];
    SL_UNROLL for (int i = 0; i < entries; i++) SL_UNROLL for (int v = 0; v < s->vectors; v++)
        x[i][v] = own[v];
    add_features(w, e, entries, s, x);
    SL_UNROLL for (int i = 0; i < entries; i++)
    {
        const float *const row = meet_row(w, b, e + (uint32_t)i, s);
        SL_UNROLL for (int v = 0; v < s->vectors; v++)
        {
            x[i][v] = (sl_floats)((sl_ints)load(row + v * SL_LANES, s->single) &
                                  (sl_ints)(x[i][v] > 0.0f));
            sum[v] += x[i][v];
        }
    }
    for (int64_t k = 0; k < features; k++, sums += ld) {
        sl_floats total[MOST];
        SL_UNROLL for (int v = 0; v < s->vectors; v++) total[v] =
            load(sums + v * SL_LANES, s->single);
        SL_UNROLL for (int i = 0; i < entries; i++) SL_UNROLL for (int v = 0; v < s->vectors; v++)
            total[v] += f[i * features + k] * x[i][v];
        SL_UNROLL for (int v = 0; v < s->vectors; v++)
            sl_store_some(total[v], s->single ? 1 : SL_LANES, sums + v * SL_LANES);
    }
}

/* Walk a slice of row r. The sums of EDGE's gradients begin at SUMS. */
SL_INLINE void slice_back(const struct walk *w, int64_t b, int64_t r, struct slice s, bool fresh,
                          float *sums, int64_t ld)
{
    const uint32_t *const row_ptr = w->a->row_ptr + b * w->a->rows + r, end = row_ptr[1];
    uint32_t e = row_ptr[0];
    const float *const x = w->own.data + r * w->own.ld + s.j, *const bias = bias_of(w, &s);
    float *const out = w->has_out ? w->out.data + r * w->out.ld + s.j : NULL,
                 *const of_bias = sums + w->a->edge_features * ld;
    sl_floats own[MOST], sum[MOST];
    SL_UNROLL for (int v = 0; v < s.vectors; v++)
    {
        own[v] = load(x + v * SL_LANES, s.single) + load(bias + v * SL_LANES, s.single);
        sum[v] = (sl_floats){0};
    }
    for (; !s.single && end - e >= TOGETHER; e += TOGETHER)
        add_gradients(w, b, e, TOGETHER, &s, own, sum, sums, ld);
    if (!s.single && end - e >= 2) {
        add_gradients(w, b, e, 2, &s, own, sum, sums, ld);
        e += 2;
    }
    for (; e < end; e++)
        add_gradients(w, b, e, 1, &s, own, sum, sums, ld);
    SL_UNROLL for (int v = 0; v < s.vectors; v++)
    {
        const int64_t count = s.count - v * SL_LANES;
        float *const total = of_bias + v * SL_LANES;
        sl_store_some(load(total, s.single) + sum[v], s.single ? 1 : SL_LANES, total);
        if (out && fresh)
            sl_store_some(sum[v], count, out + v * SL_LANES);
        else if (out)
            sl_store_some(sl_load_some(out + v * SL_LANES, count) + sum[v], count,
                          out + v * SL_LANES);
    }
}

/* Return the end of the rows from row r on that have CHUNK entries of block b, or of row r. */
SL_INLINE int64_t end_of_chunk(const struct sl_sparse *a, int64_t b, int64_t r)
{
    const uint32_t *const row_ptr = a->row_ptr + b * a->rows, first = row_ptr[r];
    for (r++; r < a->rows && row_ptr[r + 1] - first <= CHUNK;)
        r++;
    return r;
}

SL_KERNEL(sl_kernel_gine_back,
          (const struct sl_sparse *at, int64_t cols, const struct sl_floats_at *g,
           const struct sl_floats_at *x, const struct sl_floats_at *edge, bool accumulate,
           const struct sl_floats_at *back, bool edge_accumulate,
           const struct sl_floats_at *edge_back),
          (at, cols, g, x, edge, accumulate, back, edge_accumulate, edge_back))
{
    const struct walk w = {.a = at,
                           .met = *g,
                           .own = *x,
                           .edge = *edge,
                           .out = back ? *back : (struct sl_floats_at){0},
                           .ahead = ahead_of(least(cols, WIDE)),
                           .has_out = back != NULL};
    const int64_t rows = at->edge_features + 1, room = least(least(g->ld, x->ld), edge->ld),
                  width = rows * WIDE <= SUMS ? WIDE : NARROW;
    float sums[SUMS];
    if (!edge_accumulate)
        clear(rows, cols, edge_back);
    if (back && at->blocks == 0 && !accumulate)
        clear(at->rows, cols, back);
    for (int64_t b = 0; b < at->blocks; b++) {
        const bool fresh = !accumulate && b == 0;
        for (int64_t r = 0, end; r < at->rows; r = end) {
            end = end_of_chunk(at, b, r);
            for (int64_t first = 0; first < cols; first += width) {
                const int64_t last = least(first + width, cols);
                memset(sums, 0, (size_t)(rows * width) * sizeof(float));
                for (int64_t i = r; i < end; i++) {
                    int64_t j = first;
#define WITH(slice) slice_back(&w, b, i, slice, fresh, sums + j - first, width)
                    EACH_SLICE(j, last, room, WITH);
#undef WITH
                }
                for (int64_t k = 0; k < rows; k++)
                    for (int64_t j = first; j < last; j++)
                        edge_back->data[k * edge_back->ld + j] += sums[k * width + j - first];
            }
        }
    }
}
