/* Softmax cross-entropy, also with class weights, and accuracy counts: the logits of a row are read
 * once, as vectors. */
#include "codelets/weighted_softmax.h"

#include <math.h>
#include <string.h>

#include "codelets/exponential.h"
#include "core/split.h"

/* Logits of one row. The last 1 … 8 classes are apart, in `last`. Its lanes behind the last class
 * are -infinity, which adds nothing to a sum of exponentials. */
struct row {
    const float *z;
    int64_t whole; /* classes before the last ones */
    int64_t rest;  /* number of last classes */
    sl_short last[SL_EIGHT_VECTORS];
    float largest;
    float sum; /* sum of exp(z - largest) */
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

/* Sum the exponentials of a row. Write them to row->last for the last classes, to `terms` for all
 * others; `terms` NULL: only sum them. */
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

/* Return whether the label is the first largest logit; a NaN at the start is the largest. */
SL_INLINE bool is_right(const struct row *row, int32_t label)
{
    static const int32_t numbers[SL_EIGHT] = {0, 1, 2, 3, 4, 5, 6, 7};
    const float mine = row->z[label];
    sl_short_ints beaten[SL_EIGHT_VECTORS] = {{0}};
    int32_t lane[SL_EIGHT], any = isnan(row->z[0]) || isnan(mine);
    for (int64_t j = 0; j <= row->whole; j += SL_EIGHT)
        SL_UNROLL for (int v = 0; v < SL_EIGHT_VECTORS; v++)
        {
            const sl_short z = j < row->whole ? ((const sl_short *)(row->z + j))[v] : row->last[v];
            const sl_short_ints before =
                (sl_short_ints)(((const sl_short_ints *)numbers)[v] < label - (int32_t)j);
            beaten[v] |= (sl_short_ints)(z > mine) | ((sl_short_ints)(z == mine) & before);
        }
    SL_UNROLL for (int v = 0; v < SL_EIGHT_VECTORS; v++)((sl_short_ints *)lane)[v] = beaten[v];
    for (int l = 0; l < SL_EIGHT; l++)
        any |= lane[l];
    return !any;
}

/* Rows of one split. A row's loss is log(sum) + largest - z[label]; `product` collects sums, so
 * that one logarithm serves many. */
struct tally {
    double loss, product, correct;
};

static const double LARGE_PRODUCT = 0x1p900; /* finite even after another factor of a row's sum */

/* Count the parts of a row's loss: its logits and correctness, then the sum of its exponentials. */
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

/* Turn the exponentials in `out` into factor · (softmax(z) - onehot(label)). */
SL_INLINE void finish_gradient(const struct row *row, int32_t label, float factor, float *out)
{
    const float times = factor / row->sum;
    float last[SL_EIGHT];
    for (int64_t j = 0; j < row->whole; j += SL_EIGHT)
        SL_UNROLL for (int v = 0; v < SL_EIGHT_VECTORS; v++)((sl_short *)(out + j))[v] *= times;
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
        add_exponentials(&row, out); /* `out` may be the row's logits */
        count_sum(&row, &tally);
        finish_gradient(&row, label, s->factor ? s->scale * s->factor[r] : s->scale, out);
    }
    *loss = tally.loss + log(tally.product);
    *correct = tally.correct;
}

/* ---- Class weights and label smoothing ---- */

/* Return Σ_j weights(j)·z(j). WEIGHTS NULL: all 1. */
SL_INLINE double sum_weighted(int64_t classes, const float *weights, const float *z)
{
    sl_reals sum[SL_DOUBLE_VECTORS];
    double rest = 0.0;
    int64_t j = 0;
    SL_UNROLL for (int v = 0; v < SL_DOUBLE_VECTORS; v++) sum[v] = (sl_reals){0};
    for (; j + SL_EIGHT <= classes; j += SL_EIGHT)
        SL_UNROLL for (int v = 0; v < SL_DOUBLE_VECTORS; v++)
        {
            const sl_reals own = sl_reals_at(z + j, v);
            sum[v] += weights ? sl_reals_at(weights + j, v) * own : own;
        }
    for (; j < classes; j++)
        rest += (weights ? (double)weights[j] : 1.0) * (double)z[j];
    return sl_fold_reals(sum, false) + rest;
}

/* Turn the exponentials in `out` into by · out - each · weights. */
SL_INLINE void finish_weighted(const struct row *row, float by, float each, const float *weights,
                               float *out)
{
    float last[SL_EIGHT] = {0.0f};
    const sl_short one = (sl_short){0} + 1.0f;
    for (int64_t j = 0; j < row->whole; j += SL_EIGHT)
        SL_UNROLL for (int v = 0; v < SL_EIGHT_VECTORS; v++)
        {
            sl_short *const to = (sl_short *)(out + j) + v;
            *to = by * *to - each * (weights ? ((const sl_short *)(weights + j))[v] : one);
        }
    for (int64_t l = 0; weights && l < row->rest; l++)
        last[l] = weights[row->whole + l];
    SL_UNROLL for (int v = 0; v < SL_EIGHT_VECTORS; v++)
    {
        sl_short *const to = (sl_short *)last + v;
        *to = by * row->last[v] - each * (weights ? *to : one);
    }
    memcpy(out + row->whole, last, (size_t)row->rest * sizeof *out);
}

SL_KERNEL(sl_kernel_weighted_softmax,
          (const struct sl_weighted_softmax *w, double *loss, double *correct), (w, loss, correct))
{
    const struct sl_softmax *s = &w->softmax;
    const float *const weights = w->weights;
    const double hit = 1.0 - (double)w->smoothing, each = (double)w->smoothing / (double)s->classes;
    double sum = weights ? 0.0 : (double)s->classes;
    for (int64_t j = 0; weights && j < s->classes; j++)
        sum += (double)weights[j];
    *loss = *correct = 0.0;
    for (int64_t r = 0; r < s->rows; r++) {
        const int32_t label = s->target[2 * r];
        const float *z = s->z + r * s->ldz;
        float *out = s->g + r * s->ldg;
        if (label < 0 || s->target[2 * r + 1] != SL_SPLIT_TRAIN) {
            memset(out, 0, (size_t)s->classes * sizeof *out);
            continue;
        }
        struct row row = row_of(z, s->classes, s->ldz);
        find_largest(&row);
        const double largest = (double)row.largest,
                     times = (double)s->scale * (s->factor ? (double)s->factor[r] : 1.0);
        const double mine = hit * (weights ? (double)weights[label] : 1.0), all = mine + each * sum;
        *correct += is_right(&row, label);
        *loss += mine * (largest - (double)z[label]);
        if (each > 0.0)
            *loss += each * (sum * largest - (weights ? sum_weighted(s->classes, weights, z)
                                                      : sum_weighted(s->classes, NULL, z)));
        add_exponentials(&row, out); /* `out` may be the row's logits */
        *loss += all * log((double)row.sum);
        const float by = (float)(times * all / (double)row.sum);
        if (weights)
            finish_weighted(&row, by, (float)(times * each), weights, out);
        else
            finish_weighted(&row, by, (float)(times * each), NULL, out);
        out[label] -= (float)(times * mine);
    }
}
