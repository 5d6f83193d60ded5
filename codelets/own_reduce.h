/* A reducer of neighbours that a program brings (include/starling.h): functions on rows. A state is
 * two numbers for each element, in tiles A and B. It has no CUDA twin: its tasks run on cores. */
#ifndef SL_CODELETS_OWN_REDUCE_H
#define SL_CODELETS_OWN_REDUCE_H

#include "codelets/operation.h"
#include <starling.h>

struct sl_own_reducer {
    struct starling_reducer of; /* the program's functions, without the name */
    uint32_t number;            /* number among the reducers of the program */
};

/* States of rows (…, width), float32. */
struct sl_own_states {
    float *a, *b;
    int64_t lda, ldb;
};

/* Combine the neighbours' rows of H (columns of S, width) into the states of the rows of S. The
 * entries of S are weights; without values all 1. accumulate: continue the states; else begin new
 * states. */
void sl_kernel_own_combine(const struct sl_own_reducer *own, const struct sl_sparse *s,
                           int64_t width, const float *h, int64_t ldh, bool accumulate,
                           const struct sl_own_states *states);

/* Merge state r of `other` into state index[r], r < rows. index NULL: index[r] = r. */
void sl_kernel_own_merge(const struct sl_own_reducer *own, int64_t rows, int64_t width,
                         const uint32_t *index, const struct sl_own_states *other,
                         const struct sl_own_states *states);

/* Finish the states: A = the result, B = values that its gradient needs. */
void sl_kernel_own_finish(const struct sl_own_reducer *own, int64_t rows, int64_t width,
                          const struct sl_own_states *states);

/* DH (rows of ST, width) = the gradient of H (accumulate: DH + …), from G, the gradient of the
 * result A, and B, both (columns of ST, width). ST is S transposed. */
struct sl_own_differentiate {
    const struct sl_sparse *st;
    int64_t width;
    const float *g, *b, *h;
    int64_t ldg, ldb, ldh;
    bool accumulate;
    float *dh;
    int64_t lddh;
};
void sl_kernel_own_differentiate(const struct sl_own_reducer *own,
                                 const struct sl_own_differentiate *d);

/* Tiles of sl_kernel_own_combine. All tiles are float32. The tile A is the output. */
struct sl_own_combine_tiles {
    struct sl_sparse_tile *s;
    struct sl_tile *h, *b, *a;
    bool accumulate;
};
void sl_submit_own_combine(struct sl_runtime *rt, const struct sl_own_reducer *own,
                           const struct sl_own_combine_tiles *tiles);

/* Tiles of a merge of rows first … first + rows - 1 of the other tiles into rows index[first …].
 * index: (1, any) of uint32; NULL: consecutive rows. */
struct sl_own_merge_tiles {
    struct sl_tile *other_a, *other_b, *index;
    int64_t first, rows;
    struct sl_tile *b, *a;
};
void sl_submit_own_merge(struct sl_runtime *rt, const struct sl_own_reducer *own,
                         const struct sl_own_merge_tiles *tiles);

void sl_submit_own_finish(struct sl_runtime *rt, const struct sl_own_reducer *own,
                          struct sl_tile *b, struct sl_tile *a);

struct sl_own_differentiate_tiles {
    struct sl_sparse_tile *st;
    struct sl_tile *g, *b, *h, *dh;
    bool accumulate;
};
void sl_submit_own_differentiate(struct sl_runtime *rt, const struct sl_own_reducer *own,
                                 const struct sl_own_differentiate_tiles *tiles);

/* Argument of the tasks own_combine, own_differentiate, own_merge and own_finish. */
struct own_reduce_argument {
    const struct sl_own_reducer *own;
    struct sl_sparse_shape shape;
    bool accumulate, listed;
    int64_t first, rows;
};

#endif
