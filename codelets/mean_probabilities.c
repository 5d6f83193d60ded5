/* Means of probabilities, computed in logarithms, so that no probability is rounded to 0. */
#include "codelets/mean_probabilities.h"

#include <math.h>

#include "codelets/codelet.h"

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Return log Σ exp(row): logits less this number are log-probabilities. */
static double log_of_sum(const float *row, int64_t count)
{
    double largest = row[0], sum = 0.0;
    for (int64_t c = 1; c < count; c++)
        largest = larger(largest, row[c]);
    for (int64_t c = 0; c < count; c++)
        sum += exp(row[c] - largest);
    return largest + log(sum);
}

/* Return log((before·exp(y) + exp(x)) / (before + 1)). */
static double join(int before, double y, double x)
{
    const double largest = larger(y, x);
    return largest + log((before * exp(y - largest) + exp(x - largest)) / (before + 1));
}

void sl_kernel_mean_probabilities(int before, const struct sl_logits *x, const struct sl_logits *y)
{
    for (int64_t r = 0; r < x->rows; r++) {
        const float *from = x->z + r * x->ld;
        float *to = y->z + r * y->ld;
        const double all = log_of_sum(from, x->classes);
        for (int64_t c = 0; c < x->classes; c++)
            to[c] = (float)(before ? join(before, to[c], from[c] - all) : from[c] - all);
    }
}

/* mean_probabilities
 *   argument  struct mean_probabilities_argument
 *   buffers   0 R    X (rows, classes)
 *             1 RW   Y (rows, classes) */
static void mean_probabilities_cpu(void *buffers[], void *argument)
{
    const struct mean_probabilities_argument *arg = argument;
    const struct sl_dense x = sl_dense_buffer(buffers[0]), y = sl_dense_buffer(buffers[1]);
    sl_kernel_mean_probabilities(arg->before, &(struct sl_logits){x.data, x.rows, x.cols, x.ld},
                                 &(struct sl_logits){y.data, y.rows, y.cols, y.ld});
}

SL_CODELET(mean_probabilities, 0x9370DB, 2, STARPU_R, STARPU_RW);

void sl_submit_mean_probabilities(struct sl_runtime *rt, int before, struct sl_tile *x,
                                  struct sl_tile *y)
{
    const struct mean_probabilities_argument arg = {before};
    sl_task_submit(rt, &(struct sl_task){.codelet = &mean_probabilities_codelet,
                                         .count = 2,
                                         .tiles = {x, y},
                                         .argument = &arg,
                                         .argument_size = sizeof arg,
                                         .work = (double)y->rows * (double)y->cols});
}
