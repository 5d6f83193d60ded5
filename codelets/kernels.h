/* CPU kernels: plain functions on pointers, callable without the runtime. All matrices are
 * row-major float32, or bfloat16 where the operand is a struct sl_rows. The leading dimension `ld`
 * is in elements (ld >= columns). Kernels may read ld elements of every row, also of the last one.
 * Kernels write only the `columns` elements of a row. Sparse products, epilogues and dropout may
 * also write the padding up to the next multiple of 16. Sums are float32. Sparse operands have at
 * least one column. No kernel allocates, waits or fails. */
#ifndef SL_CODELETS_KERNELS_H
#define SL_CODELETS_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "codelets/optimizer.h"
#include "core/rng.h"
#include "core/sparse.h"

/* Rows of a dense operand that may be stored in bfloat16. */
struct sl_rows {
    void *data; // (rows, ld)
    int64_t ld;
    int64_t room; /* elements of a row from `data` on, which may be read */
    enum sl_type type;
};

static inline struct sl_rows sl_rows_of_type(void *data, int64_t ld, enum sl_type type)
{
    return (struct sl_rows){data, ld, ld, type};
}

static inline struct sl_rows sl_float_rows(const float *data, int64_t ld)
{
    return sl_rows_of_type((void *)data, ld, SL_FLOAT32);
}

/* From element (r, j) on; of no rows, none. */
static inline struct sl_rows sl_rows_at(const struct sl_rows *rows, int64_t r, int64_t j)
{
    struct sl_rows part = *rows;
    part.room -= j;
    if (rows->data)
        part.data = (char *)rows->data + (r * rows->ld + j) * (int64_t)sl_type_size(rows->type);
    return part;
}

/* Steps on a result whose sums are complete, in this order. A step whose operand is NULL or 0 is
 * left out.
 *
 *     z = scale · before(r) · z
 *     z += bias(j)
 *     z = max(z, 0)                NaN stays
 *     z = 0                        unless mask(r, j) > 0
 *     dropout
 *     z = after(r) · z */
struct sl_epilogue {
    float scale;         /* 1: none */
    const float *before; // (rows)
    const float *bias;   // (cols)
    bool relu;
    struct sl_rows mask; // (rows, cols), relu's output, possibly after dropout
    struct sl_dropout drop;
    const uint32_t *vertex; // (rows), for `drop`
    uint32_t column0;       /* for `drop`: what column 0 is there */
    const float *after;     // (rows)
};

/* Nothing happens. */
#define SL_EPILOGUE_IDENTITY \
    (struct sl_epilogue)     \
    {                        \
        .scale = 1.0f        \
    }

/* Z = SUM (rows, cols) through the epilogue; Z may be SUM. */
void sl_kernel_epilogue(int64_t rows, int64_t cols, const struct sl_epilogue *epilogue,
                        const struct sl_rows *sum, const struct sl_rows *z);

/* Z = Σ_p A(p)·H(p) (accumulate: Z + …), then the epilogue, unless `epilogue` is NULL. Each A(p)
 * (m, k_p) is sparse, H(p) (k_p, width), Z (m, width). Terms are added to Z one after the other, so
 * parts and blocks do not change a bit. Where Z is bfloat16, all blocks but the last one are summed
 * in SUM (m, lds). SUM is overwritten; with `accumulate`, SUM takes the place of the old Z. SUM may
 * be NULL for one part of one block, without `accumulate`. */
void sl_kernel_spmm(int64_t parts, const struct sl_sparse *a, const struct sl_rows *h,
                    int64_t width, bool accumulate, const struct sl_epilogue *epilogue, float *sum,
                    int64_t lds, const struct sl_rows *z);

/* Which vertices the rows, or columns, of a sparse operand are. */
struct sl_numbering {
    int32_t first;         /* number 0, and so on from there, or, */
    const int32_t *number; // (rows, or columns), unless it is NULL, these
};

/* Which vertex each element of a maximum comes from, and what counts as the largest. */
struct sl_argmax {
    int32_t *vertex; // (rows, width); -1: none
    int64_t ld;      /* its rows are so far apart */
    float sign; /* the largest of sign·value is taken: 1 for the maximum, -1 for the minimum */
};

