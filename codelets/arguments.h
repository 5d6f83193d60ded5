/* The arguments of the codelets that run on more than one kind of worker, one struct per codelet. A
 * codelet whose argument is a single number or a struct of kernels.h has none here. */
#ifndef SL_CODELETS_ARGUMENTS_H
#define SL_CODELETS_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "codelets/kernels.h"

/* dropout, dropout_inplace */
struct dropout_argument {
    struct sl_dropout drop;
    uint32_t vertex0, column0;
};

/* expand */
struct expand_argument {
    int64_t nnz;
    struct sl_sparse_dropout drop;
    bool has_values;
};

/* gemm_set, gemm_add */
struct gemm_argument {
    int64_t m, n, k;
    bool transpose_a, transpose_b, accumulate;
};

/* glorot */
struct glorot_argument {
    int64_t rows;
    uint64_t key;
    float limit;
};

/* optimizer */
struct optimizer_argument {
    struct sl_optimizer_step step;
    int epoch;
};

/* spmm_set, spmm_add */
struct spmm_argument {
    int64_t rows, cols, nnz;
    struct sl_sparse_dropout drop;
    bool has_values, transposed, accumulate;
};

#endif
