/* Functions that CPU kernels of normalisation share. They find the normalised values X of a row,
 * and the sums that the gradient of a row needs. */
#ifndef SL_CODELETS_KERNELS_ROWS_OF_NORM_H
#define SL_CODELETS_KERNELS_ROWS_OF_NORM_H

#include <math.h>
#include <string.h>

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

/* Moments of a row: X = ((h - mean) - rest) · inverse. The rest is the part of the mean that a
 * float cannot hold: without it a constant row would not be 0. */
struct moments {
    float mean, rest, inverse;
    float first, second; /* for norm_back: sums of wG and of wG·X */
};

enum { TOGETHER = 4 }; /* rows whose sums are found together */

/* Add the lanes of `rows` rows to their sums, lane after lane. Steps of one row wait for each
 * other; steps of several rows overlap. */
SL_INLINE void add_lanes(int rows, float lanes[TOGETHER][SL_SIXTEEN], float *sum)
{
    float of[TOGETHER];
    SL_UNROLL for (int q = 0; q < rows; q++) of[q] = lanes[q][0];
    SL_UNROLL for (int i = 1; i < SL_SIXTEEN; i++)
    {
        SL_UNROLL for (int q = 0; q < rows; q++) of[q] += lanes[q][i];
    }
    SL_UNROLL for (int q = 0; q < rows; q++) sum[q] += of[q];
}

/* Find mean and rest of `rows` rows from row r on, at most TOGETHER, and the variances, which
 * rounding may make negative. */
SL_INLINE void find_spreads_of(const struct sl_rows *h, bool half, int64_t r, int rows,
                               int64_t cols, struct moments *to, float *variance)
{
    const int64_t whole = cols / SL_SIXTEEN * SL_SIXTEEN;
    const float share = 1.0f / (float)cols;
    float lanes[TOGETHER][SL_SIXTEEN], squares[TOGETHER][SL_SIXTEEN];
    float sum[TOGETHER] = {0}, square[TOGETHER] = {0};
    for (int q = 0; q < rows; q++) {
        const void *row = sl_rows_at(h, r + q, 0).data;
        sl_floats sums[SL_SIXTEEN_VECTORS] = {{0}};
        for (int64_t j = 0; j < whole; j += SL_SIXTEEN)
            SL_UNROLL for (int v = 0; v < SL_SIXTEEN_VECTORS; v++)
            {
                sums[v] += sl_load(row, j + v * SL_LANES, half);
            }
        for (int64_t j = whole; j < cols; j++)
            sum[q] += element(row, half, j);
        memcpy(lanes[q], sums, sizeof sums);
    }
    add_lanes(rows, lanes, sum);
    for (int q = 0; q < rows; q++) {
        const void *row = sl_rows_at(h, r + q, 0).data;
        const float mean = sum[q] * share;
        sl_floats offs[SL_SIXTEEN_VECTORS] = {{0}}, powers[SL_SIXTEEN_VECTORS] = {{0}};
        to[q].mean = mean;
        sum[q] = 0.0f;
        for (int64_t j = 0; j < whole; j += SL_SIXTEEN)
            SL_UNROLL for (int v = 0; v < SL_SIXTEEN_VECTORS; v++)
            {
                const sl_floats x = sl_load(row, j + v * SL_LANES, half) - mean;
                offs[v] += x;
                powers[v] += x * x;
            }
        for (int64_t j = whole; j < cols; j++) {
            const float off = element(row, half, j) - mean;
            sum[q] += off;
            square[q] = sl_add_product(square[q], off, off);
        }
        memcpy(lanes[q], offs, sizeof offs);
        memcpy(squares[q], powers, sizeof powers);
    }
    add_lanes(rows, lanes, sum);
    add_lanes(rows, squares, square);
    for (int q = 0; q < rows; q++) {
        to[q].rest = sum[q] * share;
        variance[q] = square[q] * share - to[q].rest * to[q].rest;
    }
}

