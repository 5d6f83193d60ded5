/* Scores of links, and their gradients. A gradient by the rows of an end is a sparse product: the
 * links of a row are one run, whose sums stay in registers for a slice of the columns. */
#include "codelets/links.h"

#include "codelets/gather.h"
#include "codelets/vector.h"

enum {
    AHEAD = 16,     /* links between prefetching a row and using it */
    MOST = 4,       /* most vectors of a slice */
    TOGETHER = 256, /* links whose terms of a parameter are summed first: a long sum loses bits */
};

SL_INLINE const float *row_of(const struct sl_floats_at *rows, int64_t r)
{
    return rows->data + r * rows->ld;
}

/* NaN stays. */
SL_INLINE sl_floats relu(sl_floats x)
{
    return (sl_floats)((sl_ints)x & ~(sl_ints)(x < 0.0f));
}

/* ---- Scores ---- */

/* Return SUM + the terms of columns from `at` on, of which `count` exist. */
SL_INLINE sl_floats add_terms(enum sl_decoder decoder, sl_floats sum, const float *x,
                              const float *y, const float *w, int64_t at, int64_t count)
{
    const sl_floats a = sl_load_some(x + at, count), b = sl_load_some(y + at, count);
    if (decoder == SL_DECODER_DOT)
        return sum + a * b;
    const sl_floats weight = sl_load_some(w + at, count);
    return decoder == SL_DECODER_DISTMULT ? sum + weight * a * b : sum + weight * relu(a + b);
}

SL_INLINE float score_of(enum sl_decoder decoder, int64_t cols, const float *x, const float *y,
                         const float *w)
{
    sl_floats sum[SL_SIXTEEN_VECTORS] = {{0}};
    int64_t c = 0;
    for (; c + SL_SIXTEEN <= cols; c += SL_SIXTEEN)
        SL_UNROLL for (int v = 0; v < SL_SIXTEEN_VECTORS; v++) sum[v] =
            add_terms(decoder, sum[v], x, y, w, c + v * SL_LANES, SL_LANES);
    SL_UNROLL for (int v = 0; v < SL_SIXTEEN_VECTORS; v++)
    {
        const int64_t at = c + v * SL_LANES;
        if (at < cols)
            sum[v] = add_terms(decoder, sum[v], x, y, w, at, cols - at);
    }
    return sl_add_sixteen(sum);
}

SL_INLINE void score_links(enum sl_decoder decoder, const struct sl_link_rows *rows,
                           struct sl_scored_link *segment)
{
    const int64_t count = sl_link_count(segment),
                  cols = decoder == SL_DECODER_MLP ? rows->cols / 2 : rows->cols;
    const int64_t shift = decoder == SL_DECODER_MLP ? cols : 0;
    const int64_t ahead = sl_gather_ahead(cols * (int64_t)sizeof(float));
    struct sl_scored_link *const link = segment + 1;
    for (int64_t e = 0; e < count; e++) {
        if (e + ahead < count)
            __builtin_prefetch(row_of(&rows->y, link[e + ahead].target) + shift);
        const float score = score_of(decoder, cols, row_of(&rows->x, link[e].source),
                                     row_of(&rows->y, link[e].target) + shift, rows->w);
        link[e].value = decoder == SL_DECODER_MLP ? score + rows->w[cols] : score;
    }
}

SL_KERNEL(sl_kernel_link_scores, (const struct sl_link_rows *rows, struct sl_scored_link *segment),
          (rows, segment))
{
    switch (rows->decoder) {
    case SL_DECODER_DOT:
        score_links(SL_DECODER_DOT, rows, segment);
        break;
    case SL_DECODER_DISTMULT:
        score_links(SL_DECODER_DISTMULT, rows, segment);
        break;
    case SL_DECODER_MLP:
        score_links(SL_DECODER_MLP, rows, segment);
        break;
    }
}

/* ---- Gradients by rows ---- */

/* The links of one row, in the order of one end. */
struct run {
    const struct sl_scored_link *link;
    int64_t first, end;
    bool by_target;
};

SL_INLINE const struct sl_scored_link *link_at(const struct run *run, int64_t p)
{
    return &run->link[run->by_target ? run->link[p].by_target : p];
}

/* OWN is the row of the end whose gradient is made. MET has the rows of the other end. W has the
 * parameters of the decoder. */
struct slices {
    struct sl_floats_at met;
    const float *own, *w;
    bool by_target;
};

/* Add the terms of a run to `vectors` vectors of G from column j on, of which `count` columns
 * exist. */
