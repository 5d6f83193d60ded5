/* Sigmoid cross-entropy and squares: the logits of a row are read once, eight at a time. */
#include "codelets/value_loss.h"

#include <math.h>

#include "codelets/exponential.h"
#include "core/split.h"

/* Up to eight columns of a row. Where a value is unknown, or behind the columns, z, y and e are 0.
 * This adds 0 to a loss, and multiplies a product by 1. */
struct piece {
    int64_t first, count;
    sl_short z[SL_EIGHT_VECTORS], y[SL_EIGHT_VECTORS];
    sl_short e[SL_EIGHT_VECTORS];          /* e = exp(-|z|), for the sigmoid */
    sl_short_ints known[SL_EIGHT_VECTORS]; /* -1 where the value is known, else 0 */
};

#define LANE(x, l) (x)[(l) / SL_SHORT_LANES][(l) % SL_SHORT_LANES]

SL_INLINE void load_eight(int64_t count, const float *x, float behind, sl_short *to)
{
    if (count == SL_EIGHT) {
        SL_UNROLL for (int v = 0; v < SL_EIGHT_VECTORS; v++) to[v] = ((const sl_short *)x)[v];
        return;
    }
    SL_UNROLL for (int v = 0; v < SL_EIGHT_VECTORS; v++) to[v] = (sl_short){0} + behind;
    SL_UNROLL for (int l = 0; l < SL_EIGHT; l++) if (l < count) LANE(to, l) = x[l];
}

SL_INLINE void store_eight(int64_t count, const sl_short *from, float *x)
{
    if (count == SL_EIGHT)
        SL_UNROLL for (int v = 0; v < SL_EIGHT_VECTORS; v++)((sl_short *)x)[v] = from[v];
    else
        SL_UNROLL for (int l = 0; l < SL_EIGHT; l++) if (l < count) x[l] = LANE(from, l);
}

/* Return vector i of eight floats, as doubles. */
SL_INLINE sl_reals reals_of(const sl_short *x, int i)
{
#ifdef __AVX2__
    return (sl_reals)_mm256_cvtps_pd(i ? _mm256_extractf128_ps((__m256)x[0], 1)
                                       : _mm256_castps256_ps128((__m256)x[0]));
#else
    sl_reals to;
    SL_UNROLL for (int d = 0; d < SL_DOUBLES; d++) to[d] = (double)LANE(x, i * SL_DOUBLES + d);
    return to;
#endif
}

SL_INLINE void load_piece(const struct sl_value_loss *v, enum sl_value_loss_kind kind, int64_t r,
                          struct piece *p)
{
    const float *values =
        (const float *)(v->target + r * (SL_TARGET_FIRST + v->cols) + SL_TARGET_FIRST);
    p->count = v->cols - p->first < SL_EIGHT ? v->cols - p->first : SL_EIGHT;
    load_eight(p->count, v->z + r * v->ldz + p->first, 0.0f, p->z);
    load_eight(p->count, values + p->first, NAN, p->y);
    SL_UNROLL for (int i = 0; i < SL_EIGHT_VECTORS; i++)
    {
        const sl_short_ints known = (sl_short_ints)(p->y[i] == p->y[i]);
        p->known[i] = known;
        p->y[i] = (sl_short)((sl_short_ints)p->y[i] & known);
        p->z[i] = (sl_short)((sl_short_ints)p->z[i] & known);
        if (kind == SL_VALUE_SIGMOID) {
            const sl_short size = (sl_short)((sl_short_ints)p->z[i] | INT32_MIN); /* -|z| */
            p->e[i] = (sl_short)((sl_short_ints)sl_exponential_short(size) & known);
        }
    }
}

/* Loss of a row, and its wrongly predicted known values. A lane has some columns. Logarithms are
 * taken of products of 1 + e: the product of MOST_FACTORS factors in a lane is 1 … 2^960. */
struct tally {
    sl_reals loss, product;
    sl_short_ints wrong;
};

enum { MOST_FACTORS = 120 };

