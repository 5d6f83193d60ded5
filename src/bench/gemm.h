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
    float *a, *b, *c; // op(A) (m, k), op(B) (k, n), C (m, n), of each thread if cut_sum
    enum sl_type a_type, b_type, c_type; /* on cores; a GPU has every precision in turn */
    size_t a_bytes, b_bytes, c_bytes;
};

/* Shape, seconds and rate of what took seconds[0..repetitions). */
json_t *sl_gemm_row(const struct sl_gemm_shape *shape, const double *seconds, int repetitions);

/* The first GPU, in a build with CUDA. */
struct sl_gemm_gpu {
    bool (*is_there)(void);
    /* Fills A and B, compares some rows of each product with sums in double, and adds a row for
     * each contestant. SL_ERR_SYSTEM. */
    int (*measure)(const struct sl_gemm_shape *shape, const struct sl_bench_common *common,
                   json_t *rows);
};
extern const struct sl_gemm_gpu sl_gemm_cuda;

#endif
