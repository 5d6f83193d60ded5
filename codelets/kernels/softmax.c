/* Softmax cross-entropy and accuracy counts: the logits of a row are read once, as vectors. */
#include "codelets/softmax.h"

#include <math.h>

#include "codelets/exponential.h"
#include "core/split.h"

/* Logits of one row. The last 1 … 8 classes are apart: lanes behind them are -infinity there, which
 * adds nothing to a sum of exponentials. */
struct row {
    const float *z;
    int64_t whole; /* classes before the last ones */
    int64_t rest;  /* the last ones */
    sl_short last[SL_EIGHT_VECTORS];
    float largest;
    float sum; /* of exp(z - largest) */
};

SL_INLINE struct row row_of(const float *z, int64_t classes, int64_t ldz)
{
    static const int32_t edge[2 * SL_EIGHT] = {-1, -1, -1, -1, -1, -1, -1, -1};
    struct row row = {.z = z, .whole = (classes - 1) / SL_EIGHT * SL_EIGHT};
    row.rest = classes - row.whole;
    float padded[SL_EIGHT];
    const float *last = z + row.whole;
    if (row.whole + SL_EIGHT > ldz) {
        for (int64_t l = 0; l < SL_EIGHT; l++)
            padded[l] = l < row.rest ? last[l] : -INFINITY;
        last = padded;
    }
    SL_UNROLL for (int v = 0; v < SL_EIGHT_VECTORS; v++)
    {
        const sl_short nothing = (sl_short){0} - INFINITY;
        const sl_short_ints inside = ((const sl_short_ints *)(edge + SL_EIGHT - row.rest))[v];
        row.last[v] =
            (sl_short)SL_SELECT(sl_short_ints, inside, ((const sl_short *)last)[v], nothing);
    }
    return row;
}

SL_INLINE void find_largest(struct row *row)
{
    sl_short most[SL_EIGHT_VECTORS];
    float lane[SL_EIGHT];
    SL_UNROLL for (int v = 0; v < SL_EIGHT_VECTORS; v++) most[v] = row->last[v];
    for (int64_t j = 0; j < row->whole; j += SL_EIGHT)
        SL_UNROLL for (int v = 0; v < SL_EIGHT_VECTORS; v++)
        {
            const sl_short z = ((const sl_short *)(row->z + j))[v];
            most[v] =
                (sl_short)SL_SELECT(sl_short_ints, SL_SIGN(sl_short_ints, z - most[v]), most[v], z);
        }
    SL_UNROLL for (int v = 0; v < SL_EIGHT_VECTORS; v++)((sl_short *)lane)[v] = most[v];
    for (int half = SL_EIGHT / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] = lane[l] > lane[l + half] ? lane[l] : lane[l + half];
    row->largest = lane[0];
}

/* `terms` gets the exponentials of all but the last classes, row->last those of the last; NULL:
 * only their sum is wanted. */
