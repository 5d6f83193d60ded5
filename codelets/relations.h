/* The aggregation of relational graph convolutions (Schlichtkrull et al., "Modeling relational data
 * with graph convolutional networks", ESWC 2018, equation 2). Entry e of a sparse tile has two
 * features: the number r(e) of its relation, and a factor. WEIGHT (relations · in, out) has a
 * matrix W_r (in, out) for each relation, one after the other. All matrices are float32.
 *
 * Sums over neighbours come first, then one product for each relation and some rows. On cores, rows
 * without an entry of the relation take no part. */
#ifndef SL_CODELETS_RELATIONS_H
#define SL_CODELETS_RELATIONS_H

#include "codelets/operation.h"

enum { SL_RELATIONS_COLUMNS = 16384 }; /* most columns */

struct sl_relations {
    int64_t relations, in, out;
    struct sl_floats_at weight; // (relations · in, out)
    bool tf32;                  /* products on GPUs, as in struct sl_gemm */
};

/* Set OUT(i) (rows, out) = Σ_e factor(e) · X(col(e))·W_r(e) over the entries e of row i of A
 * (accumulate: OUT + …). X (columns of A, in). */
void sl_kernel_relations(const struct sl_sparse *a, const struct sl_relations *relations,
                         const struct sl_floats_at *x, bool accumulate,
                         const struct sl_floats_at *out);

/* Set the gradients of X and WEIGHT from G (columns of Aᵀ, out), the gradient of OUT. `at` is Aᵀ,
 * whose entries have the features of A's. X (rows of Aᵀ, in). Over the entries e of row j of
 * relation r,
 *
 *     Z_r(j) = Σ_e factor(e) · G(col(e))
 *     BACK(j) = Σ_r Z_r(j)·W_rᵀ              (accumulate: BACK + …)
 *     W_BACK_r = Σ_j X(j)ᵀ·Z_r(j)            (weight_accumulate: W_BACK + …)
 *
 * BACK NULL: the gradient of X is not wanted. */
struct sl_relations_back {
    struct sl_floats_at g, x;
    const struct sl_floats_at *back; // (rows, in)
    bool accumulate, weight_accumulate;
    struct sl_floats_at weight_back; // (relations · in, out)
};
void sl_kernel_relations_back(const struct sl_sparse *at, const struct sl_relations *relations,
                              const struct sl_relations_back *of);

void sl_cuda_relations(const struct sl_sparse *a, const struct sl_relations *relations,
                       const struct sl_floats_at *x, bool accumulate,
                       const struct sl_floats_at *out, struct sl_cuda_queue queue);
void sl_cuda_relations_back(const struct sl_sparse *at, const struct sl_relations *relations,
                            const struct sl_relations_back *of, struct sl_cuda_queue queue);

/* ---- Tasks ---- */

/* Submit OUT = the aggregation of X (sl_kernel_relations). WEIGHT begins at row weight_row of its
 * tile. */
struct sl_relations_tiles {
    struct sl_sparse_tile *a;
    int64_t relations, weight_row;
    struct sl_tile *x, *weight, *out;
    bool accumulate;
};
void sl_submit_relations(struct sl_runtime *rt, const struct sl_relations_tiles *tiles);

/* Submit the gradients of X and WEIGHT (sl_kernel_relations_back). The task runs where BACK lives,
 * or, without BACK, where WEIGHT_BACK lives. */
struct sl_relations_back_tiles {
    struct sl_sparse_tile *a; /* a tile of the transpose */
    int64_t relations, weight_row;
    struct sl_tile *g, *x, *weight, *weight_back;
    struct sl_tile *back; /* NULL: the gradient of X is not wanted */
    bool accumulate, weight_accumulate;
};
void sl_submit_relations_back(struct sl_runtime *rt, const struct sl_relations_back_tiles *tiles);

/* Argument of the tasks relations and relations_back. */
struct relations_argument {
    struct sl_sparse_shape shape;
    int64_t relations, weight_row;
    bool accumulate, tf32;
    bool weight_accumulate, has_back; /* of relations_back */
};

/* Return the relations of a task on a tile of weights. */
static inline struct sl_relations sl_relations_of(const struct relations_argument *argument,
                                                  int64_t in, int64_t out,
                                                  struct sl_floats_at weight)
{
    weight.data += argument->weight_row * weight.ld;
    return (struct sl_relations){argument->relations, in, out, weight, argument->tf32};
}

#endif
