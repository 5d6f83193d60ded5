/* Shared by the measurements of dense products on cores (gemm.c) and on a GPU (gemm_cuda.c). */
#ifndef SL_BENCH_GEMM_H
#define SL_BENCH_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/measure.h"
#include "core/tile.h"

/* A product C = op(A)·op(B), cut for any number of threads along its rows. Where the sum is the
 * longest side, as in a gradient of weights, the sum is cut instead. Each thread then has its own
 * C, like tasks on tiles. Adding up these matrices is not part of the product. */
struct sl_gemm_shape {
    char name[64];
    int64_t m, n, k;
    bool transpose_a, transpose_b, cut_sum;
    int64_t lda, ldb, ldc;
    float *a, *b, *c; // op(A) (m, k), op(B) (k, n), C (m, n); with cut_sum, one C for each thread
    enum sl_type a_type, b_type, c_type; /* types on cores; a GPU takes every precision in turn */
    size_t a_bytes, b_bytes, c_bytes;
};

/* Return the row of a shape: its sizes, and the spread of seconds[0..repetitions) and of rates. */
json_t *sl_gemm_row(const struct sl_gemm_shape *shape, const double *seconds, int repetitions);

/* The measurement on the first GPU, in a build with CUDA. */
struct sl_gemm_gpu {
    bool (*is_there)(void);
    /* Fill A and B, compare some rows of each product with sums in double, and add a row for each
     * contestant. Return 0 or SL_ERR_SYSTEM. */
    int (*measure)(const struct sl_gemm_shape *shape, const struct sl_bench_common *common,
                   json_t *rows);
};
extern const struct sl_gemm_gpu sl_gemm_cuda;

#endif