SL_INLINE void add_piece(const struct sl_value_loss *v, const struct piece *p,
                         enum sl_value_loss_kind kind, bool plain, struct tally *tally)
{
    const bool weighted = !plain && v->weights; /* add_weighted adds a weighted loss */
    const double smoothing = plain ? 0.0 : (double)v->smoothing;
    SL_UNROLL for (int i = 0; i < SL_DOUBLE_VECTORS; i++)
    {
        const sl_reals z = reals_of(p->z, i), y = reals_of(p->y, i);
        if (kind == SL_VALUE_SQUARE) {
            tally->loss += (z - y) * (z - y);
            continue;
        }
        if (weighted)
            continue;
        const sl_reals wanted = y * (1.0 - smoothing) + 0.5 * smoothing,
                       positive = (sl_reals)((sl_longs)(z > 0.0) & (sl_longs)z);
        const sl_reals term = positive - z * wanted; /* finite if and only if z is */
        tally->product *= 1.0 + reals_of(p->e, i);
        tally->loss += term;
    }
    SL_UNROLL for (int i = 0; i < SL_EIGHT_VECTORS; i++)
    {
        tally->wrong |= (sl_short_ints)(p->z[i] > 0.0f) ^ (sl_short_ints)(p->y[i] > 0.5f);
    }
}

/* Return the loss of a row whose values have weights. Its logarithms are calls, so it walks the row
 * separately. */
static double add_weighted(const struct sl_value_loss *v, int64_t r)
{
    const float *const values =
        (const float *)(v->target + r * (SL_TARGET_FIRST + v->cols) + SL_TARGET_FIRST);
    const double smoothing = (double)v->smoothing;
    double loss = 0.0;
    for (int64_t j = 0; j < v->cols; j++) {
        const double z = (double)v->z[r * v->ldz + j], y = (double)values[j];
        const double term = (z > 0.0 ? z : 0.0) - z * (y * (1.0 - smoothing) + 0.5 * smoothing);
        if (!isnan(y))
            loss += (double)v->weights[(y > 0.5 ? v->cols : 0) + j] * (term + log1p(exp(-fabs(z))));
    }
    return loss;
}

SL_INLINE void set_gradient(const struct sl_value_loss *v, const struct piece *p,
                            enum sl_value_loss_kind kind, float times, float *out)
{
    sl_short w[SL_EIGHT_VECTORS] = {{0}}, to[SL_EIGHT_VECTORS];
    const float keep = 1.0f - v->smoothing, plus = 0.5f * v->smoothing;
    if (v->weights)
        SL_UNROLL for (int l = 0; l < SL_EIGHT; l++) if (l < p->count) LANE(w, l) =
            v->weights[(LANE(p->y, l) > 0.5f ? v->cols : 0) + p->first + l];
    SL_UNROLL for (int i = 0; i < SL_EIGHT_VECTORS; i++)
    {
        const sl_short z = p->z[i], y = p->y[i], e = p->e[i];
        sl_short gradient = 2.0f * (z - y);
        if (kind == SL_VALUE_SIGMOID) {
            const sl_short share = 1.0f / (1.0f + e);
            gradient =
                (sl_short)SL_SELECT(sl_short_ints, (sl_short_ints)(z < 0.0f), e * share, share) -
                (y * keep + plus);
            if (v->weights)
                gradient *= w[i];
        }
        to[i] = (sl_short)((sl_short_ints)(gradient * times) & p->known[i]);
    }
    store_eight(p->count, to, out + p->first);
}

/* The contribution of some columns to a row's loss: a sum, and the logarithm of a product. `wrong`
 * is not 0 if the prediction of some known value is wrong. */
struct sums {
    double loss, product;
    int32_t wrong;
};

