/* Sparse x dense products by several libraries: what each contestant of `starling bench spmm` is
 * given and what it does. A new one is a file that exports its `struct sl_spmm_rival`, its name
 * below, and its row in bench_spmm.c. */
#ifndef SL_BENCH_SPMM_H
#define SL_BENCH_SPMM_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/team.h"
#include "core/sparse.h"

/* Z = A·H; A (vertices, vertices) in CSR, H and Z (vertices, width). Everything is borrowed, and
 * A and H are the same for all: on huge pages, first touched by the threads that use them. */
struct sl_spmm_problem {
    int64_t vertices, nnz;
    const int64_t *row_ptr; // (vertices + 1)
    const uint32_t *col;    // (nnz), ascending within a row
    const float *value;     // (nnz)
    int64_t width, ld;      /* ld: sl_leading(width, SL_FLOAT32) */
    const float *h;         // (vertices, ld)
    float *z;               // (vertices, ld), for whoever writes such a thing: one runs at a time
    struct sl_team *team;
    int threads;
    const int64_t *cut; // (threads + 1): rows of each thread, about equally many entries
    int64_t block_cols, narrow_block_cols; /* columns of a block, by the cost that training chooses
                                              by, and what it would be for elements of
                                              half the size alone */
};

struct sl_spmm_rival {
    const char *name;
    const char *what;  /* for a person: which library and how it is called */
    bool other_result; /* than the product, which is then not checked */
    double error;      /* that is right, as a part of the sum of all terms' sizes; 0: 1e-5 */
    /* Whether it can take part here; NULL: always. */
    bool (*is_there)(void);
    /* Makes whatever form of the operands it wants; not timed. SL_ERR_SYSTEM; `destroy` follows in
     * either case, unless *state is NULL. */
    int (*create)(void **state, const struct sl_spmm_problem *problem);
    /* Multiplies `times` times; returns the seconds that took. */
    double (*run)(void *state, int64_t times);
    /* Row r of the Z of the last product; one that adds to Z has run once only. */
    const float *(*row)(void *state, int64_t r);
    void (*destroy)(void *state);
};

/* codelets/spmm.c */
extern const struct sl_spmm_rival sl_spmm_kernel, sl_spmm_finished, sl_spmm_bf16;

/* A loop as one writes it first, compiled with -O3 for this machine's instructions: on the memory
 * above, and all on memory from malloc. */
extern const struct sl_spmm_rival sl_spmm_plain, sl_spmm_plain_malloc;

/* Built in where configure finds the library. */
extern const struct sl_spmm_rival sl_spmm_mkl, sl_spmm_graphblas, sl_spmm_graphblas_add;

/* With --device cuda, in a build with CUDA: codelets/spmm_cuda.cu and cuSPARSE, on the first GPU.
 */
extern const struct sl_spmm_rival sl_spmm_cuda, sl_spmm_cuda_bf16, sl_spmm_cusparse,
    sl_spmm_cusparse_rows, sl_spmm_cusparse_repeatable, sl_spmm_cuda_finished,
    sl_spmm_cusparse_finished;

/* The bandwidth of a device's own memory. SL_ERR_SYSTEM; `destroy` follows in either case, unless
 * *state is NULL. */
struct sl_spmm_bandwidth {
    double bytes; /* that a run moves each time */
    int (*create)(void **state);
    double (*run)(void *state, int64_t times); /* returns the seconds */
    void (*destroy)(void *state);
};

extern const struct sl_spmm_bandwidth sl_spmm_gpu_bandwidth;

/* The rows from `first` on of the problem's A as a tile of that shape, block after block. */
void sl_spmm_pack(const struct sl_spmm_problem *problem, int64_t first,
                  const struct sl_sparse_shape *shape, void *memory);

#endif
