/* Normalisation of rows that are cut: each rank of a group has some columns. A part of a row gives
 * three numbers, and two more for the gradient. The numbers of all parts, merged, are those of the
 * whole row. */
#ifndef SL_CODELETS_NORM_PARTS_H
#define SL_CODELETS_NORM_PARTS_H

#include "codelets/norm.h"

enum {
    SL_NORM_MOMENTS =
        3, /* mean, its rest, variance of a row: the mean is the sum of the first two */
    SL_NORM_PRODUCTS = 2, /* Σ_j wG and Σ_j wG·X of a row */
};

/* Set MOMENTS (3, rows) of H (rows, cols). */
void sl_kernel_norm_moments(int64_t rows, int64_t cols, const struct sl_rows *h, float *moments,
                            int64_t ld);

/* Merge moments: Y = moments of the `more` columns of X and the `cols` columns of Y (Chan, Golub &
 * LeVeque 1983). */
void sl_kernel_norm_merge(int64_t rows, double cols, double more, const float *x, int64_t ldx,
                          float *y, int64_t ldy);

/* Set PRODUCTS (2, rows) of G (rows, cols); NORM has the moments of whole rows. */
void sl_kernel_norm_products(const struct sl_norm *norm, const struct sl_rows *g, float *products,
                             int64_t ld);

void sl_cuda_norm_moments(int64_t rows, int64_t cols, const struct sl_rows *h, float *moments,
                          int64_t ld, struct sl_cuda_queue queue);
void sl_cuda_norm_merge(int64_t rows, double cols, double more, const float *x, int64_t ldx,
                        float *y, int64_t ldy, struct sl_cuda_queue queue);
void sl_cuda_norm_products(const struct sl_norm *norm, const struct sl_rows *g, float *products,
                           int64_t ld, struct sl_cuda_queue queue);

/* Submit MOMENTS of H, a tile of either type. */
void sl_submit_norm_moments(struct sl_runtime *rt, struct sl_tile *h, struct sl_tile *moments);

/* Submit Y = moments of the `more` columns of X and the `cols` columns of Y. */
void sl_submit_norm_merge(struct sl_runtime *rt, int64_t cols, int64_t more, struct sl_tile *x,
                          struct sl_tile *y);

/* Submit PRODUCTS of G; `tiles` has moments. */
void sl_submit_norm_products(struct sl_runtime *rt, const struct sl_norm_tiles *tiles,
                             struct sl_tile *g, struct sl_tile *products);

/* Argument of the task norm_merge: columns of Y, and of X. */
struct norm_merge_argument {
    double cols, more;
};

#endif
