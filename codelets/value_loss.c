/* Sigmoid cross-entropy and squares: the logits of a row are read once, eight at a time. */
#include <math.h>
#include <string.h>

#include "codelets/codelet.h"
#include "codelets/exponential.h"
#include "codelets/value_loss.h"
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
        sl_eight e = *(const sl_eight *)p->z;
        e = (sl_eight)((sl_eight_ints)e | INT32_MIN); /* -|z| */
        sl_exponential(&e);
        *(sl_eight *)p->e = e;
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

SL_INLINE void sl_kernel_value_loss_body(const struct sl_value_loss *v, double *loss,
                                         double *correct)
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

SL_DISPATCH(, sl_kernel_value_loss, (const struct sl_value_loss *v, double *loss, double *correct),
            (v, loss, correct))

SL_INLINE void sl_kernel_value_count_body(const struct sl_value_loss *v, double correct[4],
                                          double loss[4])
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

SL_DISPATCH(, sl_kernel_value_count,
            (const struct sl_value_loss *v, double correct[4], double loss[4]), (v, correct, loss))

/* value_loss
 *   argument  struct value_loss_argument
 *   buffers   R    rows' facts (SL_ROW_FACTS, rows)
 *             R    target (rows, 2 + cols) of int32
 *             R    weights (2, cols), if weighted
 *             W    metrics (1, SL_METRICS) of double
 *             RW   Z (rows, cols), then G */
static void value_loss_cpu(void *buffers[], void *argument)
{
    const struct value_loss_argument *arg = argument;
    const struct sl_dense z = sl_dense_buffer(buffers[3 + arg->weighted]);
    double *metrics = sl_raw_buffer(buffers[2 + arg->weighted]);
    for (int i = 0; i < SL_METRICS; i++)
        metrics[i] = 0.0;
    sl_kernel_value_loss(
        &(struct sl_value_loss){.kind = arg->kind,
                                .rows = z.rows,
                                .cols = z.cols,
                                .scale = arg->scale,
                                .smoothing = arg->smoothing,
                                .weights = arg->weighted ? sl_raw_buffer(buffers[2]) : NULL,
                                .factor = sl_row_fact(buffers[0], arg->factor),
                                .target = sl_raw_buffer(buffers[1]),
                                .z = z.data,
                                .ldz = z.ld,
                                .g = z.data,
                                .ldg = z.ld},
        &metrics[SL_METRIC_LOSS + SL_SPLIT_TRAIN], &metrics[SL_METRIC_CORRECT + SL_SPLIT_TRAIN]);
}

/* value_count
 *   argument  struct value_loss_argument
 *   buffers   0 R    target (rows, 2 + cols) of int32
 *             1 R    Z (rows, cols)
 *             2 W    metrics (1, SL_METRICS) of double */
static void value_count_cpu(void *buffers[], void *argument)
{
    const struct value_loss_argument *arg = argument;
    const struct sl_dense z = sl_dense_buffer(buffers[1]);
    double *metrics = sl_raw_buffer(buffers[2]);
    for (int i = 0; i < SL_METRICS; i++)
        metrics[i] = 0.0;
    sl_kernel_value_count(&(struct sl_value_loss){.kind = arg->kind,
                                                  .rows = z.rows,
                                                  .cols = z.cols,
                                                  .target = sl_raw_buffer(buffers[0]),
                                                  .z = z.data,
                                                  .ldz = z.ld},
                          metrics + SL_METRIC_CORRECT, metrics + SL_METRIC_LOSS);
}

SL_CODELET_ANY(value_loss, 0xCD5C5C);
SL_CODELET(value_count, 0xF08080, 3, STARPU_R, STARPU_R, STARPU_W);

void sl_submit_value_loss(struct sl_runtime *rt, enum sl_value_loss_kind kind, int64_t train_count,
                          float smoothing, enum sl_row_fact factor, struct sl_tile *facts,
                          struct sl_tile *target, struct sl_tile *weights, struct sl_tile *metrics,
                          struct sl_tile *z)
{
    const struct value_loss_argument arg = {kind, 1.0f / (float)train_count, smoothing, factor,
                                            weights != NULL};
    struct sl_task task = {
        .codelet = &value_loss_codelet,
        .tiles = {facts, target},
        .count = 2,
        .before_output = SL_TASK_WRITES,
        .output = SL_TASK_UPDATES,
        .argument = &arg,
        .argument_size = sizeof arg,
        .urgency = SL_TASK_SOON,
        .work = (double)z->rows * (double)z->cols,
        .kind = (uint32_t)kind,
    };
    if (weights)
        task.tiles[task.count++] = weights;
    task.tiles[task.count++] = metrics;
    task.tiles[task.count++] = z;
    sl_task_submit(rt, &task);
}

void sl_submit_value_count(struct sl_runtime *rt, enum sl_value_loss_kind kind,
                           struct sl_tile *target, struct sl_tile *z, struct sl_tile *metrics)
{
    const struct value_loss_argument arg = {.kind = kind};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &value_count_codelet,
                           .count = 3,
                           .tiles = {target, z, metrics},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)z->rows * (double)z->cols,
                           .kind = (uint32_t)kind,
                       });
}