SL_INLINE void find_spreads(const struct sl_rows *h, int64_t r, int rows, int64_t cols,
                            struct moments *to, float *variance)
{
    if (h->type == SL_BFLOAT16)
        find_spreads_of(h, true, r, rows, cols, to, variance);
    else
        find_spreads_of(h, false, r, rows, cols, to, variance);
}

/* Take mean and rest of cut row r from n->moments. Return its variance. */
SL_INLINE float take_spread(const struct sl_norm *n, int64_t r, struct moments *to)
{
    to->mean = n->moments[r];
    to->rest = n->moments[n->ldm + r];
    return n->moments[2 * n->ldm + r];
}

SL_INLINE void find_moments_of(const struct sl_norm *n, int64_t r, int rows, struct moments *to)
{
    float variance[TOGETHER];
    if (n->moments)
        for (int q = 0; q < rows; q++)
            variance[q] = take_spread(n, r + q, to + q);
    else
        find_spreads(&n->h, r, rows, n->cols, to, variance);
    for (int q = 0; q < rows; q++)
        to[q].inverse = 1.0f / sqrtf((variance[q] < 0.0f ? 0.0f : variance[q]) + n->epsilon);
}

SL_INLINE void find_moments(const struct sl_norm *n, int64_t r, int64_t rows, struct moments *to)
{
    int64_t q = 0;
    for (; q + TOGETHER <= rows; q += TOGETHER)
        find_moments_of(n, r + q, TOGETHER, to + q);
    for (; q < rows; q++)
        find_moments_of(n, r + q, 1, to + q);
}

/* Set inverse = 1 / sqrt(variance + epsilon) of `count` columns; do nothing in a norm of rows. */
SL_INLINE void invert(const struct sl_norm *n, int64_t j, int64_t count, float *restrict inverse)
{
    for (int64_t i = 0; n->mean && i < count; i++)
        inverse[i] = 1.0f / sqrtf(n->variance[j + i] + n->epsilon);
}

/* Make X of row r from column j on, by the row's moments, or, where there are means, by the
 * columns'. `scaled`: weight · X + bias. */
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

/* Add wG and wG·X of `count` elements. The last elements, fewer than sixteen, go through arrays of
 * zeros. */
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

/* Find the sums of wG and of wG·X over `rows` rows from row r on, at most TOGETHER, whose other
 * moments are known. X: a buffer of a run. */
SL_INLINE void sum_products_of(const struct sl_norm *n, const struct sl_rows *g, int64_t r,
                               int rows, float *x, struct moments *of)
{
    float firsts[TOGETHER][SL_SIXTEEN], seconds[TOGETHER][SL_SIXTEEN];
    float first[TOGETHER] = {0}, second[TOGETHER] = {0};
    for (int q = 0; q < rows; q++) {
        sl_floats sums[SL_SIXTEEN_VECTORS] = {{0}}, products[SL_SIXTEEN_VECTORS] = {{0}};
        for (int64_t j = 0; j < n->cols; j += RUN) {
            const int64_t count = least(RUN, n->cols - j);
            const void *row = sl_rows_at(g, r + q, j).data;
            normalise(n, false, of + q, r + q, j, count, NULL, x);
            if (g->type == SL_BFLOAT16)
                add_products(count, n->weight + j, row, true, x, sums, products);
            else
                add_products(count, n->weight + j, row, false, x, sums, products);
        }
        memcpy(firsts[q], sums, sizeof sums);
        memcpy(seconds[q], products, sizeof products);
    }
    add_lanes(rows, firsts, first);
    add_lanes(rows, seconds, second);
    for (int q = 0; q < rows; q++) {
        of[q].first = first[q];
        of[q].second = second[q];
    }
}

SL_INLINE void sum_products(const struct sl_norm *n, const struct sl_rows *g, int64_t r,
                            int64_t rows, float *x, struct moments *of)
{
    int64_t q = 0;
    for (; q + TOGETHER <= rows; q += TOGETHER)
        sum_products_of(n, g, r + q, TOGETHER, x, of + q);
    for (; q < rows; q++)
        sum_products_of(n, g, r + q, 1, x, of + q);
}

#endif
