/* The aggregation of GINE (Hu et al., "Strategies for pre-training graph neural networks", ICLR
 * 2020, equation 2). A message is relu of a sum: a neighbour's row, plus a linear map of the
 * features of the edge. Entry e of a sparse tile has K features f_e. EDGE (K + 1, cols) has the
 * map: its rows 0 … K - 1 are W, row K is the bias. All matrices are float32. */
#ifndef SL_CODELETS_GINE_H
#define SL_CODELETS_GINE_H

#include "codelets/operation.h"

enum { SL_GINE_COLUMNS = 16384 }; /* most columns */

/* Set OUT(i) (rows, cols) = Σ_e relu(X(col(e)) + f_e·W + bias) over the entries e of row i of A
 * (accumulate: OUT + …). X (columns of A, cols). NaN stays. */
void sl_kernel_gine(const struct sl_sparse *a, int64_t cols, const struct sl_floats_at *x,
                    const struct sl_floats_at *edge, bool accumulate,
                    const struct sl_floats_at *out);

/* Set the gradients of X and EDGE from G (columns of Aᵀ, cols), the gradient of OUT. `at` is Aᵀ,
 * whose entries have the features of A's. X (rows of Aᵀ, cols). With m_e = 1 where X(j) + f_e·W +
 * bias > 0, else 0, and the entries e of all rows j,
 *
 *     BACK(j) = Σ_e m_e ∘ G(col(e))                        (accumulate: BACK + …)
 *     EDGE_BACK = Σ_j Σ_e [f_e, 1] ⊗ (m_e ∘ G(col(e)))     (edge_accumulate: EDGE_BACK + …)
 *
 * BACK NULL: the gradient of X is not wanted. */
void sl_kernel_gine_back(const struct sl_sparse *at, int64_t cols, const struct sl_floats_at *g,
                         const struct sl_floats_at *x, const struct sl_floats_at *edge,
                         bool accumulate, const struct sl_floats_at *back, bool edge_accumulate,
                         const struct sl_floats_at *edge_back);

void sl_cuda_gine(const struct sl_sparse *a, int64_t cols, const struct sl_floats_at *x,
                  const struct sl_floats_at *edge, bool accumulate, const struct sl_floats_at *out,
                  struct sl_cuda_queue queue);
void sl_cuda_gine_back(const struct sl_sparse *at, int64_t cols, const struct sl_floats_at *g,
                       const struct sl_floats_at *x, const struct sl_floats_at *edge,
                       bool accumulate, const struct sl_floats_at *back, bool edge_accumulate,
                       const struct sl_floats_at *edge_back, struct sl_cuda_queue queue);

/* ---- Tasks ---- */

/* Submit OUT = the aggregation of X (sl_kernel_gine). sl_submit_paste makes EDGE from a layer's
 * parameters, or from some of their columns. */
struct sl_gine_tiles {
    struct sl_sparse_tile *a;
    struct sl_tile *x, *edge, *out;
    bool accumulate;
};
void sl_submit_gine(struct sl_runtime *rt, const struct sl_gine_tiles *tiles);

/* Submit the gradients of X and EDGE (sl_kernel_gine_back). The task runs where BACK lives, or,
 * without BACK, where EDGE_BACK lives. */
struct sl_gine_back_tiles {
    struct sl_sparse_tile *a; /* a tile of the transpose */
    struct sl_tile *g, *x, *edge, *edge_back;
    struct sl_tile *back; /* NULL: the gradient of X is not wanted */
    bool accumulate, edge_accumulate;
};
void sl_submit_gine_back(struct sl_runtime *rt, const struct sl_gine_back_tiles *tiles);

/* Argument of the tasks gine and gine_back. */
struct gine_argument {
    struct sl_sparse_shape shape;
    bool accumulate;
    bool edge_accumulate, has_back; /* of gine_back */
};

#endif