/* Z(r, j) = the largest of value(e)·H(col(e), j) over the entries e of row r of A (accumulate: and
 * of Z), 0 where there is none. A (m, k) sparse, no entry twice, without values: all 1. H (k,
 * width), Z (m, width), of either type. ARGMAX (m, width) has one of the vertices that the columns
 * of A are; it is accumulated to with Z. Of equal values the least vertex wins, so that the order
 * of tiles does not matter. NaN wins over any number. Where Z is bfloat16, values are compared
 * as bfloat16. */
void sl_kernel_max(const struct sl_sparse *a, int64_t width, const struct sl_rows *h,
                   bool accumulate, const struct sl_rows *z, const struct sl_numbering *columns,
                   const struct sl_argmax *argmax);

/* Merge X into Z by the rule above: (Z, ARGMAX)(index[r], j) becomes the larger of itself and (X,
 * FROM)(r, j), r < rows. Where FROM is negative, nothing happens. index NULL: index[r] = r. No row
 * of Z is there twice. X (rows, width) and Z are of one type. */
void sl_kernel_max_merge(int64_t rows, int64_t width, const uint32_t *index,
                         const struct sl_rows *x, const struct sl_argmax *from,
                         const struct sl_rows *z, const struct sl_argmax *argmax);

/* DH (k, width) = the gradient of H (accumulate: DH + …) from G (m, width), that of Z, and ARGMAX.
 * A transposed (k, m), whose rows are those vertices. G and DH are float32. */
void sl_kernel_max_back(const struct sl_sparse *at, int64_t width, const struct sl_rows *g,
                        const struct sl_numbering *rows, const struct sl_argmax *argmax,
                        bool accumulate, const struct sl_rows *dh);

/* Z = X·H, or Xᵀ·H if transposed (accumulate: Z + …), X (m, k) sparse, its element (r, c)
 * multiplied by sl_dropout_factor(drop, vertex[r], c) if `drop` is not NULL and drops anything. H
 * (k, width), Z (m, width); transposed: H (m, width), Z (k, width). */
void sl_kernel_features(bool transposed, const struct sl_sparse *x, const struct sl_dropout *drop,
                        const uint32_t *vertex, int64_t width, const float *h, int64_t ldh,
                        bool accumulate, float *z, int64_t ldz);

/* Z = X, dense, dropped out like that. X (m, k) sparse, Z (m, k). */
void sl_kernel_expand(const struct sl_sparse *x, const struct sl_dropout *drop,
                      const uint32_t *vertex, const struct sl_rows *z);

/* C = epilogue(op(A)·op(B)), without one where it is NULL (accumulate: C += …). op(A) (m, k), op(B)
 * (k, n), C (m, n). Where it is accumulated to, and where A is transposed, C is float32 and there
 * is no epilogue. The mask may be C. */
void sl_kernel_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                    const struct sl_rows *a, const float *b, int64_t ldb, bool accumulate,
                    const struct sl_epilogue *epilogue, const struct sl_rows *c);

/* Z(r, j) += b(j). Z (rows, cols), b (cols). */
void sl_kernel_bias(int64_t rows, int64_t cols, const float *b, float *z, int64_t ldz);

/* db(j) = Σ_r factor(r) · G(r, j), rows summed in order; factor NULL: 1. G (rows, cols), db (cols).
 */
void sl_kernel_bias_gradient(int64_t rows, int64_t cols, const float *factor, const float *g,
                             int64_t ldg, float *db);

/* Z = max(Z, 0) in place; NaN stays NaN. */
void sl_kernel_relu(int64_t rows, int64_t cols, float *z, int64_t ldz);

/* G(r, j) = H(r, j) > 0 ? scale · G(r, j) : 0 in place. H is relu's output, possibly after dropout
 * whose scale is `scale` (1 without): a dropped or negative element is 0 in H either way. */
void sl_kernel_relu_backward(int64_t rows, int64_t cols, float scale, const float *h, int64_t ldh,
                             float *g, int64_t ldg);

