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
    float mean, rest, inverse; /* inverse: the variance, until find_moments ends */
    float first, second;       /* for norm_back: sums of wG and of wG·X */
};

enum { TOGETHER = 4 }; /* rows whose sums are found together */

/* Return how many of `rows` rows an element-wise loop over `count` columns takes together in whole
 * fours. Long rows go one by one, as the processor fetches ahead in few rows at a time. So do all
 * rows where registers of 16 bytes are too few. */
SL_INLINE int64_t fours_of(int64_t rows, int64_t count)
{
    enum { SHORT = 64 };
    return SL_VECTOR_BYTES > 16 && count <= SHORT ? rows / TOGETHER * TOGETHER : 0;
}

typedef float four_floats __attribute__((vector_size(16), aligned(4), may_alias));

/* Add the lanes of `rows` rows to their sums, lane after lane. Four rows are lanes of a vector,
 * whose steps are sixteen instead of 64. */
SL_INLINE void add_lanes(int rows, float lanes[TOGETHER][SL_SIXTEEN], float *sum)
{
    if (rows < TOGETHER) {
        for (int q = 0; q < rows; q++) {
            float of = lanes[q][0];
            SL_UNROLL for (int i = 1; i < SL_SIXTEEN; i++) of += lanes[q][i];
            sum[q] += of;
        }
        return;
    }
    four_floats of = {-0.0f, -0.0f, -0.0f, -0.0f}; /* -0 + x is x */
    SL_UNROLL for (int i = 0; i < SL_SIXTEEN; i += TOGETHER)
    {
        const four_floats a = *(const four_floats *)(lanes[0] + i),
                          b = *(const four_floats *)(lanes[1] + i),
                          c = *(const four_floats *)(lanes[2] + i),
                          d = *(const four_floats *)(lanes[3] + i);
        const four_floats ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                          cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
                          ab_last = __builtin_shufflevector(a, b, 2, 6, 3, 7),
                          cd_last = __builtin_shufflevector(c, d, 2, 6, 3, 7);
        of += __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
        of += __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
        of += __builtin_shufflevector(ab_last, cd_last, 0, 1, 4, 5);
        of += __builtin_shufflevector(ab_last, cd_last, 2, 3, 6, 7);
    }
    *(four_floats *)sum += of;
}

/* Find the means of `rows` rows from row r on, at most TOGETHER. */
SL_INLINE void find_means(const struct sl_rows *h, bool half, int64_t r, int rows, int64_t cols,
                          struct moments *to)
{
    const int64_t whole = cols / SL_SIXTEEN * SL_SIXTEEN;
    const float share = 1.0f / (float)cols;
    float lanes[TOGETHER][SL_SIXTEEN], sum[TOGETHER] = {0};
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
    if (whole > 0)
        add_lanes(rows, lanes, sum);
    for (int q = 0; q < rows; q++)
        to[q].mean = sum[q] * share;
}

/* Find the rests of `rows` rows from row r on, at most TOGETHER, whose means are known, and their
 * variances, which rounding may make negative: to[q].inverse. */
