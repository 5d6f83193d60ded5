#include "codelets/value_loss.h"

#include "codelets/codelet.h"
#include "core/split.h"

/* value_loss
 *   argument  struct value_loss_argument
 *   buffers   R    row scales (SL_ROW_SCALES, rows)
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
                                .factor = sl_row_scale(buffers[0], arg->factor),
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
                          float smoothing, enum sl_row_scale factor, struct sl_tile *scales,
                          struct sl_tile *target, struct sl_tile *weights, struct sl_tile *metrics,
                          struct sl_tile *z)
{
    const struct value_loss_argument arg = {kind, 1.0f / (float)train_count, smoothing, factor,
                                            weights != NULL};
    struct sl_task task = {
        .codelet = &value_loss_codelet,
        .tiles = {scales, target},
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
