/* Softmax cross-entropy with class weights and label smoothing. */
#include "codelets/weighted_softmax.h"

#include "codelets/codelet.h"
#include "core/split.h"

/* weighted_softmax
 *   argument  struct weighted_softmax_argument
 *   buffers   R    row scales (SL_ROW_SCALES, rows)
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
                                                  .factor = sl_row_scale(buffers[0], arg->factor),
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
                                enum sl_row_scale factor, struct sl_tile *scales,
                                struct sl_tile *target, struct sl_tile *weights,
                                struct sl_tile *metrics, struct sl_tile *z)
{
    const struct weighted_softmax_argument arg = {1.0f / (float)train_count, smoothing, factor,
                                                  weights != NULL};
    struct sl_task task = {
        .codelet = &weighted_softmax_codelet,
        .tiles = {scales, target},
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