SL_INLINE void add_slice(enum sl_decoder decoder, const struct slices *s, const struct run *run,
                         int vectors, int64_t j, int64_t count, float *g)
{
    sl_floats sum[MOST], weight[MOST] = {{0}}, own[MOST] = {{0}};
    SL_UNROLL for (int v = 0; v < MOST; v++) if (v < vectors)
    {
        const int64_t at = j + v * SL_LANES, some = count - v * SL_LANES;
        sum[v] = sl_load_some(g + at, some);
        if (decoder != SL_DECODER_DOT)
            weight[v] = sl_load_some(s->w + at, some);
        if (decoder == SL_DECODER_MLP)
            own[v] = sl_load_some(s->own + at, some);
    }
    for (int64_t p = run->first; p < run->end; p++) {
        const struct sl_scored_link *link = link_at(run, p);
        const float *met = row_of(&s->met, s->by_target ? link->source : link->target);
        SL_UNROLL for (int v = 0; v < MOST; v++) if (v < vectors)
        {
            const sl_floats other = sl_load_some(met + j + v * SL_LANES, count - v * SL_LANES);
            if (decoder == SL_DECODER_DOT)
                sum[v] += link->value * other;
            else if (decoder == SL_DECODER_DISTMULT)
                sum[v] += link->value * (weight[v] * other);
            else
                sum[v] += link->value * (sl_floats)((sl_ints)weight[v] & (own[v] + other > 0.0f));
        }
    }
    SL_UNROLL for (int v = 0; v < MOST; v++) if (v < vectors)
        sl_store_some(sum[v], count - v * SL_LANES, g + j + v * SL_LANES);
}

SL_INLINE void add_run(enum sl_decoder decoder, const struct slices *s, const struct run *run,
                       int64_t cols, float *g)
{
    int64_t j = 0;
    for (; j + MOST * SL_LANES <= cols; j += MOST * SL_LANES)
        add_slice(decoder, s, run, MOST, j, MOST * SL_LANES, g);
    for (; j + SL_LANES <= cols; j += SL_LANES)
        add_slice(decoder, s, run, 1, j, SL_LANES, g);
    if (j < cols)
        add_slice(decoder, s, run, 1, j, cols - j, g);
}

/* Prefetch links and the rows that they meet, up to place `end` of `links`. Return where it ends.
 */
SL_INLINE int64_t prefetch_rows(const struct run *run, const struct sl_floats_at *met, int64_t cols,
                                int64_t from, int64_t end, int64_t links)
{
    enum { LINE = 16 };
    for (; from < end && from < links; from++) {
        if (run->by_target && from + AHEAD < links)
            __builtin_prefetch(link_at(run, from + AHEAD));
        const struct sl_scored_link *link = link_at(run, from);
        const float *row = row_of(met, run->by_target ? link->source : link->target);
        for (int64_t j = 0; j < cols && j < MOST * LINE; j += LINE)
            __builtin_prefetch(row + j);
    }
    return from;
}

SL_INLINE void go_back(enum sl_decoder decoder, const struct sl_link_rows *rows,
                       enum sl_link_end end, const struct sl_scored_link *segment,
                       struct sl_floats_at g)
{
    const int64_t links = sl_link_count(segment),
                  cols = decoder == SL_DECODER_MLP ? rows->cols / 2 : rows->cols;
    const int64_t shift = decoder == SL_DECODER_MLP ? cols : 0;
    const bool by_target = end == SL_LINK_TARGET;
    struct sl_floats_at own = by_target ? rows->y : rows->x, met = by_target ? rows->x : rows->y;
    own.data += by_target ? shift : 0;
    met.data += by_target ? 0 : shift;
    g.data += by_target ? shift : 0;
    struct run run = {segment + 1, 0, 0, by_target};
    int64_t prefetched = 0;
    while (run.end < links) {
        run.first = run.end;
        prefetched = prefetch_rows(&run, &met, cols, prefetched, run.first + AHEAD, links);
        const struct sl_scored_link *first = link_at(&run, run.first);
        const int64_t r = by_target ? first->target : first->source;
        while (run.end < links &&
               (by_target ? link_at(&run, run.end)->target : link_at(&run, run.end)->source) == r)
            run.end++;
        prefetched = prefetch_rows(&run, &met, cols, prefetched, run.end + AHEAD, links);
        const struct slices s = {met, row_of(&own, r), rows->w, by_target};
        add_run(decoder, &s, &run, cols, g.data + r * g.ld);
    }
}

/* G += the gradient by the rows of targets, link by link: the rows of a source come once, and sums
 * of targets are in the order of go_back. */
