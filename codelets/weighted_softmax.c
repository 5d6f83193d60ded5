/* Softmax cross-entropy with class weights and label smoothing: plain loops in double. */
#include <math.h>

#include "codelets/codelet.h"
#include "codelets/weighted_softmax.h"
#include "core/split.h"

/* Of a row, from its logits. */
struct row {
    double largest, logarithm; /* of the sum of exp(z - largest) */
    int64_t first_largest;
};

static struct row row_of(const float *z, int64_t classes)
{
    struct row row = {.largest = (double)z[0]};
    double sum = 0.0;
    for (int64_t j = 1; j < classes; j++)
        if (z[j] > z[row.first_largest])
            row.first_largest = j;
    row.largest = (double)z[row.first_largest];
    for (int64_t j = 0; j < classes; j++)
        sum += exp((double)z[j] - row.largest);
    row.logarithm = log(sum);
    return row;
}

/* t_j. */
static double wanted(const struct sl_weighted_softmax *w, int32_t label, int64_t j)
{
    const double smoothing = (double)w->smoothing;
    const double share =
        (j == label ? 1.0 - smoothing : 0.0) + smoothing / (double)w->softmax.classes;
    return w->weights ? (double)w->weights[j] * share : share;
}

void sl_kernel_weighted_softmax(const struct sl_weighted_softmax *w, double *loss, double *correct)
{
    const struct sl_softmax *s = &w->softmax;
    *loss = *correct = 0.0;
    for (int64_t r = 0; r < s->rows; r++) {
        const int32_t label = s->target[2 * r];
        const float *z = s->z + r * s->ldz;
        float *g = s->g + r * s->ldg;
        if (label < 0 || s->target[2 * r + 1] != SL_SPLIT_TRAIN) {
            for (int64_t j = 0; j < s->classes; j++)
                g[j] = 0.0f;
            continue;
        }
        const struct row row = row_of(z, s->classes);
        const double times = (double)s->scale * (s->factor ? (double)s->factor[r] : 1.0);
        double all = 0.0;
        for (int64_t j = 0; j < s->classes; j++) {
            const double t = wanted(w, label, j);
            all += t;
            *loss += t * (row.logarithm + row.largest - (double)z[j]);
        }
        *correct += row.first_largest == label && !isnan(row.largest);
        for (int64_t j = 0; j < s->classes; j++)
            g[j] = (float)(times * (all * exp((double)z[j] - row.largest - row.logarithm) -
                                    wanted(w, label, j)));
    }
}

/* weighted_softmax
 *   argument  struct weighted_softmax_argument
 *   buffers   R    rows' facts (SL_ROW_FACTS, rows)
 *             R    target (rows, 2) of int32
 *             R    weights (2, classes), if weighted
 *             W    metrics (1, SL_METRICS) of double
 *             RW   Z (rows, classes), then G */
static void weighted_softmax_cpu(void *buffers[], void *argument)
{
    const struct weighted_softmax_argument *arg = argument;
    const struct sl_dense z = sl_dense_buffer(buffers[3 + arg->weighted]);
    const float *weights = arg->weighted ? sl_raw_buffer(buffers[2]) : NULL;
    double *metrics = sl_raw_buffer(buffers[2 + arg->weighted]);
    for (int i = 0; i < SL_METRICS; i++)
        metrics[i] = 0.0;
    sl_kernel_weighted_softmax(
        &(struct sl_weighted_softmax){.softmax = {.rows = z.rows,
                                                  .classes = z.cols,
                                                  .scale = arg->scale,
                                                  .factor = sl_row_fact(buffers[0], arg->factor),
                                                  .target = sl_raw_buffer(buffers[1]),
                                                  .z = z.data,
                                                  .ldz = z.ld,
                                                  .g = z.data,
                                                  .ldg = z.ld},
                                      .smoothing = arg->smoothing,
                                      .weights = weights ? weights + z.cols : NULL},
        &metrics[SL_METRIC_LOSS + SL_SPLIT_TRAIN], &metrics[SL_METRIC_CORRECT + SL_SPLIT_TRAIN]);
}

SL_CODELET_ANY(weighted_softmax, 0xB22222);

void sl_submit_weighted_softmax(struct sl_runtime *rt, int64_t train_count, float smoothing,
                                enum sl_row_fact factor, struct sl_tile *facts,
                                struct sl_tile *target, struct sl_tile *weights,
                                struct sl_tile *metrics, struct sl_tile *z)
{
    const struct weighted_softmax_argument arg = {1.0f / (float)train_count, smoothing, factor,
                                                  weights != NULL};
    struct sl_task task = {
        .codelet = &weighted_softmax_codelet,
        .tiles = {facts, target},
        .count = 2,
        .before_output = SL_TASK_WRITES,
        .output = SL_TASK_UPDATES,
        .argument = &arg,
        .argument_size = sizeof arg,
        .urgency = SL_TASK_SOON,
        .work = (double)z->rows * (double)z->cols,
    };
    if (weights)
        task.tiles[task.count++] = weights;
    task.tiles[task.count++] = metrics;
    task.tiles[task.count++] = z;
    sl_task_submit(rt, &task);
}
