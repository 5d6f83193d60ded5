/* Copies of sparse features into dense tiles. */
#ifndef SL_CODELETS_EXPAND_H
#define SL_CODELETS_EXPAND_H

#include "codelets/operation.h"

/* Set Z = X, dense, with X's elements multiplied by sl_dropout_factor if `drop` is not NULL. X (m,
 * k) sparse, Z (m, k). */
void sl_kernel_expand(const struct sl_sparse *x, const struct sl_dropout *drop,
                      const uint32_t *vertex, const struct sl_rows *z);

void sl_cuda_expand(const struct sl_sparse *x, const struct sl_dropout *drop,
                    const uint32_t *vertex, const struct sl_rows *z, struct sl_cuda_queue queue);

/* Submit Z = X as a dense matrix, dropped out if `drop` is not NULL. */
void sl_submit_expand(struct sl_runtime *rt, struct sl_sparse_tile *x,
                      const struct sl_dropout *drop, struct sl_tile *scales, struct sl_tile *z);

/* Argument of the task expand. */
struct expand_argument {
    struct sl_sparse_shape shape;
    struct sl_dropout drop;
};

#endif
