/* Sigmoid cross-entropy and squares: the logits of a row are read once, eight at a time. */
#include "codelets/value_loss.h"

#include <math.h>
#include <string.h>

#include "codelets/exponential.h"
#include "core/split.h"

/* Up to eight columns of a row; values behind them are not known. */
struct piece {
    int64_t first, count;
    float z[SL_EIGHT], y[SL_EIGHT], e[SL_EIGHT]; /* e = exp(-|z|), of the sigmoid */
};

/* A whole piece goes as vectors, without a call. */
SL_INLINE void copy_piece(int64_t count, const void *from, float *to)
{
    if (count == SL_EIGHT)
        memcpy(to, from, SL_EIGHT * sizeof *to);
    else
        memcpy(to, from, (size_t)count * sizeof *to);
}

SL_INLINE void load_piece(const struct sl_value_loss *v, enum sl_value_loss_kind kind, int64_t r,
                          struct piece *p)
{
    const int32_t *values = v->target + r * (SL_TARGET_FIRST + v->cols) + SL_TARGET_FIRST;
    p->count = v->cols - p->first < SL_EIGHT ? v->cols - p->first : SL_EIGHT;
    copy_piece(p->count, v->z + r * v->ldz + p->first, p->z);
    copy_piece(p->count, values + p->first, p->y);
    for (int64_t l = p->count; l < SL_EIGHT; l++) {
        p->z[l] = 0.0f;
        p->y[l] = NAN;
    }
    if (kind == SL_VALUE_SIGMOID) {
        SL_UNROLL for (int i = 0; i < SL_EIGHT_VECTORS; i++)
        {
            const sl_short z = ((const sl_short *)p->z)[i];
            /* e^-|z| */
            ((sl_short *)p->e)[i] = sl_exponential_short((sl_short)((sl_short_ints)z | INT32_MIN));
        }
    }
}

/* Loss of a row, and whether all its known values are met. Logarithms are taken of products of
 * 1 + e: such a product of 1 … 2^960 is finite. */
struct tally {
    double loss, product;
    bool right;
};

static const double LARGE_PRODUCT = 0x1p900;

/* A value that is not known adds 0 to a sum and nothing to a product: no branches, but vectors. */
SL_INLINE void add_piece(const struct sl_value_loss *v, const struct piece *p,
                         enum sl_value_loss_kind kind, bool plain, struct tally *tally)
{
    const double smoothing = plain ? 0.0 : (double)v->smoothing;
    double term[SL_EIGHT], factor[SL_EIGHT];
    int wrong = 0;
    for (int64_t l = 0; l < SL_EIGHT; l++) {
        const double z = (double)p->z[l], y = (double)p->y[l];
        const double wanted = y * (1.0 - smoothing) + 0.5 * smoothing;
        const double linear = (z > 0.0 ? z : 0.0) - z * wanted; /* not finite, unless z is */
        const double value = kind == SL_VALUE_SQUARE ? z - y : linear,
                     power = kind == SL_VALUE_SQUARE ? 0.0 : 1.0 + (double)p->e[l];
        term[l] = isnan(y) ? 0.0 : value;
        factor[l] = isnan(y) ? 1.0 : power;
        wrong |= !isnan(y) & ((z > 0.0) != (y > 0.5));
    }
    tally->right &= !wrong;
    if (kind == SL_VALUE_SQUARE) {
        for (int64_t l = 0; l < SL_EIGHT; l++)
            tally->loss += term[l] * term[l];
    } else if (!plain && v->weights) {
        for (int64_t l = 0; l < p->count; l++)
            if (!isnan(p->y[l]))
                tally->loss += (double)v->weights[(p->y[l] > 0.5f ? v->cols : 0) + p->first + l] *
                               (term[l] + log1p((double)p->e[l]));
    } else {
        for (int64_t l = 0; l < SL_EIGHT; l++) {
            tally->loss += term[l];
            tally->product *= factor[l];
        }
    }
}

SL_INLINE void set_gradient(const struct sl_value_loss *v, const struct piece *p,
                            enum sl_value_loss_kind kind, float times, float *out)
{
    float w[SL_EIGHT], to[SL_EIGHT];
    const float keep = 1.0f - v->smoothing, plus = 0.5f * v->smoothing;
    for (int64_t l = 0; v->weights && l < p->count; l++)
        w[l] = v->weights[(p->y[l] > 0.5f ? v->cols : 0) + p->first + l];
    SL_UNROLL for (int i = 0; i < SL_EIGHT_VECTORS; i++)
    {
        const sl_short z = ((const sl_short *)p->z)[i], y = ((const sl_short *)p->y)[i],
                       e = ((const sl_short *)p->e)[i];
        sl_short gradient = 2.0f * (z - y);
        if (kind == SL_VALUE_SIGMOID) {
            const sl_short share = 1.0f / (1.0f + e);
            gradient =
                (sl_short)SL_SELECT(sl_short_ints, (sl_short_ints)(z < 0.0f), e * share, share) -
                (y * keep + plus);
            if (v->weights)
                gradient *= ((const sl_short *)w)[i];
        }
        ((sl_short *)to)[i] =
            (sl_short)((sl_short_ints)(gradient * times) & (sl_short_ints)(y == y));
    }
    copy_piece(p->count, to, out + p->first);
}

/* `out` NULL: without gradient. */
SL_INLINE struct tally walk_row_of(const struct sl_value_loss *v, enum sl_value_loss_kind kind,
                                   int64_t r, bool plain, float times, float *out)
{
    struct tally tally = {.product = 1.0, .right = true};
    struct piece p;
    for (p.first = 0; p.first < v->cols; p.first += SL_EIGHT) {
        load_piece(v, kind, r, &p);
        add_piece(v, &p, kind, plain, &tally);
        if (tally.product > LARGE_PRODUCT) {
            tally.loss += log(tally.product);
            tally.product = 1.0;
        }
        if (out)
            set_gradient(v, &p, kind, times, out);
    }
    if (kind == SL_VALUE_SIGMOID)
        tally.loss += log(tally.product);
    return tally;
}

SL_INLINE struct tally walk_row(const struct sl_value_loss *v, int64_t r, bool plain, float times,
                                float *out)
{
    return v->kind == SL_VALUE_SQUARE ? walk_row_of(v, SL_VALUE_SQUARE, r, plain, times, out)
                                      : walk_row_of(v, SL_VALUE_SIGMOID, r, plain, times, out);
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
        const struct tally tally = walk_row(v, r, false, times, out);
        *loss += tally.loss / (double)v->cols;
        *correct += v->kind == SL_VALUE_SIGMOID && tally.right;
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
        const struct tally tally = walk_row(v, r, true, 0.0f, NULL);
        loss[target[SL_TARGET_SPLIT]] += tally.loss / (double)v->cols;
        correct[target[SL_TARGET_SPLIT]] += v->kind == SL_VALUE_SIGMOID && tally.right;
    }
}
