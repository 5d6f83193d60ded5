/* The arguments of the codelets that run on more than one kind of worker, one struct per codelet. A
 * codelet whose argument is a single number or a struct of kernels.h has none here. */
#ifndef SL_CODELETS_ARGUMENTS_H
#define SL_CODELETS_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "codelets/kernels.h"
#include "codelets/submit.h"

/* bias_gradient */
struct bias_gradient_argument {
    int64_t bias_row;
    enum sl_row_fact factor;
};

/* dropout */
struct dropout_argument {
    struct sl_dropout drop;
    uint32_t column0;
};

/* epilogue; a part of gemm_argument and spmm_argument */
struct epilogue_argument {
    bool present;
    bool has_facts, has_bias, has_mask; /* which buffers come along, in this order */
    bool relu;
    bool apart;       /* SUM and Z are two tiles */
    bool masked_by_z; /* Z before is the mask */
    enum sl_row_fact before, after;
    float scale;
    int64_t bias_row, bias_col;
    struct sl_dropout drop;
};

/* gemm_set, gemm_add */
struct gemm_argument {
    int64_t m, n, k;
    int64_t b_row, b_col;
    bool transpose_a, transpose_b, accumulate, tf32;
    struct epilogue_argument epilogue;
};

/* expand */
struct expand_argument {
    struct sl_sparse_shape shape;
    struct sl_dropout drop;
};

/* features */
struct features_argument {
    struct sl_sparse_shape shape;
    struct sl_dropout drop;
    bool transposed;
    int64_t h_row, h_col;
};

/* glorot */
struct glorot_argument {
    int64_t rows;
    uint64_t key;
    float limit;
};

/* max, max_back */
struct max_argument {
    struct sl_sparse_shape shape;
    bool accumulate;
    bool listed;   /* a tile of vertices comes along */
    int32_t first; /* else */
    float sign;
};

/* max_merge; rows of X */
struct max_merge_argument {
    int64_t first, rows;
    bool listed; /* they belong to rows of a list, which comes along */
    float sign;
};

/* optimizer */
struct optimizer_argument {
    struct sl_optimizer_step step;
    int epoch, layer;
};

/* pack_rows; rows first[t] … first[t + 1] - 1 of the list are of tile t */
struct pack_argument {
    int tiles;
    int64_t first[]; // (tiles + 1)
};

/* unpack_rows; rows of the list */
struct unpack_argument {
    int64_t first, count;
    bool accumulate;
};

/* paste */
struct paste_argument {
    int64_t x_row, x_col, y_row, y_col, rows, cols;
};

/* softmax_loss */
struct softmax_argument {
    float scale; /* 1 / number of training vertices */
    enum sl_row_fact factor;
};

/* spmm_set, spmm_add; only the first `parts` parts are there */
struct spmm_argument {
    int parts;
    bool accumulate;
    bool has_sum;
    bool cusparse;     /* on a GPU */
    int64_t most_ones; /* entries of the largest tile without values */
    struct epilogue_argument epilogue;
    struct spmm_part {
        struct sl_sparse_shape shape;
        int64_t tag; /* of the tile */
        int span;
    } part[SL_SPMM_PARTS];
};

#endif
