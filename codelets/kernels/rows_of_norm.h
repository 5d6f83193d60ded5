/* What CPU kernels of normalisation share: X of a row, and the sums that its gradient needs. */
#ifndef SL_CODELETS_KERNELS_ROWS_OF_NORM_H
#define SL_CODELETS_KERNELS_ROWS_OF_NORM_H

#include <math.h>

#include "codelets/bfloat16.h"
#include "codelets/norm.h"

enum { RUN = 4096 }; /* elements of a buffer, and most columns of a run */

SL_INLINE int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

SL_INLINE float element(const void *row, bool half, int64_t j)
{
    return half ? sl_widen(((const uint16_t *)row)[j]) : ((const float *)row)[j];
}

/* ---- X ---- */

/* X = ((h - mean) - rest) · inverse of a row. The rest is what a float cannot say of the mean:
 * without it a constant row would not be 0. */
struct moments {
    float mean, rest, inverse;
    float first, second; /* of norm_back: of wG and of wG·X */
};

/* Return the variance, which rounding may make negative. */
SL_INLINE float find_spread_of(const void *row, bool half, int64_t cols, struct moments *to)
{
    const int64_t whole = cols / SL_SIXTEEN * SL_SIXTEEN;
    const float share = 1.0f / (float)cols;
    sl_floats sums[SL_SIXTEEN_VECTORS] = {{0}}, offs[SL_SIXTEEN_VECTORS] = {{0}},
              squares[SL_SIXTEEN_VECTORS] = {{0}};
    float sum = 0.0f, square = 0.0f;
    for (int64_t j = 0; j < whole; j += SL_SIXTEEN)
        SL_UNROLL for (int v = 0; v < SL_SIXTEEN_VECTORS; v++)
        {
            sums[v] += sl_load(row, j + v * SL_LANES, half);
        }
    for (int64_t j = whole; j < cols; j++)
        sum += element(row, half, j);
    to->mean = (sum + sl_add_sixteen(sums)) * share;
    sum = 0.0f;
    for (int64_t j = 0; j < whole; j += SL_SIXTEEN)
        SL_UNROLL for (int v = 0; v < SL_SIXTEEN_VECTORS; v++)
        {
            const sl_floats x = sl_load(row, j + v * SL_LANES, half) - to->mean;
            offs[v] += x;
            squares[v] += x * x;
        }
    for (int64_t j = whole; j < cols; j++) {
        const float off = element(row, half, j) - to->mean;
        sum += off;
        square = sl_add_product(square, off, off);
    }
    to->rest = (sum + sl_add_sixteen(offs)) * share;
    return (square + sl_add_sixteen(squares)) * share - to->rest * to->rest;
}

SL_INLINE float find_spread(const struct sl_rows *h, int64_t r, int64_t cols, struct moments *to)
{
    const void *row = sl_rows_at(h, r, 0).data;
    return h->type == SL_BFLOAT16 ? find_spread_of(row, true, cols, to)
                                  : find_spread_of(row, false, cols, to);
}

/* The moments of a cut row are in `moments`. */
SL_INLINE float take_spread(const struct sl_norm *n, int64_t r, struct moments *to)
{
    to->mean = n->moments[r];
    to->rest = n->moments[n->ldm + r];
    return n->moments[2 * n->ldm + r];
}

SL_INLINE void find_moments(const struct sl_norm *n, int64_t r, struct moments *to)
{
    const float variance = n->moments ? take_spread(n, r, to) : find_spread(&n->h, r, n->cols, to);
    to->inverse = 1.0f / sqrtf((variance < 0.0f ? 0.0f : variance) + n->epsilon);
}

/* 1 / sqrt(variance + epsilon) of some columns; of rows, nothing. */
SL_INLINE void invert(const struct sl_norm *n, int64_t j, int64_t count, float *restrict inverse)
{
    for (int64_t i = 0; n->mean && i < count; i++)
        inverse[i] = 1.0f / sqrtf(n->variance[j + i] + n->epsilon);
}

