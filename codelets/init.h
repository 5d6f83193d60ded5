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

/* A matrix of parts, one after the other: rows of part p are uniform(-limit, limit) by (key, row,
 * column); those of limit 0 and those after the last part are 0. W is its rows from `first` on. */
enum { SL_GLOROT_PARTS = 6 };
struct sl_glorot {
    uint64_t key;
    int64_t first;
    struct {
        int64_t rows;
        float limit;
    } part[SL_GLOROT_PARTS];
};

/* Find the rows *from … *to - 1 of W, which has `rows` rows, that belong to part p. *at is the
 * part's first row in the matrix, and becomes that of the next part. The part SL_GLOROT_PARTS has
 * all rows after the last part. */
static inline void sl_glorot_rows(const struct sl_glorot *glorot, int p, int64_t rows, int64_t *at,
                                  int64_t *from, int64_t *to)
{
    const int64_t begin = *at - glorot->first;
    *from = begin < 0 ? 0 : begin < rows ? begin : rows;
    *to = rows;
    if (p == SL_GLOROT_PARTS)
        return;
    *at += glorot->part[p].rows;
    const int64_t end = *at - glorot->first;
    *to = end < 0 ? 0 : end < rows ? end : rows;
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
