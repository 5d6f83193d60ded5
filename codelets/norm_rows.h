/* What CPU kernels of normalisation share: X of a row, and the sums that its gradient needs. */
#ifndef SL_CODELETS_NORM_ROWS_H
#define SL_CODELETS_NORM_ROWS_H

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

SL_INLINE float add_lanes(const sl_floats *x)
{
    float sum = 0.0f;
    for (int i = 0; i < SL_LANES; i++)
        sum += (*x)[i];
    return sum;
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
    const int64_t whole = cols / SL_LANES * SL_LANES;
    const float share = 1.0f / (float)cols;
    const sl_floats zero = {0};
    sl_floats x, sums = zero, squares = zero;
    float sum = 0.0f, square = 0.0f;
    for (int64_t j = 0; j < whole; j += SL_LANES) {
        sl_load(row, j, half, &x);
        sums += x;
    }
    for (int64_t j = whole; j < cols; j++)
        sum += element(row, half, j);
    to->mean = (sum + add_lanes(&sums)) * share;
    sums = zero;
    sum = 0.0f;
    for (int64_t j = 0; j < whole; j += SL_LANES) {
        sl_load(row, j, half, &x);
        x -= to->mean;
        sums += x;
        squares += x * x;
    }
    for (int64_t j = whole; j < cols; j++) {
        const float off = element(row, half, j) - to->mean;
        sum += off;
        square += off * off;
    }
    to->rest = (sum + add_lanes(&sums)) * share;
    return (square + add_lanes(&squares)) * share - to->rest * to->rest;
}

SL_INLINE float find_spread(const struct sl_rows *h, int64_t r, int64_t cols, struct moments *to)
{
    const void *row = sl_rows_at(h, r, 0).data;
    return h->type == SL_BFLOAT16 ? find_spread_of(row, true, cols, to)
                                  : find_spread_of(row, false, cols, to);
}

/* Those of a cut row are there. */
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

/* X of row r from column j on: with the row's moments, or, where there are means, the columns'. */
SL_INLINE void normalise_of(const struct sl_norm *n, bool half, const struct moments *of, int64_t r,
                            int64_t j, int64_t count, const float *restrict inverse,
                            float *restrict x)
{
    const void *row = sl_rows_at(&n->h, r, j).data;
    const float own = of->mean, rest = of->rest, by = of->inverse;
    if (n->mean) {
        const float *restrict mean = n->mean + j;
        for (int64_t i = 0; i < count; i++)
            x[i] = (element(row, half, i) - mean[i]) * inverse[i];
    } else {
        for (int64_t i = 0; i < count; i++)
            x[i] = ((element(row, half, i) - own) - rest) * by;
    }
}

SL_INLINE void normalise(const struct sl_norm *n, const struct moments *of, int64_t r, int64_t j,
                         int64_t count, const float *restrict inverse, float *restrict x)
{
    if (n->h.type == SL_BFLOAT16)
        normalise_of(n, true, of, r, j, count, inverse, x);
    else
        normalise_of(n, false, of, r, j, count, inverse, x);
}

/* ---- Gradients ---- */

/* first += wG, second += wG·X, lane by lane. */
SL_INLINE void add_products(int64_t count, const float *w, const void *g, bool half, const float *x,
                            sl_floats *first, sl_floats *second)
{
    const int64_t whole = count / SL_LANES * SL_LANES;
    sl_floats own, sum = *first, product = *second;
    for (int64_t i = 0; i < whole; i += SL_LANES) {
        sl_load(g, i, half, &own);
        own *= *(const sl_floats *)(w + i);
        sum += own;
        product += own * *(const sl_floats *)(x + i);
    }
    for (int64_t i = whole; i < count; i++) {
        const float last = w[i] * element(g, half, i);
        sum[i - whole] += last;
        product[i - whole] += last * x[i];
    }
    *first = sum;
    *second = product;
}

/* The sums of wG and of wG·X over row r, whose other moments are there. X: a buffer of a run. */
SL_INLINE void sum_products(const struct sl_norm *n, const struct sl_rows *g, int64_t r, float *x,
                            struct moments *of)
{
    sl_floats first = {0}, second = {0};
    for (int64_t j = 0; j < n->cols; j += RUN) {
        const int64_t count = least(RUN, n->cols - j);
        const void *row = sl_rows_at(g, r, j).data;
        normalise(n, of, r, j, count, NULL, x);
        if (g->type == SL_BFLOAT16)
            add_products(count, n->weight + j, row, true, x, &first, &second);
        else
            add_products(count, n->weight + j, row, false, x, &first, &second);
    }
    of->first = add_lanes(&first);
    of->second = add_lanes(&second);
}

#endif