SL_INLINE void add_exponentials(struct row *row, float *terms)
{
    sl_short sum[SL_EIGHT_VECTORS];
    float lane[SL_EIGHT];
    SL_UNROLL for (int v = 0; v < SL_EIGHT_VECTORS; v++)
    {
        row->last[v] = sl_exponential_short(row->last[v] - row->largest);
        sum[v] = row->last[v];
    }
    for (int64_t j = 0; j < row->whole; j += SL_EIGHT)
        SL_UNROLL for (int v = 0; v < SL_EIGHT_VECTORS; v++)
        {
            const sl_short term =
                sl_exponential_short(((const sl_short *)(row->z + j))[v] - row->largest);
            sum[v] += term;
            if (terms)
                ((sl_short *)(terms + j))[v] = term;
        }
    SL_UNROLL for (int v = 0; v < SL_EIGHT_VECTORS; v++)((sl_short *)lane)[v] = sum[v];
    for (int half = SL_EIGHT / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    row->sum = lane[0];
}

/* Whether the label is the first largest logit; a NaN at the start is the largest. */
SL_INLINE bool is_right(const struct row *row, int32_t label)
{
    const int32_t classes = (int32_t)(row->whole + row->rest);
    const float *z = row->z, mine = z[label];
    int beaten = isnan(z[0]) || isnan(mine);
    for (int32_t j = 0; j < classes; j++)
        beaten |= (z[j] > mine) | ((z[j] == mine) & (j < label));
    return !beaten;
}

/* Rows of one split. A row's loss is log(sum) + largest - z[label]; logarithms are taken of
 * products of sums. */
struct tally {
    double loss, product, correct;
};

static const double LARGE_PRODUCT = 0x1p900; /* times a number of classes, it is finite */

/* What depends on the logits themselves, and what on the sum of their exponentials. */
SL_INLINE void count_logits(const struct row *row, int32_t label, struct tally *tally)
{
    tally->loss += (double)row->largest - (double)row->z[label];
    tally->correct += is_right(row, label);
}

SL_INLINE void count_sum(const struct row *row, struct tally *tally)
{
    tally->product *= (double)row->sum;
    if (tally->product > LARGE_PRODUCT) {
        tally->loss += log(tally->product);
        tally->product = 1.0;
    }
}

SL_KERNEL(sl_kernel_accuracy,
          (int64_t rows, int64_t classes, const int32_t *target, const float *z, int64_t ldz,
           double correct[4], double loss[4]),
          (rows, classes, target, z, ldz, correct, loss))
{
    struct tally tally[SL_SPLITS];
    for (int s = 0; s < SL_SPLITS; s++)
        tally[s] = (struct tally){.product = 1.0};
    for (int64_t r = 0; r < rows; r++) {
        if (target[2 * r] < 0)
            continue;
        struct tally *const of_split = &tally[target[2 * r + 1]];
        struct row row = row_of(z + r * ldz, classes, ldz);
        find_largest(&row);
        count_logits(&row, target[2 * r], of_split);
        add_exponentials(&row, NULL);
        count_sum(&row, of_split);
    }
    for (int s = 0; s < SL_SPLITS; s++) {
        loss[s] = tally[s].loss + log(tally[s].product);
        correct[s] = tally[s].correct;
    }
}

/* out = factor · (softmax(z) - onehot(label)), where `out` has the exponentials. */
SL_INLINE void finish_gradient(const struct row *row, int32_t label, float factor, float *out)
{
    const float times = factor / row->sum;
    float last[SL_EIGHT];
    for (int64_t j = 0; j < row->whole; j++)
        out[j] *= times;
    SL_UNROLL for (int v = 0; v < SL_EIGHT_VECTORS; v++)((sl_short *)last)[v] =
        row->last[v] * times;
    for (int64_t l = 0; l < row->rest; l++)
        out[row->whole + l] = last[l];
    out[label] -= factor;
}

SL_KERNEL(sl_kernel_softmax_loss, (const struct sl_softmax *s, double *loss, double *correct),
          (s, loss, correct))
{
    struct tally tally = {.product = 1.0};
    for (int64_t r = 0; r < s->rows; r++) {
        const int32_t label = s->target[2 * r];
        float *out = s->g + r * s->ldg;
        if (label < 0 || s->target[2 * r + 1] != SL_SPLIT_TRAIN) {
            for (int64_t j = 0; j < s->classes; j++)
                out[j] = 0.0f;
            continue;
        }
        struct row row = row_of(s->z + r * s->ldz, s->classes, s->ldz);
        find_largest(&row);
        count_logits(&row, label, &tally);
        add_exponentials(&row, out); /* which may be where the logits were */
        count_sum(&row, &tally);
        finish_gradient(&row, label, s->factor ? s->scale * s->factor[r] : s->scale, out);
    }
    *loss = tally.loss + log(tally.product);
    *correct = tally.correct;
}
