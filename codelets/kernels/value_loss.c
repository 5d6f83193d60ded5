/* Sigmoid cross-entropy and squares: the logits of a row are read once, eight at a time. */
#include "codelets/value_loss.h"

#include <math.h>
#include <string.h>

#include "codelets/exponential.h"
#include "core/split.h"

/* Up to eight columns of a row. */
struct piece {
    int64_t first, count;
    float z[SL_EIGHT], y[SL_EIGHT], e[SL_EIGHT]; /* e = exp(-|z|), of the sigmoid */
};

SL_INLINE void load_piece(const struct sl_value_loss *v, int64_t r, struct piece *p)
{
    const int32_t *values = v->target + r * (SL_TARGET_FIRST + v->cols) + SL_TARGET_FIRST;
    p->count = v->cols - p->first < SL_EIGHT ? v->cols - p->first : SL_EIGHT;
    for (int64_t l = 0; l < p->count; l++)
        p->z[l] = v->z[r * v->ldz + p->first + l];
    for (int64_t l = p->count; l < SL_EIGHT; l++)
        p->z[l] = 0.0f;
    memcpy(p->y, values + p->first, (size_t)p->count * sizeof *p->y);
    if (v->kind == SL_VALUE_SIGMOID) {
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

SL_INLINE void add_entry(const struct sl_value_loss *v, const struct piece *p, int64_t l,
                         bool plain, struct tally *tally)
{
    const double z = (double)p->z[l], y = (double)p->y[l];
    if (v->kind == SL_VALUE_SQUARE) {
        tally->loss += (z - y) * (z - y);
        return;
    }
    const double smoothing = plain ? 0.0 : (double)v->smoothing;
    const double wanted = y * (1.0 - smoothing) + 0.5 * smoothing;
    const double linear = fmax(z, 0.0) - z * wanted; /* not finite, unless z is */
    tally->right &= (z > 0.0) == (y > 0.5);
    if (!plain && v->weights) {
        const double w = (double)v->weights[(y > 0.5 ? v->cols : 0) + p->first + l];
        tally->loss += w * (linear + log1p((double)p->e[l]));
    } else {
        tally->loss += linear;
        tally->product *= 1.0 + (double)p->e[l];
    }
}

/* `out` NULL: without gradient. */
SL_INLINE void set_gradient(const struct sl_value_loss *v, const struct piece *p, int64_t l,
                            float times, float *out)
{
    const float z = p->z[l], y = p->y[l];
    if (isnan(y)) {
        out[p->first + l] = 0.0f;
        return;
    }
    if (v->kind == SL_VALUE_SQUARE) {
        out[p->first + l] = 2.0f * (z - y) * times;
        return;
    }
    const float wanted = y * (1.0f - v->smoothing) + 0.5f * v->smoothing;
    const float share = 1.0f / (1.0f + p->e[l]);
    const float w = v->weights ? v->weights[(y > 0.5f ? v->cols : 0) + p->first + l] : 1.0f;
    out[p->first + l] = ((z < 0.0f ? p->e[l] * share : share) - wanted) * w * times;
}

SL_INLINE struct tally walk_row(const struct sl_value_loss *v, int64_t r, bool plain, float times,
                                float *out)
{
    struct tally tally = {.product = 1.0, .right = true};
    for (struct piece p = {.first = 0}; p.first < v->cols; p.first += SL_EIGHT) {
        load_piece(v, r, &p);
        for (int64_t l = 0; l < p.count; l++)
            if (!isnan(p.y[l]))
                add_entry(v, &p, l, plain, &tally);
        if (tally.product > LARGE_PRODUCT) {
            tally.loss += log(tally.product);
            tally.product = 1.0;
        }
        for (int64_t l = 0; out && l < p.count; l++)
            set_gradient(v, &p, l, times, out);
    }
    tally.loss += log(tally.product);
    return tally;
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
