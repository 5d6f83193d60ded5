/* A program's loss: rows that count are copied side by side, and the function sees only copied
 * rows. A row's loss and gradient depend on no other row, so how many are copied at a time changes
 * no bit. */
#include "codelets/own_loss.h"

#include <stdlib.h>
#include <string.h>

#include "codelets/codelet.h"
#include "codelets/softmax.h"
#include "codelets/value_loss.h"
#include "core/error.h"

enum { MOST_ROWS = 1024, MOST_LOGITS = 1 << 16 }; /* most rows and logits copied at a time */

int sl_own_loss_open(struct sl_own_loss_arrays *arrays, int64_t cols)
{
    const int64_t fit = cols > 0 ? MOST_LOGITS / cols : MOST_ROWS;
    const size_t room = fit < 1 ? 1 : fit < MOST_ROWS ? (size_t)fit : MOST_ROWS;
    const size_t items = room * (size_t)cols + 1;
    *arrays = (struct sl_own_loss_arrays){
        .room = (int64_t)room,
        .row = malloc(room * sizeof *arrays->row),
        .vertex = malloc(room * sizeof *arrays->vertex),
        .loss = malloc(room * sizeof *arrays->loss),
        .logits = malloc(items * sizeof *arrays->logits),
        .labels = malloc(items * sizeof *arrays->labels),
        .gradient = malloc(items * sizeof *arrays->gradient),
        .classes = malloc(room * sizeof *arrays->classes),
    };
    return arrays->row && arrays->vertex && arrays->loss && arrays->logits && arrays->labels &&
                   arrays->gradient && arrays->classes
               ? 0
               : -1;
}

void sl_own_loss_free(struct sl_own_loss_arrays *arrays)
{
    free(arrays->row);
    free(arrays->vertex);
    free(arrays->loss);
    free(arrays->logits);
    free(arrays->labels);
    free(arrays->gradient);
    free(arrays->classes);
}

static const int32_t *target_of(const struct sl_own_loss *own, const struct sl_own_loss_rows *rows,
                                int64_t r)
{
    return rows->target + r * sl_target_width(own->form, rows->cols);
}

static bool counts(const struct sl_own_loss *own, const struct sl_own_loss_rows *rows, int64_t r)
{
    const int32_t *target = target_of(own, rows, r);
    return target[SL_TARGET_LABEL] >= 0 && (!rows->g || target[SL_TARGET_SPLIT] == SL_SPLIT_TRAIN);
}

static void copy_row(const struct sl_own_loss *own, const struct sl_own_loss_rows *rows, int64_t r,
                     const struct sl_own_loss_arrays *a, int64_t to)
{
    const int32_t *target = target_of(own, rows, r);
    const size_t bytes = (size_t)rows->cols * sizeof(float);
    a->row[to] = r;
    a->vertex[to] = rows->vertex[r];
    memcpy(a->logits + to * rows->cols, rows->z + r * rows->ldz, bytes);
    if (own->form == SL_TARGET_CLASS)
        a->classes[to] = target[SL_TARGET_LABEL];
    else
        memcpy(a->labels + to * rows->cols, target + SL_TARGET_FIRST, bytes);
}

static void call(const struct sl_own_loss *own, const struct sl_own_loss_rows *rows,
                 const struct sl_own_loss_arrays *a, int64_t count, double loss[SL_SPLITS])
{
    const bool classes = own->form == SL_TARGET_CLASS;
    memset(a->loss, 0, (size_t)count * sizeof *a->loss);
    memset(a->gradient, 0, (size_t)(count * rows->cols) * sizeof *a->gradient);
    own->function(own->context, &(struct starling_loss_rows){
                                    .rows = count,
                                    .columns = rows->cols,
                                    .vertex = a->vertex,
                                    .logits = a->logits,
                                    .classes = classes ? a->classes : NULL,
                                    .labels = classes ? NULL : a->labels,
                                    .loss = a->loss,
                                    .gradient = rows->g ? a->gradient : NULL,
                                });
    for (int64_t k = 0; k < count; k++) {
        const int64_t r = a->row[k];
        const float times = rows->scale * (rows->factor ? rows->factor[r] : 1.0f);
        loss[target_of(own, rows, r)[SL_TARGET_SPLIT]] += a->loss[k];
        for (int64_t j = 0; rows->g && j < rows->cols; j++)
            rows->g[r * rows->ldg + j] = times * a->gradient[k * rows->cols + j];
    }
}

void sl_kernel_own_loss(const struct sl_own_loss *own, const struct sl_own_loss_rows *rows,
                        const struct sl_own_loss_arrays *arrays, double loss[SL_SPLITS])
{
    int64_t count = 0;
    memset(loss, 0, SL_SPLITS * sizeof *loss);
    for (int64_t r = 0; r < rows->rows; r++) {
        if (counts(own, rows, r))
            copy_row(own, rows, r, arrays, count++);
        else if (rows->g)
            memset(rows->g + r * rows->ldg, 0, (size_t)rows->cols * sizeof *rows->g);
        if (count == arrays->room) {
            call(own, rows, arrays, count, loss);
            count = 0;
        }
    }
    if (count > 0)
        call(own, rows, arrays, count, loss);
}

