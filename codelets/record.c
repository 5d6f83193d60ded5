/* Records: tasks that hand metrics to the host, and that keep the best weights. */
#include <string.h>

#include "codelets/codelet.h"
#include "codelets/record.h"

struct record_argument {
    sl_record_function *record;
    void *context;
    double now;
    bool has_after;
};

/* record
 *   argument  struct record_argument
 *   buffers   R    any tile that must be current, or none
 *             RW   metrics (1, SL_METRICS) of double
 *             RW   end (1, 1) of double */
static void record_cpu(void *buffers[], void *argument)
{
    const struct record_argument *arg = argument;
    double *end = sl_raw_buffer(buffers[1 + arg->has_after]);
    if (arg->record(arg->context, arg->now, sl_raw_buffer(buffers[arg->has_after])) && *end == 0.0)
        *end = arg->now;
}

/* keep_best
 *   argument  struct keep_argument
 *   buffers   0 R    metrics (1, SL_METRICS) of double
 *             1 RW   best (1, 2) of double: value, epoch
 *             2 RW   end (1, 1) of double */
static void keep_best_cpu(void *buffers[], void *argument)
{
    sl_keep_best(argument, sl_raw_buffer(buffers[0]), sl_raw_buffer(buffers[1]),
                 sl_raw_buffer(buffers[2]));
}

static void copy_rows(const struct sl_dense *x, const struct sl_dense *y)
{
    for (int64_t r = 0; r < x->rows; r++)
        memcpy(y->data + r * y->ld, x->data + r * x->ld, (size_t)x->cols * sizeof(float));
}

/* copy_if_best
 *   argument  int, the epoch
 *   buffers   0 R    best (1, 2) of double
 *             1 R    W (rows, cols)
 *             2 RW   copy (rows, cols) */
static void copy_if_best_cpu(void *buffers[], void *argument)
{
    const double *best = sl_raw_buffer(buffers[0]);
    const struct sl_dense w = sl_dense_buffer(buffers[1]), copy = sl_dense_buffer(buffers[2]);
    if ((int)best[1] == *(const int *)argument)
        copy_rows(&w, &copy);
}

/* copy
 *   buffers   0 R    X (rows, cols)
 *             1 W    Y (rows, cols) */
static void copy_cpu(void *buffers[], void *argument)
{
    (void)argument;
    const struct sl_dense x = sl_dense_buffer(buffers[0]), y = sl_dense_buffer(buffers[1]);
    copy_rows(&x, &y);
}

SL_HOST_CODELET(record, 0x808080, STARPU_VARIABLE_NBUFFERS, 0);
SL_CODELET(keep_best, 0xA9A9A9, 3, STARPU_R, STARPU_RW, STARPU_RW);
SL_CODELET(copy_if_best, 0xC0C0C0, 3, STARPU_R, STARPU_R, STARPU_RW);
SL_CODELET(copy, 0xD3D3D3, 2, STARPU_R, STARPU_W);

void sl_submit_record(struct sl_runtime *rt, sl_record_function *record, void *context, double now,
                      struct sl_tile *metrics, struct sl_tile *after, struct sl_tile *end)
{
    const struct record_argument arg = {record, context, now, after != NULL};
    struct sl_task task = {
        .codelet = &record_codelet,
        .argument = &arg,
        .argument_size = sizeof arg,
        .before_output = SL_TASK_UPDATES,
        .output = SL_TASK_UPDATES,
    };
    if (after)
        task.tiles[task.count++] = after;
    task.tiles[task.count++] = metrics;
    task.tiles[task.count++] = end;
    sl_task_submit(rt, &task);
}

void sl_submit_keep_best(struct sl_runtime *rt, int index, bool falls, int epoch, int patience,
                         struct sl_tile *metrics, struct sl_tile *best, struct sl_tile *end)
{
    const struct keep_argument arg = {index, epoch, patience, falls};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &keep_best_codelet,
                           .count = 3,
                           .tiles = {metrics, best, end},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                       });
}

void sl_submit_copy_if_best(struct sl_runtime *rt, int epoch, struct sl_tile *best,
                            struct sl_tile *w, struct sl_tile *copy)
{
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &copy_if_best_codelet,
                           .count = 3,
                           .tiles = {best, w, copy},
                           .argument = &epoch,
                           .argument_size = sizeof epoch,
                           .work = (double)w->rows * (double)w->cols,
                       });
}

void sl_submit_copy(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y)
{
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &copy_codelet,
                           .count = 2,
                           .tiles = {x, y},
                           .work = (double)y->rows * (double)y->cols,
                       });
}
