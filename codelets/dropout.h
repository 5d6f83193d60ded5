/* Dropout of a dense matrix. */
#ifndef SL_CODELETS_DROPOUT_H
#define SL_CODELETS_DROPOUT_H

#include "codelets/operation.h"

/* Y(r, j) = X(r, j) · sl_dropout_factor(drop, vertex[r], column0 + j). Y may be X. */
void sl_kernel_dropout(int64_t rows, int64_t cols, const struct sl_dropout *drop,
                       const uint32_t *vertex, uint32_t column0, const struct sl_rows *x,
                       const struct sl_rows *y);

/* Do the work of sl_kernel_dropout on a GPU, with the CPU's mask, bit for bit. */
void sl_cuda_dropout(int64_t rows, int64_t cols, const struct sl_dropout *drop,
                     const uint32_t *vertex, uint32_t column0, const struct sl_rows *x,
                     const struct sl_rows *y, struct sl_cuda_queue queue);

/* Submit Y = X · dropout factors. The tile's first column is column `column0` of whole rows. */
void sl_submit_dropout(struct sl_runtime *rt, const struct sl_dropout *drop, struct sl_tile *scales,
                       int64_t column0, struct sl_tile *x, struct sl_tile *y);

/* Argument of the task dropout. */
struct dropout_argument {
    struct sl_dropout drop;
    uint32_t column0;
};

#endif
