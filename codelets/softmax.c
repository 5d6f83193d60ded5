#include "codelets/softmax.h"

#include "codelets/codelet.h"
#include "core/split.h"

/* softmax_loss
 *   argument  struct softmax_argument
 *   buffers   0 R    row scales (SL_ROW_SCALES, rows)
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
                                                .factor = sl_row_scale(buffers[0], arg->factor),
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

void sl_submit_softmax_loss(struct sl_runtime *rt, int64_t train_count, struct sl_tile *scales,
                            enum sl_row_scale factor, struct sl_tile *target,
                            struct sl_tile *metrics, struct sl_tile *z)
{
    const struct softmax_argument arg = {1.0f / (float)train_count, factor};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &softmax_loss_codelet,
                           .count = 4,
                           .tiles = {scales, target, metrics, z},
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
