/* First values: Glorot's, or one value everywhere. */
#ifndef SL_CODELETS_INIT_H
#define SL_CODELETS_INIT_H

#include "codelets/operation.h"

/* W(r, j) = limit · (2u - 1) with u = sl_rng_uniform(key, row0 + r, column0 + j): Glorot with
 * limit = sqrt(6 / (fan_in + fan_out)). */
void sl_kernel_glorot(int64_t rows, int64_t cols, float limit, uint64_t key, uint32_t row0,
                      uint32_t column0, float *w, int64_t ldw);

/* W = value. */
void sl_kernel_fill(int64_t rows, int64_t cols, float value, float *w, int64_t ldw);

/* Make the values of sl_kernel_glorot and sl_kernel_fill on a GPU, bit for bit. */
void sl_cuda_glorot(int64_t rows, int64_t cols, float limit, uint64_t key, uint32_t row0,
                    uint32_t column0, const struct sl_rows *w, struct sl_cuda_queue queue);
void sl_cuda_fill(int64_t rows, int64_t cols, float value, const struct sl_rows *w,
                  struct sl_cuda_queue queue);

/* A matrix whose first `rows` rows ~ uniform(-limit, limit) by (key, row, column), the next `edges`
 * and then `others` rows with their own limits, the rest 0. W is its rows from `first` on. */
struct sl_glorot {
    uint64_t key;
    int64_t rows, edges, others, first;
    float limit, edges_limit, others_limit;
};

/* Return the first of W's `rows` rows that is row `row` of the matrix or a later row. */
static inline int64_t sl_glorot_row(const struct sl_glorot *glorot, int64_t row, int64_t rows)
{
    const int64_t at = row - glorot->first;
    return at < 0 ? 0 : at < rows ? at : rows;
}
void sl_submit_glorot(struct sl_runtime *rt, const struct sl_glorot *glorot, struct sl_tile *w);

/* Submit W = value; or set its first `rows` rows, and keep the others. */
void sl_submit_fill(struct sl_runtime *rt, float value, struct sl_tile *w);
void sl_submit_fill_rows(struct sl_runtime *rt, float value, int64_t rows, struct sl_tile *w);

/* Argument of the task fill. */
struct fill_argument {
    float value;
    int64_t rows;
};

#endif
