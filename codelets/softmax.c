/* Softmax cross-entropy and accuracy counts. */
#include <math.h>

#include "codelets/codelet.h"
#include "core/split.h"

/* The first largest of `classes` logits. */
static int64_t first_largest(int64_t classes, const float *z)
{
    int64_t best = 0;
    for (int64_t j = 1; j < classes; j++)
        if (z[j] > z[best])
            best = j;
    return best;
}

/* log Σ exp(z), shifted so that nothing overflows. */
static double log_sum_exp(int64_t classes, const float *z, float largest)
{
    double sum = 0.0;
    for (int64_t j = 0; j < classes; j++)
        sum += (double)expf(z[j] - largest);
    return (double)largest + log(sum);
}

void sl_kernel_accuracy(int64_t rows, int64_t classes, const int32_t *target, const float *z,
                        int64_t ldz, double correct[4], double loss[4])
{
    for (int s = 0; s < SL_SPLITS; s++)
        correct[s] = loss[s] = 0.0;
    for (int64_t r = 0; r < rows; r++) {
        const int32_t label = target[2 * r], split = target[2 * r + 1];
        if (label < 0)
            continue;
        const float *row = z + r * ldz;
        const int64_t best = first_largest(classes, row);
        correct[split] += best == label && !isnan(row[best]);
        loss[split] += log_sum_exp(classes, row, row[best]) - (double)row[label];
    }
}

/* out = factor · (softmax(z) - onehot(label)). */
static void row_gradient(int64_t classes, const float *z, float largest, int32_t label,
                         float factor, float *out)
{
    float sum = 0.0f;
    for (int64_t j = 0; j < classes; j++)
        sum += out[j] = expf(z[j] - largest);
    for (int64_t j = 0; j < classes; j++)
        out[j] *= factor / sum;
    out[label] -= factor;
}

void sl_kernel_softmax_loss(int64_t rows, int64_t classes, float scale, const float *factor,
                            const int32_t *target, const float *z, int64_t ldz, double *loss,
                            double *correct, float *g, int64_t ldg)
{
    *loss = *correct = 0.0;
    for (int64_t r = 0; r < rows; r++) {
        const int32_t label = target[2 * r];
        const float *row = z + r * ldz;
        float *out = g + r * ldg;
        if (label < 0 || target[2 * r + 1] != SL_SPLIT_TRAIN) {
            for (int64_t j = 0; j < classes; j++)
                out[j] = 0.0f;
            continue;
        }
        const int64_t best = first_largest(classes, row);
        *correct += best == label && !isnan(row[best]); /* a diverged network predicts nothing */
        *loss += log_sum_exp(classes, row, row[best]) - (double)row[label];
        row_gradient(classes, row, row[best], label, factor ? scale * factor[r] : scale, out);
    }
}

/* softmax_loss
 *   argument  struct softmax_argument
 *   buffers   0 R    rows' facts (SL_ROW_FACTS, rows)
 *             1 R    target (rows, 2) of int32
 *             2 R    Z (rows, classes)
 *             3 W    metrics (1, SL_METRICS) of double
 *             4 W    G (rows, classes) */
static void softmax_loss_cpu(void *buffers[], void *argument)
{
    const struct softmax_argument *arg = argument;
    const struct sl_dense z = sl_dense_buffer(buffers[2]), g = sl_dense_buffer(buffers[4]);
    double *metrics = sl_raw_buffer(buffers[3]);
    for (int i = 0; i < SL_METRICS; i++)
        metrics[i] = 0.0;
    sl_kernel_softmax_loss(z.rows, z.cols, arg->scale, sl_row_fact(buffers[0], arg->factor),
                           sl_raw_buffer(buffers[1]), z.data, z.ld,
                           &metrics[SL_METRIC_LOSS + SL_SPLIT_TRAIN],
                           &metrics[SL_METRIC_CORRECT + SL_SPLIT_TRAIN], g.data, g.ld);
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

SL_CODELET(softmax_loss, 0xDC143C, 5, STARPU_R, STARPU_R, STARPU_R, STARPU_W, STARPU_W);
SL_CODELET(accuracy, 0xFF7F50, 3, STARPU_R, STARPU_R, STARPU_W);

void sl_submit_softmax_loss(struct sl_runtime *rt, int64_t train_count, struct sl_tile *facts,
                            enum sl_row_fact factor, struct sl_tile *target, struct sl_tile *z,
                            struct sl_tile *metrics, struct sl_tile *g)
{
    const struct softmax_argument arg = {1.0f / (float)train_count, factor};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &softmax_loss_codelet,
                           .count = 5,
                           .tiles = {facts, target, z, metrics, g},
                           .argument = &arg,
                           .argument_size = sizeof arg,
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