/* X of row r from column j on: with the row's moments, or, where there are means, the columns'.
 * `scaled`: weight · X + bias. */
SL_INLINE void normalise_of(const struct sl_norm *n, bool half, bool scaled,
                            const struct moments *of, int64_t r, int64_t j, int64_t count,
                            const float *restrict inverse, float *restrict x)
{
    const void *row = sl_rows_at(&n->h, r, j).data;
    const float own = of->mean, rest = of->rest, by = of->inverse;
    const float *restrict weight = scaled ? n->weight + j : NULL, *restrict bias =
                                                                      scaled ? n->bias + j : NULL;
    if (n->mean) {
        const float *restrict mean = n->mean + j;
        for (int64_t i = 0; i < count; i++) {
            const float to = (element(row, half, i) - mean[i]) * inverse[i];
            x[i] = scaled ? to * weight[i] + bias[i] : to;
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            const float to = ((element(row, half, i) - own) - rest) * by;
            x[i] = scaled ? to * weight[i] + bias[i] : to;
        }
    }
}

SL_INLINE void normalise(const struct sl_norm *n, bool scaled, const struct moments *of, int64_t r,
                         int64_t j, int64_t count, const float *restrict inverse, float *restrict x)
{
    if (n->h.type == SL_BFLOAT16)
        normalise_of(n, true, scaled, of, r, j, count, inverse, x);
    else
        normalise_of(n, false, scaled, of, r, j, count, inverse, x);
}

/* ---- Gradients ---- */

/* first += wG, second += wG·X of sixteen elements, lane by lane. */
SL_INLINE void add_sixteen(const float *w, const void *g, bool half, const float *x,
                           sl_floats *first, sl_floats *second)
{
    SL_UNROLL for (int v = 0; v < SL_SIXTEEN_VECTORS; v++)
    {
        const sl_floats own = sl_load(g, v * SL_LANES, half) * ((const sl_floats *)w)[v];
        first[v] += own;
        second[v] += own * ((const sl_floats *)x)[v];
    }
}

/* The same of `count` elements. The last ones, fewer than sixteen, go through arrays of zeros. */
SL_INLINE void add_products(int64_t count, const float *w, const void *g, bool half, const float *x,
                            sl_floats *first, sl_floats *second)
{
    const int64_t whole = count / SL_SIXTEEN * SL_SIXTEEN;
    for (int64_t i = 0; i < whole; i += SL_SIXTEEN)
        add_sixteen(w + i, (const char *)g + i * (half ? 2 : 4), half, x + i, first, second);
    if (whole < count) {
        float last_w[SL_SIXTEEN] = {0}, last_g[SL_SIXTEEN] = {0}, last_x[SL_SIXTEEN] = {0};
        for (int64_t i = whole; i < count; i++) {
            last_w[i - whole] = w[i];
            last_g[i - whole] = element(g, half, i);
            last_x[i - whole] = x[i];
        }
        add_sixteen(last_w, last_g, false, last_x, first, second);
    }
}

/* The sums of wG and of wG·X over row r, whose other moments are there. X: a buffer of a run. */
SL_INLINE void sum_products(const struct sl_norm *n, const struct sl_rows *g, int64_t r, float *x,
                            struct moments *of)
{
    sl_floats first[SL_SIXTEEN_VECTORS] = {{0}}, second[SL_SIXTEEN_VECTORS] = {{0}};
    for (int64_t j = 0; j < n->cols; j += RUN) {
        const int64_t count = least(RUN, n->cols - j);
        const void *row = sl_rows_at(g, r, j).data;
        normalise(n, false, of, r, j, count, NULL, x);
        if (g->type == SL_BFLOAT16)
            add_products(count, n->weight + j, row, true, x, first, second);
        else
            add_products(count, n->weight + j, row, false, x, first, second);
    }
    of->first = sl_add_sixteen(first);
    of->second = sl_add_sixteen(second);
}

#endif
