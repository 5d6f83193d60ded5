/* Types that all operations share. An operation has a header of its own, with up to four parts:
 *
 *     sl_kernel_…   the CPU kernel, a plain function on pointers, callable without the runtime
 *     sl_cuda_…     the kernel on a GPU, in a build with CUDA
 *     sl_submit_…   one task on tiles; does nothing on ranks that do not own the output tile
 *     …_argument    values that the task gives its kernels beside its tiles
 *
 * All matrices are row-major float32, or bfloat16 where the operand is a struct sl_rows. The
 * leading dimension `ld` is in elements (ld >= columns). Kernels may read ld elements of every row,
 * also of the last one. Kernels write only the `columns` elements of a row. Sparse products,
 * epilogues, norms and dropout may also write the padding up to the next multiple of 16. Sums are
 * float32. Sparse operands have at least one column. No kernel allocates, waits or fails.
 *
 * CUDA kernels are host functions that enqueue the work on a queue and return at once. They take
 * the same operands, in device memory; nothing in them allocates, synchronizes or knows the
 * runtime. A launch that fails stops the run. Results depend on the operands, their types and their
 * shapes only, to the bit: not on ld, alignment or other work on the device. */
#ifndef SL_CODELETS_OPERATION_H
#define SL_CODELETS_OPERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/rng.h"
#include "core/sparse.h"
#include "core/tile.h"

/* Declare a function that cores and GPUs share. */
#ifdef __CUDACC__
#define SL_EVERYWHERE static __host__ __device__ __forceinline__
#else
#define SL_EVERYWHERE static inline __attribute__((always_inline))
#endif

struct sl_runtime;

/* The queue of a GPU's worker: a cudaStream_t and a cublasHandle_t, without CUDA's headers. */
struct sl_cuda_queue {
    struct CUstream_st *stream;
    struct cublasContext *blas; /* bound to `stream` */
    void *workspace; /* SL_RUNTIME_WORKSPACE bytes of device memory, contents undefined. Calls that
                        may run at the same time on one device need different workspaces. */
};

/* The rows of a float32 operand. */
struct sl_floats_at {
    float *data;
    int64_t ld;
};

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

/* Return the rows from element (r, j) on. Rows without data stay without data. */
static inline struct sl_rows sl_rows_at(const struct sl_rows *rows, int64_t r, int64_t j)
{
    struct sl_rows part = *rows;
    part.room -= j;
    if (rows->data)
        part.data = (char *)rows->data + (r * rows->ld + j) * (int64_t)sl_type_size(rows->type);
    return part;
}

/* End the program where the tiles of a task that works on equal elements have two shapes: another
 * cut of columns would mix rows, within the padding of the tiles. */
static inline void sl_expect_one_shape(const char *task, const struct sl_tile *x,
                                       const struct sl_tile *y)
{
    if (x->rows != y->rows || x->cols != y->cols)
        sl_fatal("%s of a %lld x %lld tile and a %lld x %lld tile", task, (long long)x->rows,
                 (long long)x->cols, (long long)y->rows, (long long)y->cols);
}

/* The row scales of a tile, and the vertices of its rows: a (SL_ROW_SCALES, rows) tile, in which
 * each has a row. The normalised adjacency is Â = diag(left)·S·diag(right) with S = A + I, whose
 * values are 1 on a graph without weights. */
enum sl_row_scale {
    SL_ROW_NONE = -1,
    SL_ROW_VERTEX, /* the vertex's number in the dataset, uint32_t; the others are float */
    SL_ROW_LEFT,
    SL_ROW_RIGHT,
    SL_ROW_BOTH,         /* left · right */
    SL_ROW_INVERSE_LEFT, /* 1 / left */
    SL_ROW_INVERSE_RIGHT,
    SL_ROW_ROOT, /* 1, or 0 for a copy of a vertex whose root is another row */
    SL_ROW_SCALES,
};

#endif
