/* The gradient of a bias on every row. */
#ifndef SL_CODELETS_BIAS_H
#define SL_CODELETS_BIAS_H

#include "codelets/operation.h"

/* db(j) = Σ_r factor(r) · G(r, j), rows summed in order; factor NULL: 1. G (rows, cols) of
 * either type, db (cols). */
void sl_kernel_bias_gradient(int64_t rows, int64_t cols, const float *factor,
                             const struct sl_rows *g, float *db);

void sl_cuda_bias_gradient(int64_t rows, int64_t cols, const float *factor, const struct sl_rows *g,
                           float *db, struct sl_cuda_queue queue);

/* Submit row `bias_row` of `gradient` = the sum over the rows of G, each times its scale `factor`.
 * `zero`: the row becomes 0 instead. */
void sl_submit_bias_gradient(struct sl_runtime *rt, struct sl_tile *scales,
                             enum sl_row_scale factor, struct sl_tile *g, bool zero,
                             int64_t bias_row, struct sl_tile *gradient);

/* Argument of the task bias_gradient. */
struct bias_gradient_argument {
    int64_t bias_row;
    enum sl_row_scale factor;
    bool zero;
};

#endif
