/* Sparse x dense products by several libraries: the problem and the contestants of `starling bench
 * spmm`. A new contestant is a file that exports its `struct sl_spmm_rival`, its name below, and
 * its row in spmm.c. */
#ifndef SL_BENCH_SPMM_H
#define SL_BENCH_SPMM_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/team.h"
#include "core/sparse.h"

/* The problem Z = A·H: A (vertices, vertices) in CSR, H and Z (vertices, width). Everything is
 * borrowed. All contestants share A and H, on huge pages that the threads using them touched first.
 */
struct sl_spmm_problem {
    int64_t vertices, nnz;
    const int64_t *row_ptr; // (vertices + 1)
    const uint32_t *col;    // (nnz), ascending within a row
    const float *value;     // (nnz)
    int64_t width, ld;      /* ld: sl_leading(width, SL_FLOAT32) */
    const float *h;         // (vertices, ld)
    float *z;               // (vertices, ld): room for contestants' results; one runs at a time
    struct sl_team *team;
    int threads;
    const int64_t *cut; // (threads + 1): rows of each thread, with about equally many entries
    int64_t block_cols, narrow_block_cols; /* columns of a block by training's cost model; with
                                              operands of half the size */
};

struct sl_spmm_rival {
    const char *name;
    const char *what;  /* for people: the library and its call */
    bool other_result; /* its result is not the product, and not checked */
    double error; /* largest allowed error, over the sum of the terms' absolute values; 0: 1e-5 */
    /* Whether the contestant can run here; NULL: always. */
    bool (*is_there)(void);
    /* Convert the operands to the contestant's form, untimed. Return 0 or SL_ERR_SYSTEM; `destroy`
     * follows in either case, unless *state is NULL. */
    int (*create)(void **state, const struct sl_spmm_problem *problem);
    /* Multiply `times` times. Return the seconds. */
    double (*run)(void *state, int64_t times);
    /* Return row r of the last product. A contestant that adds to Z has run once only. */
    const float *(*row)(void *state, int64_t r);
    void (*destroy)(void *state);
};

/* The kernel of codelets/spmm.c, with an epilogue, with bfloat16. */
extern const struct sl_spmm_rival sl_spmm_kernel, sl_spmm_finished, sl_spmm_bf16;

/* The plain loop, compiled with -O3 for this machine's instructions: on the problem's memory, and
 * on memory from malloc. */
extern const struct sl_spmm_rival sl_spmm_plain, sl_spmm_plain_malloc;

/* Other libraries, built in if configure finds them. */
extern const struct sl_spmm_rival sl_spmm_mkl, sl_spmm_graphblas, sl_spmm_graphblas_add;

/* GPU contestants of a build with CUDA, on the first GPU: codelets/spmm_cuda.cu and cuSPARSE. */
extern const struct sl_spmm_rival sl_spmm_cuda, sl_spmm_cuda_bf16, sl_spmm_cusparse,
    sl_spmm_cusparse_rows, sl_spmm_cusparse_repeatable, sl_spmm_cuda_finished,
    sl_spmm_cusparse_finished;

/* Measures the bandwidth of a device's own memory. `create` returns 0 or SL_ERR_SYSTEM; `destroy`
 * follows in either case, unless *state is NULL. */
struct sl_spmm_bandwidth {
    double bytes; /* bytes that one run moves */
    int (*create)(void **state);
    double (*run)(void *state, int64_t times); /* return the seconds of `times` runs */
    void (*destroy)(void *state);
};

extern const struct sl_spmm_bandwidth sl_spmm_gpu_bandwidth;

/* Pack the rows of the problem's A from `first` on as a tile of a shape, block after block. */
void sl_spmm_pack(const struct sl_spmm_problem *problem, int64_t first,
                  const struct sl_sparse_shape *shape, void *memory);

#endif
