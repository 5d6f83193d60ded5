/* Products with sparse features. */
#ifndef SL_CODELETS_FEATURES_H
#define SL_CODELETS_FEATURES_H

#include "codelets/operation.h"

/* Z = X·H, or Xᵀ·H if transposed (accumulate: Z + …), X (m, k) sparse, its element (r, c)
 * multiplied by sl_dropout_factor(drop, vertex[r], c) if `drop` is not NULL and drops anything. H
 * (k, width), Z (m, width); transposed: H (m, width), Z (k, width). The matrix with a row for each
 * row of X is float32 or bfloat16, the other matrix is float32; accumulate: both are float32. Sums
 * are float32. */
struct sl_features {
    bool transposed, accumulate;
    const struct sl_sparse *x;
    int64_t nnz; /* entries of X, for a GPU */
    const struct sl_dropout *drop;
    const uint32_t *vertex; // (m)
    int64_t width;
    struct sl_rows h, z;
};
void sl_kernel_features(const struct sl_features *features);
void sl_cuda_features(const struct sl_features *features, struct sl_cuda_queue queue);

/* Submit Z = [Z +] X·H or Xᵀ·H with sparse features X, dropped out if `drop` is not NULL. Z gets
 * only as many rows as the product has. Types as for sl_kernel_features. */
struct sl_features_tiles {
    bool transposed, accumulate;
    bool keeps; /* further rows of Z are kept; else they are lost on a GPU */
    struct sl_sparse_tile *x;
    const struct sl_dropout *drop;
    struct sl_tile *scales, *h;
    int64_t h_row, h_col; /* where H begins in its tile */
    struct sl_tile *z;
};
void sl_submit_features(struct sl_runtime *rt, const struct sl_features_tiles *tiles);

/* Argument of the task features. */
struct features_argument {
    struct sl_sparse_shape shape;
    struct sl_dropout drop;
    bool transposed, accumulate;
    int64_t h_row, h_col;
};

/* Return the operands of a features task; put X into `x`. */
struct sl_features sl_features_of_task(const struct features_argument *argument, void **buffers,
                                       struct sl_sparse *x);

#endif