/* Y(r, j) = X(r, j) · sl_dropout_factor(drop, vertex[r], column0 + j). Y may be X. */
void sl_kernel_dropout(int64_t rows, int64_t cols, const struct sl_dropout *drop,
                       const uint32_t *vertex, uint32_t column0, const struct sl_rows *x,
                       const struct sl_rows *y);

/* Softmax cross-entropy over the rows whose split is SL_SPLIT_TRAIN (= 1) and whose label is not
 * -1. target (rows, 2) of int32: {label or -1, split}. Z (rows, classes) logits. *loss = Σ -log
 * softmax(Z_r)[label]; *correct = rows whose first largest logit is the label; G = factor(r) ·
 * scale · (softmax(Z_r) - onehot(label)) on those rows, 0 on all others; factor NULL: 1. G may be
 * Z. */
void sl_kernel_softmax_loss(int64_t rows, int64_t classes, float scale, const float *factor,
                            const int32_t *target, const float *z, int64_t ldz, double *loss,
                            double *correct, float *g, int64_t ldg);

/* correct[s] = rows of split s (0 … 3) with a label whose first largest logit is the label; loss[s]
 * = their summed cross-entropy. Both overwritten. */
void sl_kernel_accuracy(int64_t rows, int64_t classes, const int32_t *target, const float *z,
                        int64_t ldz, double correct[4], double loss[4]);

/* Y += X over (rows, cols). */
void sl_kernel_accumulate(int64_t rows, int64_t cols, const float *x, int64_t ldx, float *y,
                          int64_t ldy);

/* The optimizer of that name, which there is. */
enum sl_optimizer sl_optimizer_find(const char *name);

/* Return how many numbers of state the method keeps for each parameter, 1 or 2. */
int sl_optimizer_states(enum sl_optimizer method);

/* One optimizer step on w (count) with gradient g; state m, v (count): v may be NULL where the
 * method has one number of state. Bits of what it returns: of these, some number is infinite or
 * NaN. */
enum { SL_BAD_GRADIENT = 1, SL_BAD_UPDATE = 2 };
unsigned sl_kernel_optimizer(const struct sl_optimizer_step *step, int64_t count, const float *g,
                             float *w, float *m, float *v);

/* Returns the sum of the squares of X, in an order that its shape alone says. */
double sl_kernel_square_sum(int64_t rows, int64_t cols, const float *x, int64_t ldx);

/* X *= limit / sqrt(squares), unless that is 1 or more. */
void sl_kernel_clip(int64_t rows, int64_t cols, double limit, double squares, float *x,
                    int64_t ldx);

/* W(r, j) = limit · (2u - 1) with u = sl_rng_uniform(key, row0 + r, column0 + j): Glorot with
 * limit = sqrt(6 / (fan_in + fan_out)). */
void sl_kernel_glorot(int64_t rows, int64_t cols, float limit, uint64_t key, uint32_t row0,
                      uint32_t column0, float *w, int64_t ldw);

/* W = value. */
void sl_kernel_fill(int64_t rows, int64_t cols, float value, float *w, int64_t ldw);

/* Y(r, j) = s(r) · X(r, j). Y may be X. */
void sl_kernel_scale_rows(int64_t rows, int64_t cols, const float *s, const float *x, int64_t ldx,
                          float *y, int64_t ldy);

/* Y(r, j) = X(r, j), of one type. */
void sl_kernel_paste(int64_t rows, int64_t cols, const struct sl_rows *x, const struct sl_rows *y);

/* Y(r, :) = X(index[r], :), r < count, of one type. X (any, cols), Y (count, cols). */
void sl_kernel_pack_rows(int64_t count, int64_t cols, const uint32_t *index,
                         const struct sl_rows *x, const struct sl_rows *y);

/* Y(index[r], :) = X(r, :), or, accumulating, +=, r < count, of one type; no row of Y is there
 * twice. X (count, cols). */
void sl_kernel_unpack_rows(int64_t count, int64_t cols, const uint32_t *index, bool accumulate,
                           const struct sl_rows *x, const struct sl_rows *y);

#endif
