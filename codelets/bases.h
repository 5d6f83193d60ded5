/* Weights of relations as sums of bases (Schlichtkrull et al., ESWC 2018, equation 3):
 *
 *     W_r = Σ_b C(r, b)·V_b
 *
 * PARAMETERS (bases · in + relations …, out) have the bases V_b (in, out), one after the other,
 * then the coefficients C (relations, bases), in their first columns. */
#ifndef SL_CODELETS_BASES_H
#define SL_CODELETS_BASES_H

#include "codelets/operation.h"

struct sl_bases {
    int64_t relations, bases, in, out; /* bases <= out */
};

/* Make WEIGHT (relations · in, out) from PARAMETERS. */
void sl_kernel_bases(const struct sl_bases *bases, const struct sl_floats_at *parameters,
                     const struct sl_floats_at *weight);

/* Make the gradient BACK of PARAMETERS from GRADIENT (relations · in, out), that of WEIGHT:
 *
 *     dV_b = Σ_r C(r, b)·dW_r     dC(r, b) = Σ_ij dW_r(i, j)·V_b(i, j)
 *
 * Columns of BACK that have no coefficient become 0. */
void sl_kernel_bases_back(const struct sl_bases *bases, const struct sl_floats_at *parameters,
                          const struct sl_floats_at *gradient, const struct sl_floats_at *back);

void sl_cuda_bases(const struct sl_bases *bases, const struct sl_floats_at *parameters,
                   const struct sl_floats_at *weight, struct sl_cuda_queue queue);
void sl_cuda_bases_back(const struct sl_bases *bases, const struct sl_floats_at *parameters,
                        const struct sl_floats_at *gradient, const struct sl_floats_at *back,
                        struct sl_cuda_queue queue);

/* ---- Tasks ---- */

/* Submit WEIGHT = the sums of bases. PARAMETERS begin at row `row` of their tile. */
void sl_submit_bases(struct sl_runtime *rt, const struct sl_bases *bases,
                     struct sl_tile *parameters, int64_t row, struct sl_tile *weight);

/* Submit the gradient of PARAMETERS, which begin at row `row` of their tile. BACK begins at row
 * back_row of its tile, whose other rows stay. */
void sl_submit_bases_back(struct sl_runtime *rt, const struct sl_bases *bases,
                          struct sl_tile *parameters, int64_t row, struct sl_tile *gradient,
                          struct sl_tile *back, int64_t back_row);

/* Argument of the tasks bases and bases_back. */
struct bases_argument {
    struct sl_bases bases;
    int64_t row, back_row;
};

/* ---- Products, on cores and on GPUs ---- */

struct sl_gemm;

/* Call `multiply` on each product of sl_kernel_bases, or of sl_kernel_bases_back. */
typedef void sl_bases_multiply(const struct sl_gemm *gemm, const void *context);
void sl_bases_products(const struct sl_bases *bases, const struct sl_floats_at *parameters,
                       const struct sl_floats_at *weight, sl_bases_multiply *multiply,
                       const void *context);
void sl_bases_products_back(const struct sl_bases *bases, const struct sl_floats_at *parameters,
                            const struct sl_floats_at *gradient, const struct sl_floats_at *back,
                            sl_bases_multiply *multiply, const void *context);

#endif