/* ---- Tasks ---- */

/* Count the correct rows of all splits. The losses of the kernels are dropped. */
static void count_correct(const struct sl_own_loss *own, const struct sl_dense *z,
                          const int32_t *target, double correct[SL_SPLITS])
{
    double loss[SL_SPLITS];
    if (own->form == SL_TARGET_CLASS)
        sl_kernel_accuracy(z->rows, z->cols, target, z->data, z->ld, correct, loss);
    else
        sl_kernel_value_count(&(struct sl_value_loss){.kind = SL_VALUE_SIGMOID,
                                                      .rows = z->rows,
                                                      .cols = z->cols,
                                                      .target = target,
                                                      .z = z->data,
                                                      .ldz = z->ld},
                              correct, loss);
}

static void measure(const struct own_loss_argument *arg, const struct sl_own_loss_rows *rows,
                    double loss[SL_SPLITS])
{
    struct sl_own_loss_arrays arrays;
    if (sl_own_loss_open(&arrays, rows->cols)) {
        sl_own_loss_free(&arrays);
        sl_fatal("no memory for some rows of a loss");
    }
    sl_kernel_own_loss(arg->own, rows, &arrays, loss);
    sl_own_loss_free(&arrays);
}

/* own_loss
 *   argument  struct own_loss_argument
 *   buffers   0 R    row scales (SL_ROW_SCALES, rows)
 *             1 R    target (rows, sl_target_width) of int32
 *             2 W    metrics (1, SL_METRICS) of double
 *             3 RW   Z (rows, cols), then G */
static void own_loss_cpu(void *buffers[], void *argument)
{
    const struct own_loss_argument *arg = argument;
    const struct sl_dense z = sl_dense_buffer(buffers[3]);
    const int32_t *target = sl_raw_buffer(buffers[1]);
    double *metrics = sl_raw_buffer(buffers[2]), correct[SL_SPLITS], loss[SL_SPLITS];
    count_correct(arg->own, &z, target, correct);
    measure(arg,
            &(struct sl_own_loss_rows){.rows = z.rows,
                                       .cols = z.cols,
                                       .vertex = sl_vertices(buffers[0]),
                                       .target = target,
                                       .z = z.data,
                                       .ldz = z.ld,
                                       .scale = arg->scale,
                                       .factor = sl_row_scale(buffers[0], arg->factor),
                                       .g = z.data,
                                       .ldg = z.ld},
            loss);
    memset(metrics, 0, SL_METRICS * sizeof *metrics);
    metrics[SL_METRIC_LOSS + SL_SPLIT_TRAIN] = loss[SL_SPLIT_TRAIN];
    metrics[SL_METRIC_CORRECT + SL_SPLIT_TRAIN] = correct[SL_SPLIT_TRAIN];
}

/* own_count
 *   argument  struct own_loss_argument
 *   buffers   0 R    row scales (SL_ROW_SCALES, rows)
 *             1 R    target (rows, sl_target_width) of int32
 *             2 R    Z (rows, cols)
 *             3 W    metrics (1, SL_METRICS) of double */
static void own_count_cpu(void *buffers[], void *argument)
{
    const struct own_loss_argument *arg = argument;
    const struct sl_dense z = sl_dense_buffer(buffers[2]);
    double *metrics = sl_raw_buffer(buffers[3]);
    memset(metrics, 0, SL_METRICS * sizeof *metrics);
    count_correct(arg->own, &z, sl_raw_buffer(buffers[1]), metrics + SL_METRIC_CORRECT);
    measure(arg,
            &(struct sl_own_loss_rows){.rows = z.rows,
                                       .cols = z.cols,
                                       .vertex = sl_vertices(buffers[0]),
                                       .target = sl_raw_buffer(buffers[1]),
                                       .z = z.data,
                                       .ldz = z.ld},
            metrics + SL_METRIC_LOSS);
}

SL_HOST_CODELET(own_loss, 0xDB7093, 4, STARPU_R, STARPU_R, STARPU_W, STARPU_RW);
SL_HOST_CODELET(own_count, 0xFFB6C1, 4, STARPU_R, STARPU_R, STARPU_R, STARPU_W);

void sl_submit_own_loss(struct sl_runtime *rt, const struct sl_own_loss *own, int64_t train_count,
                        enum sl_row_scale factor, struct sl_tile *scales, struct sl_tile *target,
                        struct sl_tile *metrics, struct sl_tile *z)
{
    const struct own_loss_argument arg = {own, 1.0f / (float)train_count, factor};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &own_loss_codelet,
                           .count = 4,
                           .tiles = {scales, target, metrics, z},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .urgency = SL_TASK_SOON,
                           .work = (double)z->rows * (double)z->cols,
                           .kind = own->number,
                       });
}

void sl_submit_own_count(struct sl_runtime *rt, const struct sl_own_loss *own,
                         struct sl_tile *scales, struct sl_tile *target, struct sl_tile *z,
                         struct sl_tile *metrics)
{
    const struct own_loss_argument arg = {.own = own};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &own_count_codelet,
                           .count = 4,
                           .tiles = {scales, target, z, metrics},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)z->rows * (double)z->cols,
                           .kind = own->number,
                       });
}
