/* The largest of several matrices, element by element, and the gradient of each matrix. */
#ifndef SL_CODELETS_JUMP_MAX_H
#define SL_CODELETS_JUMP_MAX_H

#include "codelets/operation.h"

/* Matrix `number` of several meets the largest so far, M. Matrix 0 becomes M, and ARGMAX is 0. A
 * later matrix replaces M where its value is larger, or NaN, and ARGMAX becomes its number. So the
 * first of equal values counts. The value of X(r, j) is factor[r]·X(r, j); factor (rows), NULL: 1.
 * X and M are (rows, cols) of one type, in which values are compared. ARGMAX (rows, cols). */
void sl_kernel_jump_max(int64_t rows, int64_t cols, int32_t number, const float *factor,
                        const struct sl_rows *x, const struct sl_rows *m, int32_t *argmax,
                        int64_t ldc);

/* D = [D +] G where ARGMAX is `number`, 0 elsewhere: the gradient of matrix `number` from that of
 * M. G (rows, cols) of either type, ARGMAX and D (rows, cols). */
void sl_kernel_jump_max_back(int64_t rows, int64_t cols, int32_t number, const struct sl_rows *g,
                             const int32_t *argmax, int64_t ldc, bool accumulate, float *d,
                             int64_t ldd);

void sl_cuda_jump_max(int64_t rows, int64_t cols, int32_t number, const float *factor,
                      const struct sl_rows *x, const struct sl_rows *m, int32_t *argmax,
                      int64_t ldc, struct sl_cuda_queue queue);
void sl_cuda_jump_max_back(int64_t rows, int64_t cols, int32_t number, const struct sl_rows *g,
                           const int32_t *argmax, int64_t ldc, bool accumulate, float *d,
                           int64_t ldd, struct sl_cuda_queue queue);

/* Submit one meeting: sl_kernel_jump_max. `argmax` is a tile of int32, shaped as `m`. `factor` is a
 * scale of the rows, or SL_ROW_NONE. */
struct sl_jump_max_tiles {
    int number;
    struct sl_tile *scales; /* row scales; not read without a factor */
    enum sl_row_scale factor;
    struct sl_tile *x, *m, *argmax;
};
void sl_submit_jump_max(struct sl_runtime *rt, const struct sl_jump_max_tiles *tiles);

/* Submit D = [D +] the gradient of matrix `number`: sl_kernel_jump_max_back. D is float32. */
void sl_submit_jump_max_back(struct sl_runtime *rt, int number, struct sl_tile *g,
                             struct sl_tile *argmax, bool accumulate, struct sl_tile *d);

/* Argument of the tasks jump_max, which has no `accumulate`, and jump_max_back, which has no
 * `factor`. */
struct jump_max_argument {
    int32_t number;
    enum sl_row_scale factor;
    bool accumulate;
};

#endif