SL_INLINE void scatter(enum sl_decoder decoder, const struct sl_link_rows *rows,
                       const struct sl_scored_link *segment, struct sl_floats_at g)
{
    enum { LINE = 16 };
    const int64_t links = sl_link_count(segment), cols = rows->cols;
    const struct sl_scored_link *const link = segment + 1;
    for (int64_t e = 0; e < links; e++) {
        const float *const x = row_of(&rows->x, link[e].source);
        float *const to = g.data + link[e].target * g.ld;
        if (e + AHEAD < links)
            for (int64_t j = 0; j < cols && j < MOST * LINE; j += LINE)
                __builtin_prefetch(g.data + link[e + AHEAD].target * g.ld + j, 1);
        int64_t j = 0;
        for (; j + SL_LANES <= cols; j += SL_LANES) {
            sl_floats other = *(const sl_floats *)(x + j);
            if (decoder == SL_DECODER_DISTMULT)
                other *= *(const sl_floats *)(rows->w + j);
            *(sl_floats *)(to + j) += link[e].value * other;
        }
        for (; j < cols; j++)
            to[j] = sl_add_product(to[j], link[e].value,
                                   decoder == SL_DECODER_DISTMULT ? x[j] * rows->w[j] : x[j]);
    }
}

SL_KERNEL(sl_kernel_link_back,
          (const struct sl_link_rows *rows, enum sl_link_end end, int64_t count,
           const struct sl_scored_link *segment, struct sl_floats_at g),
          (rows, end, count, segment, g))
{
    (void)count;
    switch (rows->decoder) {
    case SL_DECODER_DOT:
        if (end == SL_LINK_TARGET)
            scatter(SL_DECODER_DOT, rows, segment, g);
        else
            go_back(SL_DECODER_DOT, rows, end, segment, g);
        break;
    case SL_DECODER_DISTMULT:
        if (end == SL_LINK_TARGET)
            scatter(SL_DECODER_DISTMULT, rows, segment, g);
        else
            go_back(SL_DECODER_DISTMULT, rows, end, segment, g);
        break;
    case SL_DECODER_MLP:
        go_back(SL_DECODER_MLP, rows, end, segment, g);
        break;
    }
}

/* ---- Gradient by the parameters ---- */

/* Add the terms of links first … end - 1 to `vectors` vectors of dw from column j on, of which
 * `count` columns exist. */
SL_INLINE void add_terms_of_links(bool mlp, const struct sl_link_rows *rows,
                                  const struct sl_scored_link *link, int64_t first, int64_t end,
                                  int vectors, int64_t j, int64_t count, int64_t shift, float *dw)
{
    sl_floats sum[MOST] = {{0}};
    for (int64_t e = first; e < end; e++) {
        const float *const x = row_of(&rows->x, link[e].source) + j, *const y =
                                                                         row_of(&rows->y,
                                                                                link[e].target) +
                                                                         j + shift;
        SL_UNROLL for (int v = 0; v < MOST; v++) if (v < vectors)
        {
            const int64_t at = v * SL_LANES;
            const sl_floats a = sl_load_some(x + at, count - at),
                            b = sl_load_some(y + at, count - at);
            const sl_floats term = mlp ? relu(a + b) : (sl_floats)(a * b);
            sum[v] += link[e].value * term;
        }
    }
    SL_UNROLL for (int v = 0; v < MOST; v++) if (v < vectors)
    {
        const int64_t at = j + v * SL_LANES, some = count - v * SL_LANES;
        sl_store_some(sl_load_some(dw + at, some) + sum[v], some, dw + at);
    }
}

/* Add the terms of some links, whose rows stay in the cache, to all columns. */
SL_INLINE void add_chunk(bool mlp, const struct sl_link_rows *rows,
                         const struct sl_scored_link *link, int64_t first, int64_t end, float *dw)
{
    const int64_t cols = mlp ? rows->cols / 2 : rows->cols, shift = mlp ? cols : 0;
    int64_t j = 0;
    for (; j + MOST * SL_LANES <= cols; j += MOST * SL_LANES)
        add_terms_of_links(mlp, rows, link, first, end, MOST, j, MOST * SL_LANES, shift, dw);
    for (; j + SL_LANES <= cols; j += SL_LANES)
        add_terms_of_links(mlp, rows, link, first, end, 1, j, SL_LANES, shift, dw);
    if (j < cols)
        add_terms_of_links(mlp, rows, link, first, end, 1, j, cols - j, shift, dw);
}

SL_INLINE void add_links(bool mlp, const struct sl_link_rows *rows,
                         const struct sl_scored_link *segment, float *dw)
{
    const int64_t links = sl_link_count(segment);
    for (int64_t first = 0; first < links; first += TOGETHER) {
        const int64_t end = first + TOGETHER < links ? first + TOGETHER : links;
        add_chunk(mlp, rows, segment + 1, first, end, dw);
        float sum = 0.0f;
        for (int64_t e = first; mlp && e < end; e++)
            sum += segment[1 + e].value;
        if (mlp)
            dw[rows->cols / 2] += sum;
    }
}

SL_KERNEL(sl_kernel_link_parameters,
          (const struct sl_link_rows *rows, const struct sl_scored_link *segment, float *dw),
          (rows, segment, dw))
{
    if (rows->decoder == SL_DECODER_MLP)
        add_links(true, rows, segment, dw);
    else
        add_links(false, rows, segment, dw);
}
