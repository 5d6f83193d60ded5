/* Softmax cross-entropy and accuracy counts: the logits of a row are read once, as vectors. */
#include <math.h>

#include "codelets/codelet.h"
#include "codelets/exponential.h"
#include "codelets/softmax.h"
#include "core/split.h"

/* Logits of one row. The last vector, of 1 … 8 classes, is apart: what is behind them is -infinity
 * there, which adds nothing to a sum of exponentials. */
struct row {
    const float *z;
    int64_t whole; /* classes before the last vector */
    int64_t rest;  /* classes in it */
    sl_eight last;
    float largest;
    float sum; /* of exp(z - largest) */
};

SL_INLINE struct row row_of(const float *z, int64_t classes, int64_t ldz)
{
    static const int32_t edge[2 * SL_EIGHT] = {-1, -1, -1, -1, -1, -1, -1, -1};
    struct row row = {.z = z, .whole = (classes - 1) / SL_EIGHT * SL_EIGHT};
    row.rest = classes - row.whole;
    const sl_eight nothing = (sl_eight){0} - INFINITY;
    if (row.whole + SL_EIGHT <= ldz) {
        const sl_eight_ints inside = *(const sl_eight_ints *)(edge + SL_EIGHT - row.rest);
        row.last = SL_SELECT(inside, *(const sl_eight *)(z + row.whole), nothing);
    } else {
        row.last = nothing;
        for (int64_t l = 0; l < row.rest; l++)
            row.last[l] = z[row.whole + l];
    }
    return row;
}

SL_INLINE void find_largest(struct row *row)
{
    sl_eight most = row->last;
    for (int64_t j = 0; j < row->whole; j += SL_EIGHT) {
        const sl_eight z = *(const sl_eight *)(row->z + j);
        most = SL_SELECT(SL_SIGN(z - most), most, z);
    }
    float lane[SL_EIGHT];
    *(sl_eight *)lane = most;
    for (int half = SL_EIGHT / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] = lane[l] > lane[l + half] ? lane[l] : lane[l + half];
    row->largest = lane[0];
}

/* `terms` gets the exponentials of all but the last vector, row->last those of the last; NULL: only
 * their sum is wanted. */
SL_INLINE void add_exponentials(struct row *row, float *terms)
{
    row->last -= row->largest;
    sl_exponential(&row->last);
    sl_eight sum = row->last;
    for (int64_t j = 0; j < row->whole; j += SL_EIGHT) {
        sl_eight term = *(const sl_eight *)(row->z + j) - row->largest;
        sl_exponential(&term);
        sum += term;
        if (terms)
            *(sl_eight *)(terms + j) = term;
    }
    float lane[SL_EIGHT];
    *(sl_eight *)lane = sum;
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

SL_INLINE void sl_kernel_accuracy_body(int64_t rows, int64_t classes, const int32_t *target,
                                       const float *z, int64_t ldz, double correct[4],
                                       double loss[4])
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

SL_DISPATCH(, sl_kernel_accuracy,
            (int64_t rows, int64_t classes, const int32_t *target, const float *z, int64_t ldz,
             double correct[4], double loss[4]),
            (rows, classes, target, z, ldz, correct, loss))

/* out = factor · (softmax(z) - onehot(label)), where `out` has the exponentials. */
SL_INLINE void finish_gradient(const struct row *row, int32_t label, float factor, float *out)
{
    const float times = factor / row->sum;
    for (int64_t j = 0; j < row->whole; j += SL_EIGHT)
        *(sl_eight *)(out + j) *= times;
    const sl_eight last = row->last * times;
    if (row->rest == SL_EIGHT)
        *(sl_eight *)(out + row->whole) = last;
    else
        for (int64_t l = 0; l < row->rest; l++)
            out[row->whole + l] = last[l];
    out[label] -= factor;
}

SL_INLINE void sl_kernel_softmax_loss_body(const struct sl_softmax *s, double *loss,
                                           double *correct)
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

SL_DISPATCH(, sl_kernel_softmax_loss, (const struct sl_softmax *s, double *loss, double *correct),
            (s, loss, correct))

/* softmax_loss
 *   argument  struct softmax_argument
 *   buffers   0 R    rows' facts (SL_ROW_FACTS, rows)
 *             1 R    target (rows, 2) of int32
 *             2 W    metrics (1, SL_METRICS) of double
 *             3 RW   Z (rows, classes), then G */
static void softmax_loss_cpu(void *buffers[], void *argument)
{
    const struct softmax_argument *arg = argument;
    const struct sl_dense z = sl_dense_buffer(buffers[3]);
    double *metrics = sl_raw_buffer(buffers[2]);
    for (int i = 0; i < SL_METRICS; i++)
        metrics[i] = 0.0;
    sl_kernel_softmax_loss(&(struct sl_softmax){.rows = z.rows,
                                                .classes = z.cols,
                                                .scale = arg->scale,
                                                .factor = sl_row_fact(buffers[0], arg->factor),
                                                .target = sl_raw_buffer(buffers[1]),
                                                .z = z.data,
                                                .ldz = z.ld,
                                                .g = z.data,
                                                .ldg = z.ld},
                           &metrics[SL_METRIC_LOSS + SL_SPLIT_TRAIN],
                           &metrics[SL_METRIC_CORRECT + SL_SPLIT_TRAIN]);
}

/* accuracy
 *   buffers   0 R    target (rows, 2) of int32
 *             1 R    Z (rows, classes)
 *             2 W    metrics (1, SL_METRICS) of double */
static void accuracy_cpu(void *buffers[], void *argument)
{
    (void)argument;
    const struct sl_dense z = sl_dense_buffer(buffers[1]);
    double *metrics = sl_raw_buffer(buffers[2]);
    for (int i = 0; i < SL_METRICS; i++)
        metrics[i] = 0.0;
    sl_kernel_accuracy(z.rows, z.cols, sl_raw_buffer(buffers[0]), z.data, z.ld,
                       metrics + SL_METRIC_CORRECT, metrics + SL_METRIC_LOSS);
}

SL_CODELET(softmax_loss, 0xDC143C, 4, STARPU_R, STARPU_R, STARPU_W, STARPU_RW);
SL_CODELET(accuracy, 0xFF7F50, 3, STARPU_R, STARPU_R, STARPU_W);

void sl_submit_softmax_loss(struct sl_runtime *rt, int64_t train_count, struct sl_tile *facts,
                            enum sl_row_fact factor, struct sl_tile *target,
                            struct sl_tile *metrics, struct sl_tile *z)
{
    const struct softmax_argument arg = {1.0f / (float)train_count, factor};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &softmax_loss_codelet,
                           .count = 4,
                           .tiles = {facts, target, metrics, z},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .urgency = SL_TASK_SOON,
                           .work = (double)z->rows * (double)z->cols,
                       });
}

void sl_submit_accuracy(struct sl_runtime *rt, struct sl_tile *target, struct sl_tile *z,
                        struct sl_tile *metrics)
{
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &accuracy_codelet,
                           .count = 3,
                           .tiles = {target, z, metrics},
                           .work = (double)z->rows * (double)z->cols,
                       });
}