SL_INLINE void find_variances(const struct sl_rows *h, bool half, int64_t r, int rows, int64_t cols,
                              struct moments *to)
{
    const int64_t whole = cols / SL_SIXTEEN * SL_SIXTEEN;
    const float share = 1.0f / (float)cols;
    float lanes[TOGETHER][SL_SIXTEEN], squares[TOGETHER][SL_SIXTEEN];
    float sum[TOGETHER] = {0}, square[TOGETHER] = {0};
    for (int q = 0; q < rows; q++) {
        const void *row = sl_rows_at(h, r + q, 0).data;
        const float mean = to[q].mean;
        sl_floats offs[SL_SIXTEEN_VECTORS] = {{0}}, powers[SL_SIXTEEN_VECTORS] = {{0}};
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
    if (whole > 0) {
        add_lanes(rows, lanes, sum);
        add_lanes(rows, squares, square);
    }
    for (int q = 0; q < rows; q++) {
        to[q].rest = sum[q] * share;
        to[q].inverse = square[q] * share - to[q].rest * to[q].rest;
    }
}

/* Find mean, rest and variance (to[q].inverse) of `rows` rows from row r on. All means come first:
 * sums of rows overlap, where one row's steps wait for each other. */
SL_INLINE void find_spreads_of(const struct sl_rows *h, bool half, int64_t r, int64_t rows,
                               int64_t cols, struct moments *to)
{
    const int64_t fours = rows / TOGETHER * TOGETHER;
    for (int64_t q = 0; q < fours; q += TOGETHER)
        find_means(h, half, r + q, TOGETHER, cols, to + q);
    for (int64_t q = fours; q < rows; q++)
        find_means(h, half, r + q, 1, cols, to + q);
    for (int64_t q = 0; q < fours; q += TOGETHER)
        find_variances(h, half, r + q, TOGETHER, cols, to + q);
    for (int64_t q = fours; q < rows; q++)
        find_variances(h, half, r + q, 1, cols, to + q);
}

/* A function of its own: inlined into each kernel, it would take half of the time to compile
 * them. */
__attribute__((noinline, unused)) static void
find_spreads(const struct sl_rows *h, int64_t r, int64_t rows, int64_t cols, struct moments *to)
{
    if (h->type == SL_BFLOAT16)
        find_spreads_of(h, true, r, rows, cols, to);
    else
        find_spreads_of(h, false, r, rows, cols, to);
}

/* Find the moments of `rows` rows from row r on. Cut rows have theirs in n->moments. */
SL_INLINE void find_moments(const struct sl_norm *n, int64_t r, int64_t rows, struct moments *to)
{
    for (int64_t q = 0; n->moments && q < rows; q++) {
        to[q].mean = n->moments[r + q];
        to[q].rest = n->moments[n->ldm + r + q];
        to[q].inverse = n->moments[2 * n->ldm + r + q];
    }
    if (!n->moments)
        find_spreads(&n->h, r, rows, n->cols, to);
    for (int64_t q = 0; q < rows; q++)
        to[q].inverse = 1.0f / sqrtf((to[q].inverse < 0.0f ? 0.0f : to[q].inverse) + n->epsilon);
}

/* Set inverse = 1 / sqrt(variance + epsilon) of `count` columns; do nothing in a norm of rows. */
SL_INLINE void invert(const struct sl_norm *n, int64_t j, int64_t count, float *restrict inverse)
{
    for (int64_t i = 0; n->mean && i < count; i++)
        inverse[i] = 1.0f / sqrtf(n->variance[j + i] + n->epsilon);
}

/* The values that X of a run of columns follows from. `columns`: a norm of columns, by their means
 * and factors; else by the moments of the row. */
struct run_of_norm {
    bool half, columns;
    const float *mean, *inverse; // (count)
    const float *weight, *bias;  // (count)
};

SL_INLINE struct run_of_norm run_of(const struct sl_norm *n, bool half, bool columns, int64_t j,
                                    const float *inverse)
{
    return (struct run_of_norm){half,    columns,       columns ? n->mean + j : NULL,
                                inverse, n->weight + j, n->bias + j};
}

/* Return X of a vector of elements, and of one element. */
SL_INLINE sl_floats normal_vector(const struct run_of_norm *run, const struct moments *of,
                                  const void *row, int64_t i)
{
    const sl_floats h = sl_load(row, i, run->half);
    if (run->columns)
        return (h - *(const sl_floats *)(run->mean + i)) * *(const sl_floats *)(run->inverse + i);
    return ((h - of->mean) - of->rest) * of->inverse;
}

SL_INLINE float normal(const struct run_of_norm *run, const struct moments *of, const void *row,
                       int64_t i)
{
    const float h = element(row, run->half, i);
    return run->columns ? (h - run->mean[i]) * run->inverse[i]
                        : ((h - of->mean) - of->rest) * of->inverse;
}

/* Make weight · X + bias of `rows` rows from row r and column j on. Rows share the loads of means,
 * factors, weights and biases of columns. x: rows with a distance of ldx. */
SL_INLINE void normalise_by(const struct run_of_norm *run, const struct sl_norm *n,
                            const struct moments *of, int64_t r, int rows, int64_t j, int64_t count,
                            float *x, int64_t ldx)
{
    const int64_t whole = count / SL_LANES * SL_LANES;
    const void *row[TOGETHER];
    SL_UNROLL for (int q = 0; q < rows; q++) row[q] = sl_rows_at(&n->h, r + q, j).data;
    for (int64_t i = 0; i < whole; i += SL_LANES)
        SL_UNROLL for (int q = 0; q < rows; q++)
        {
            *(sl_floats *)(x + q * ldx + i) =
                normal_vector(run, of + q, row[q], i) * *(const sl_floats *)(run->weight + i) +
                *(const sl_floats *)(run->bias + i);
        }
    for (int q = 0; q < rows; q++)
        for (int64_t i = whole; i < count; i++) {
            const float to = normal(run, of + q, sl_rows_at(&n->h, r + q, j).data, i);
            x[q * ldx + i] = to * run->weight[i] + run->bias[i];
        }
}

SL_INLINE void normalise_of(const struct sl_norm *n, bool half, bool columns,
                            const struct moments *of, int64_t r, int64_t rows, int64_t j,
                            int64_t count, const float *inverse, float *x, int64_t ldx)
{
    const struct run_of_norm run = run_of(n, half, columns, j, inverse);
    int64_t q = 0;
    for (; q < fours_of(rows, count); q += TOGETHER)
        normalise_by(&run, n, of + q, r + q, TOGETHER, j, count, x + q * ldx, ldx);
    for (; q < rows; q++)
        normalise_by(&run, n, of + q, r + q, 1, j, count, x + q * ldx, ldx);
}

SL_INLINE void normalise(const struct sl_norm *n, const struct moments *of, int64_t r, int64_t rows,
                         int64_t j, int64_t count, const float *inverse, float *x, int64_t ldx)
{
    const bool half = n->h.type == SL_BFLOAT16;
    if (n->mean && half)
        normalise_of(n, true, true, of, r, rows, j, count, inverse, x, ldx);
    else if (n->mean)
        normalise_of(n, false, true, of, r, rows, j, count, inverse, x, ldx);
    else if (half)
        normalise_of(n, true, false, of, r, rows, j, count, inverse, x, ldx);
    else
        normalise_of(n, false, false, of, r, rows, j, count, inverse, x, ldx);
}

/* ---- Gradients ---- */

/* Add wG and wG·X of the last elements of a run, fewer than sixteen, lane by lane. */
SL_INLINE void add_last(const struct run_of_norm *run, const struct moments *of, const void *row,
                        const void *g, bool half, int64_t from, int64_t to, float *first,
                        float *second)
{
    for (int64_t i = from; i < to; i++) {
        const float own = element(g, half, i) * run->weight[i];
        first[i - from] += own;
        second[i - from] = sl_add_product(second[i - from], own, normal(run, of, row, i));
    }
}

/* Find the sums of wG and of wG·X over `rows` rows from row r on, at most TOGETHER, whose other
 * moments are known. */
SL_INLINE void sum_products_by(const struct sl_norm *n, bool half_h, bool half,
                               const struct sl_rows *g, int64_t r, int rows, struct moments *of)
{
    float firsts[TOGETHER][SL_SIXTEEN], seconds[TOGETHER][SL_SIXTEEN];
    float first[TOGETHER] = {0}, second[TOGETHER] = {0};
    const int64_t whole = n->cols / SL_SIXTEEN * SL_SIXTEEN;
    const struct run_of_norm run = run_of(n, half_h, false, 0, NULL);
    for (int q = 0; q < rows; q++) {
        const void *row = sl_rows_at(&n->h, r + q, 0).data, *own = sl_rows_at(g, r + q, 0).data;
        sl_floats sums[SL_SIXTEEN_VECTORS] = {{0}}, products[SL_SIXTEEN_VECTORS] = {{0}};
        for (int64_t j = 0; j < whole; j += SL_SIXTEEN)
            SL_UNROLL for (int v = 0; v < SL_SIXTEEN_VECTORS; v++)
            {
                const int64_t i = j + v * SL_LANES;
                const sl_floats product =
                    sl_load(own, i, half) * *(const sl_floats *)(run.weight + i);
                sums[v] += product;
                products[v] += product * normal_vector(&run, of + q, row, i);
            }
        memcpy(firsts[q], sums, sizeof sums);
        memcpy(seconds[q], products, sizeof products);
        add_last(&run, of + q, row, own, half, whole, n->cols, firsts[q], seconds[q]);
    }
    add_lanes(rows, firsts, first);
    add_lanes(rows, seconds, second);
    for (int q = 0; q < rows; q++) {
        of[q].first = first[q];
        of[q].second = second[q];
    }
}

SL_INLINE void sum_products_of(const struct sl_norm *n, const struct sl_rows *g, int64_t r,
                               int rows, struct moments *of)
{
    const bool half_h = n->h.type == SL_BFLOAT16, half = g->type == SL_BFLOAT16;
    if (half_h && half)
        sum_products_by(n, true, true, g, r, rows, of);
    else if (half_h)
        sum_products_by(n, true, false, g, r, rows, of);
    else if (half)
        sum_products_by(n, false, true, g, r, rows, of);
    else
        sum_products_by(n, false, false, g, r, rows, of);
}

SL_INLINE void sum_products(const struct sl_norm *n, const struct sl_rows *g, int64_t r,
                            int64_t rows, struct moments *of)
{
    int64_t q = 0;
    for (; q + TOGETHER <= rows; q += TOGETHER)
        sum_products_of(n, g, r + q, TOGETHER, of + q);
    for (; q < rows; q++)
        sum_products_of(n, g, r + q, 1, of + q);
}

#endif
