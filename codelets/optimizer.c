/* The table of optimizers, and the tasks of their steps. */
#include <math.h>
#include <string.h>

#include "codelets/codelet.h"
#include "codelets/optimizer.h"
#include "core/error.h"
#include "core/names.h"
#include "core/split.h"

#define ROW(constant, name, states, state) [SL_##constant] = {#name, states, state},
static const struct {
    const char *name;
    int states;
    const char *state;
} optimizers[] = {SL_OPTIMIZERS(ROW)};

bool sl_optimizer_same_state(enum sl_optimizer method, const char *name)
{
    const int other = sl_choice_find(&SL_OPTIMIZER_NAMES[1], name);
    return other != SL_NO_CHOICE && strcmp(optimizers[method].state, optimizers[other].state) == 0;
}

int sl_optimizer_states(enum sl_optimizer method)
{
    return optimizers[method].states;
}

/* Return whether the epoch broke down before this layer's step, so that the step would spoil
 * parameters. */
static bool is_broken(const double *metrics)
{
    return !isfinite(metrics[SL_METRIC_LOSS + SL_SPLIT_TRAIN]) ||
           metrics[SL_METRIC_BAD_GRADIENT] > 0.0 || metrics[SL_METRIC_BAD_UPDATE] > 0.0;
}

/* Make one step on buffers 0 … 4 of `optimizer`; V and counts are (rows, cols), or have no data. */
static void step_on(void *buffers[], const struct optimizer_argument *arg, struct sl_dense counts,
                    struct sl_dense v)
{
    const double end = *(const double *)sl_raw_buffer(buffers[0]);
    double *metrics = sl_raw_buffer(buffers[1]);
    const struct sl_dense g = sl_dense_buffer(buffers[2]), m = sl_dense_buffer(buffers[3]),
                          w = sl_dense_buffer(buffers[4]);
    if ((end > 0.0 && arg->now > end) || is_broken(metrics))
        return;
    /* Without padding, all rows are one long row: the rows of a narrow layer are short. */
    const bool one =
        w.ld == w.cols && counts.ld == w.cols && g.ld == w.cols && m.ld == w.cols && v.ld == w.cols;
    const int64_t learned = w.rows - arg->averages, rows = one ? 1 : learned,
                  cols = one ? learned * w.cols : w.cols;
    unsigned bad = 0;
    for (int64_t r = 0; r < rows; r++)
        bad |= sl_kernel_optimizer(
            &arg->step, cols, counts.data ? counts.data + r * counts.ld : NULL, g.data + r * g.ld,
            w.data + r * w.ld, m.data + r * m.ld, v.data ? v.data + r * v.ld : NULL);
    for (int64_t r = learned; r < w.rows; r++)
        bad |=
            sl_kernel_average(arg->step.average_rate, w.cols, g.data + r * g.ld, w.data + r * w.ld);
    if (bad & SL_BAD_GRADIENT)
        metrics[SL_METRIC_BAD_GRADIENT] = arg->layer;
    if (bad & SL_BAD_UPDATE)
        metrics[SL_METRIC_BAD_UPDATE] = arg->layer;
}

/* optimizer, of a method with one number of state
 *   argument  struct optimizer_argument
 *   buffers   0 R    end (1, 1) of double
 *             1 RW   metrics (1, SL_METRICS) of double
 *             2 R    G (rows, cols)
 *             3 RW   M (rows, cols)
 *             4 RW   W (rows, cols) */
static void optimizer_cpu(void *buffers[], void *argument)
{
    const struct sl_dense none = {.ld = sl_dense_buffer(buffers[4]).cols};
    step_on(buffers, argument, none, none);
}

SL_CODELET(optimizer, 0xFF8C00, 5, STARPU_R, STARPU_RW, STARPU_R, STARPU_RW, STARPU_RW);

/* optimizer_two, of a method with two: buffer 5 RW is V (rows, cols) */
static void optimizer_two_cpu(void *buffers[], void *argument)
{
    const struct sl_dense none = {.ld = sl_dense_buffer(buffers[4]).cols};
    step_on(buffers, argument, none, sl_dense_buffer(buffers[5]));
}

SL_CODELET(optimizer_two, 0xFF8C00, 6, STARPU_R, STARPU_RW, STARPU_R, STARPU_RW, STARPU_RW,
           STARPU_RW);

/* optimizer_counted, of a method with two, whose parameters have step counts of their own
 *   buffers   5 R    counts (rows, cols)
 *             6 RW   V (rows, cols) */
static void optimizer_counted_cpu(void *buffers[], void *argument)
{
    step_on(buffers, argument, sl_dense_buffer(buffers[5]), sl_dense_buffer(buffers[6]));
}

SL_CODELET(optimizer_counted, 0xFF8C00, 7, STARPU_R, STARPU_RW, STARPU_R, STARPU_RW, STARPU_RW,
           STARPU_R, STARPU_RW);

void sl_submit_optimizer(struct sl_runtime *rt, const struct sl_optimizer_step *step,
                         const struct sl_optimizer_tiles *tiles)
{
    const struct optimizer_argument arg = {*step, tiles->now, tiles->layer, tiles->averages};
    const bool two = optimizers[step->method].states > 1, counted = two && tiles->counts;
    struct sl_tile *w = tiles->w;
    if (counted && step->local < 1)
        sl_fatal("step %lld of a round whose parameters have step counts (expected 1 or more)",
                 (long long)step->local);
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = counted ? &optimizer_counted_codelet
                                      : two   ? &optimizer_two_codelet
                                              : &optimizer_codelet,
                           .count = counted ? 7
                                    : two   ? 6
                                            : 5,
                           .tiles = {tiles->end, tiles->metrics, tiles->g, tiles->m, w,
                                     counted ? tiles->counts : tiles->v, tiles->v},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)w->rows * (double)w->cols,
                           .kind = (uint32_t)step->method,
                       });
}
