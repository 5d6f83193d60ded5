/* The gradient of the weights of edges in attention whose scores need both ends' rows. */
#include "codelets/kernels/pair_edges.h"

enum { ROWS = 16 }; /* rows whose products are added before they meet the gradient */

/* The matrices of some rows. */
struct edge_rows {
    int64_t rows;
    struct sl_floats_at target, gradient, a, b;
};

SL_INLINE struct sl_floats_at part_of(const struct sl_floats_at *of, int64_t r, int64_t column)
{
    return (struct sl_floats_at){of->data + r * of->ld + column, of->ld};
}

/* Return the sums of A·T + B·G over the rows: feature and head `number`, columns j … */
SL_INLINE sl_short sum_vector(const struct edge_rows *x, int64_t number, int64_t j)
{
    const float *a = x->a.data + number, *b = x->b.data + number, *t = x->target.data + j,
                *g = x->gradient.data + j;
    sl_short sum = {0};
    for (int64_t r = 0; r < x->rows; r++) {
        sum += *a * *(const sl_short *)t;
        sum += *b * *(const sl_short *)g;
        a += x->a.ld;
        b += x->b.ld;
        t += x->target.ld;
        g += x->gradient.ld;
    }
    return sum;
}

/* Add them to TO (count), which may be fewer than a vector at the end of a head. */
SL_INLINE void add_vector(const struct edge_rows *x, int64_t number, int64_t j, int64_t count,
                          float *to)
{
    const sl_short sum = sum_vector(x, number, j);
    if (count >= SL_SHORT_LANES)
        *(sl_short *)to += sum;
    else
        SL_UNROLL for (int i = 0; i < SL_SHORT_LANES; i++) if (i < count) to[i] += sum[i];
}

SL_INLINE void add_column(const struct edge_rows *x, int64_t number, int64_t j, float *to)
{
    float sum = 0.0f;
    for (int64_t r = 0; r < x->rows; r++) {
        sum = sl_add_product(sum, x->a.data[r * x->a.ld + number],
                             x->target.data[r * x->target.ld + j]);
        sum = sl_add_product(sum, x->b.data[r * x->b.ld + number],
                             x->gradient.data[r * x->gradient.ld + j]);
    }
    *to += sum;
}

SL_INLINE void add_rows(const struct sl_pair *pair, const struct edge_rows *x,
                        const struct sl_floats_at *back)
{
    const int64_t heads = pair->attention.heads, room = pair->attention.width, width = pair->width;
    for (int64_t i = 0; i < pair->edges * heads; i++) {
        const int64_t h = i % heads;
        float *const to = back->data + i / heads * back->ld + h * width;
        for (int64_t j = 0; room >= SL_SHORT_LANES && j < width; j += SL_SHORT_LANES)
            add_vector(x, i, h * room + j, width - j, to + j);
        for (int64_t j = 0; room < SL_SHORT_LANES && j < width; j++)
            add_column(x, i, h * room + j, to + j);
    }
}

SL_KERNEL(sl_kernel_pair_edges_back,
          (const struct sl_pair *pair, int64_t rows, const struct sl_floats_at *target,
           const struct sl_floats_at *gradient, const struct sl_floats_at *target_back,
           const struct sl_floats_at *state, const struct sl_floats_at *back),
          (pair, rows, target, gradient, target_back, state, back))
{
    const int64_t all = sl_pair_all(pair), heads = pair->attention.heads;
    for (int64_t f = 0; f < pair->edges; f++)
        memset(back->data + f * back->ld, 0, (size_t)sl_pair_columns(pair) * sizeof *back->data);
    for (int64_t r = 0; r < rows; r += ROWS) {
        const struct edge_rows x = {
            .rows = rows - r < ROWS ? rows - r : ROWS,
            .target = part_of(target, r, 0),
            .gradient = part_of(gradient, r, 0),
            .a = part_of(target_back, r, all),
            .b = part_of(state, r, all + 2 * heads),
        };
        add_rows(pair, &x, back);
    }
}

SL_KERNEL(sl_kernel_pair_edges_paste,
          (const struct sl_pair *pair, const struct sl_floats_at *sums,
           const struct sl_floats_at *back),
          (pair, sums, back))
{
    const int64_t heads = pair->attention.heads, room = pair->attention.width, width = pair->width;
    for (int64_t i = 0; i < pair->edges * heads; i++)
        memcpy(back->data + i / heads * back->ld + i % heads * width,
               sums->data + i / heads * sums->ld + i % heads * room,
               (size_t)width * sizeof *back->data);
}
