/* What `starling bench kernels` measures. To add a kernel: its row in kernel_rows.c, its plain loop
 * in loops.c. */
#ifndef SL_BENCH_KERNELS_H
#define SL_BENCH_KERNELS_H

#include <stdbool.h>

#include "codelets/attention.h"

enum { SL_KERNEL_WIDTH = 1024 }; /* at most */

/* Operands of all kernels. Matrices are (rows, width) with leading dimension `ld`, if nothing else
 * is said. Each row of A has the same number of entries, and no values. */
struct sl_kernel_work {
    int64_t rows, width, ld, entries;
    struct sl_sparse a, at;                // (rows, rows), and its transpose
    struct sl_sparse weighted;             // A with values
    const float *h, *g;                    /* numbers of both signs */
    const float *mask;                     /* relu's output, half of it 0 */
    const uint16_t *half_h;                /* H as bfloat16 */
    const float *factor;                   // (rows), positive
    const float *weight, *bias, *variance; // (width), positive; rows of one matrix
    const uint32_t *vertex, *index;        // (rows): random numbers; a random order of the rows
    const int32_t *target;                 // (rows, 2), all rows train
    const int32_t *values;                 // (rows, 2 + width), all rows train
    const int32_t *chosen;                 /* of each maximum, the row that it comes from */
    struct sl_dropout half, some;          /* one bit for an element, and 16 */
    struct sl_attention attention;
    struct sl_floats_at projected, scores, gradient, closed; /* codelets/attention.h */
    /* Results. */
    float *z, *y, *v;
    uint16_t *half_z;
    int32_t *argmax;
    double *sums; // (2, ld)
    struct sl_floats_at state, back;
};

typedef void sl_kernel_call(const struct sl_kernel_work *k);

/* Return the plain loop of that name, as it was compiled for the level in force; NULL: none. */
sl_kernel_call *sl_loop_find(const char *name);

/* The results that a kernel writes. */
enum {
    SL_RESULT_Z = 1,
    SL_RESULT_Y = 2,
    SL_RESULT_V = 4,
    SL_RESULT_HALF = 8,
    SL_RESULT_ARGMAX = 16,
    SL_RESULT_SUMS = 32,
    SL_RESULT_STATE = 64,
    SL_RESULT_BACK = 128,
};

/* Bytes, or operations, for each element of a matrix, each entry of A, each element of the rows
 * that the entries meet, and each head of an entry. */
struct sl_kernel_amount {
    double element, entry, met, head;
};

struct sl_kernel_row {
    const char *name, *what;
    sl_kernel_call *run;
    struct sl_kernel_amount bytes, flops;
    unsigned results;
    double tolerance; /* of an element and of the root mean square; 0: the same numbers */
};

/* All kernels, up to a NULL name. */
extern const struct sl_kernel_row sl_kernel_rows[];

#endif
