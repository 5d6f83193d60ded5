/* Records of epochs: values for the host, and the best model. */
#ifndef SL_CODELETS_RECORD_H
#define SL_CODELETS_RECORD_H

#include <math.h>

#include "codelets/metrics.h"
#include "codelets/operation.h"

/* Submit a call of record(context, now, values) on a worker of the rank that owns `end`. The call
 * waits for this step's values in `metrics`, for the current value of `after` (NULL: none), and
 * for tasks that read `end`. So the calls of a rank are in order. The callback must be quick.
 * Values that the callback writes to `values` stay in `metrics`. If the callback returns true, the
 * run ends with this step, unless the run has ended already. `now`: as in `end` (optimizer.h). */
typedef bool sl_record_function(void *context, double now, double *values);
void sl_submit_record(struct sl_runtime *rt, sl_record_function *record, void *context, double now,
                      struct sl_tile *metrics, struct sl_tile *after, struct sl_tile *end);

/* Return whether an evaluated epoch is the best so far: its value is larger than the best epoch's,
 * or no epoch is the best yet. */
SL_EVERYWHERE bool sl_is_better(double value, double best, int64_t best_epoch)
{
    return value > best || (best_epoch == 0 && !isnan(value));
}

/* Submit the update of best = {best value, its epoch}. If metrics[index], or its negative if it
 * `falls`, is better, it replaces both. If not, and `patience` epochs have passed since the best
 * epoch, the run ends with this epoch. The task does nothing after the end. */
void sl_submit_keep_best(struct sl_runtime *rt, int index, bool falls, int epoch, int patience,
                         struct sl_tile *metrics, struct sl_tile *best, struct sl_tile *end);

/* Argument of keep_best. On a GPU, metrics (SL_METRICS), best (2) and end (1) are in device memory.
 */
struct keep_argument {
    int index, epoch, patience;
    bool falls;
};
void sl_cuda_keep_best(const struct keep_argument *keep, const double *metrics, double *best,
                       double *end, struct sl_cuda_queue queue);

/* Do the work of keep_best, on a core or a thread of a GPU. */
SL_EVERYWHERE void sl_keep_best(const struct keep_argument *keep, const double *metrics,
                                double *best, double *end)
{
    if (*end > 0.0 && keep->epoch > *end)
        return;
    const double value = keep->falls ? -metrics[keep->index] : metrics[keep->index];
    if (sl_is_better(value, best[0], (int)best[1])) {
        best[0] = value;
        best[1] = keep->epoch;
    } else if (*end == 0.0 && keep->epoch - (int)best[1] >= keep->patience) {
        *end = keep->epoch;
    }
}

/* Submit copy = W if best[1] == epoch. */
void sl_submit_copy_if_best(struct sl_runtime *rt, int epoch, struct sl_tile *best,
                            struct sl_tile *w, struct sl_tile *copy);

/* Submit Y = X. */
void sl_submit_copy(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);

/* Set Y = X (rows, cols) on a GPU. */
void sl_cuda_copy(int64_t rows, int64_t cols, const float *x, int64_t ldx, float *y, int64_t ldy,
                  struct sl_cuda_queue queue);

/* Set Y = X if best (2), on the device, has that epoch. X and Y are float32. */
void sl_cuda_copy_if_best(int64_t rows, int64_t cols, const double *best, int epoch,
                          const struct sl_rows *x, const struct sl_rows *y,
                          struct sl_cuda_queue queue);

#endif
