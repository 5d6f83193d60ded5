/* Copies of a part of a matrix into another matrix. */
#ifndef SL_CODELETS_PASTE_H
#define SL_CODELETS_PASTE_H

#include "codelets/operation.h"

/* Y(r, j) = X(r, j), of one type. */
void sl_kernel_paste(int64_t rows, int64_t cols, const struct sl_rows *x, const struct sl_rows *y);

void sl_cuda_paste(int64_t rows, int64_t cols, const struct sl_rows *x, const struct sl_rows *y,
                   struct sl_cuda_queue queue);

/* Submit Y(y_row…, y_col…) = X(x_row…, x_col…), of one type, as far as both have rows and columns.
 */
struct sl_paste_tiles {
    struct sl_tile *x;
    int64_t x_row, x_col;
    struct sl_tile *y;
    int64_t y_row, y_col;
};
void sl_submit_paste(struct sl_runtime *rt, const struct sl_paste_tiles *tiles);

/* Argument of the task paste. */
struct paste_argument {
    int64_t x_row, x_col, y_row, y_col, rows, cols;
};

#endif