/* Walk columns first … end - 1 of a row, and write their gradient to `out`, if not NULL. */
SL_INLINE struct sums walk_columns_of(const struct sl_value_loss *v, enum sl_value_loss_kind kind,
                                      int64_t r, int64_t first, int64_t end, bool plain,
                                      float times, float *out)
{
    struct tally tally = {.product = (sl_reals){0} + 1.0};
    struct sums sums = {.product = 1.0};
    struct piece p;
    for (p.first = first; p.first < end; p.first += SL_EIGHT) {
        load_piece(v, kind, r, &p);
        add_piece(v, &p, kind, plain, &tally);
        if (out)
            set_gradient(v, &p, kind, times, out);
    }
    for (int d = 0; d < SL_DOUBLES; d++) {
        sums.loss += tally.loss[d];
        sums.product *= tally.product[d];
    }
    for (int l = 0; l < SL_SHORT_LANES; l++)
        sums.wrong |= tally.wrong[l];
    return sums;
}

/* Not inlined: its callers call functions, and keep no vectors meanwhile. */
__attribute__((noinline)) static struct sums walk_columns(const struct sl_value_loss *v, int64_t r,
                                                          int64_t first, int64_t end, bool plain,
                                                          float times, float *out)
{
    if (v->kind == SL_VALUE_SQUARE)
        return plain ? walk_columns_of(v, SL_VALUE_SQUARE, r, first, end, true, times, NULL)
                     : walk_columns_of(v, SL_VALUE_SQUARE, r, first, end, false, times, out);
    return plain ? walk_columns_of(v, SL_VALUE_SIGMOID, r, first, end, true, times, NULL)
                 : walk_columns_of(v, SL_VALUE_SIGMOID, r, first, end, false, times, out);
}

/* Loss of a row, and whether all its known values are predicted right. */
struct result {
    double loss;
    bool right;
};

static struct result walk_row(const struct sl_value_loss *v, int64_t r, bool plain, float times,
                              float *out)
{
    const int64_t most = MOST_FACTORS * SL_EIGHT; /* most columns of a walk */
    const bool sigmoid = v->kind == SL_VALUE_SIGMOID;
    struct result row = {sigmoid && !plain && v->weights ? add_weighted(v, r) : 0.0, true};
    for (int64_t j = 0; j < v->cols; j += most) {
        const int64_t end = j + most < v->cols ? j + most : v->cols;
        const struct sums sums = walk_columns(v, r, j, end, plain, times, out);
        row.loss += sums.loss + (sigmoid ? log(sums.product) : 0.0);
        row.right &= !sums.wrong;
    }
    return row;
}

SL_KERNEL(sl_kernel_value_loss, (const struct sl_value_loss *v, double *loss, double *correct),
          (v, loss, correct))
{
    const float per_column = v->scale / (float)v->cols;
    *loss = *correct = 0.0;
    for (int64_t r = 0; r < v->rows; r++) {
        const int32_t *target = v->target + r * (SL_TARGET_FIRST + v->cols);
        float *out = v->g + r * v->ldg;
        if (target[SL_TARGET_LABEL] < 0 || target[SL_TARGET_SPLIT] != SL_SPLIT_TRAIN) {
            for (int64_t j = 0; j < v->cols; j++)
                out[j] = 0.0f;
            continue;
        }
        const float times = v->factor ? per_column * v->factor[r] : per_column;
        const struct result row = walk_row(v, r, false, times, out);
        *loss += row.loss / (double)v->cols;
        *correct += v->kind == SL_VALUE_SIGMOID && row.right;
    }
}

SL_KERNEL(sl_kernel_value_count, (const struct sl_value_loss *v, double correct[4], double loss[4]),
          (v, correct, loss))
{
    for (int s = 0; s < SL_SPLITS; s++)
        loss[s] = correct[s] = 0.0;
    for (int64_t r = 0; r < v->rows; r++) {
        const int32_t *target = v->target + r * (SL_TARGET_FIRST + v->cols);
        if (target[SL_TARGET_LABEL] < 0)
            continue;
        const struct result row = walk_row(v, r, true, 0.0f, NULL);
        loss[target[SL_TARGET_SPLIT]] += row.loss / (double)v->cols;
        correct[target[SL_TARGET_SPLIT]] += v->kind == SL_VALUE_SIGMOID && row.right;
    }
}
