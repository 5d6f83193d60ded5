/* Places: memory of matrices that are never in use at the same time. A place is as large as its
 * largest matrix. Small matrices have memory of their own: to wait for each other costs more. */
#ifndef SL_GRAPHS_PLACE_H
#define SL_GRAPHS_PLACE_H

#include "core/runtime.h"
#include "core/tile.h"

struct sl_place {
    int count, room;
    struct sl_matrix **matrix; // (count): without memory of their own
    struct sl_matrix *current; /* which one the place holds; NULL: none yet */
    void *memory;
    size_t bytes;
    bool apart;  /* each matrix has memory of its own */
    bool shared; /* never apart */
};

/* Matrices of a place that have at most so many bytes together are apart. Most tests set 0. */
enum { SL_PLACE_SMALL = 2 << 20 };
extern size_t sl_place_small;

/* Add a matrix that sl_matrix_describe made. Return 0 or SL_ERR_SYSTEM. */
int sl_place_add(struct sl_place *place, struct sl_matrix *matrix);

/* Allocate the memory, once all matrices are added. Return 0 or SL_ERR_SYSTEM. */
int sl_place_allocate(struct sl_runtime *rt, struct sl_place *place);

/* Free the memory, after the matrices are destroyed. */
void sl_place_free(struct sl_place *place);

/* Give the place to a matrix, if another matrix has the place. Tasks on the matrix that are
 * submitted later wait for all tasks and messages on the other matrix, whose values are lost. The
 * first of these tasks writes the matrix. */
void sl_place_take(struct sl_runtime *rt, struct sl_place *place, const struct sl_matrix *matrix);

#endif
