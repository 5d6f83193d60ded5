/* Places: memory of matrices that are never in use at the same time. A place is as large as its
 * largest matrix. Small matrices have memory of their own, because waiting for each other costs
 * more. */
#ifndef SL_GRAPHS_PLACE_H
#define SL_GRAPHS_PLACE_H

#include "core/runtime.h"
#include "core/tile.h"

struct sl_place {
    int count, room;
    struct sl_matrix **matrix; // (count): matrices without memory of their own
    struct sl_matrix *current; /* the matrix that the place holds; NULL: none yet */
    struct sl_matrix *last; /* the last matrix with rows on this rank: its tasks use the memory */
    void *memory;
    size_t bytes;
    bool apart;  /* each matrix has memory of its own */
    bool shared; /* never apart */
};

/* Matrices of a place are apart if all together have at most so many bytes. Most tests set 0. */
enum { SL_PLACE_SMALL = 2 << 20 };
extern size_t sl_place_small;

/* Add a matrix that sl_matrix_describe made. Return 0 or SL_ERR_SYSTEM. */
int sl_place_add(struct sl_place *place, struct sl_matrix *matrix);

/* Forget a matrix, before it is destroyed. */
void sl_place_remove(struct sl_place *place, const struct sl_matrix *matrix);

/* Allocate the memory, once all matrices are added, unless memory of an earlier call suffices. Else
 * wait for tasks and messages on the matrices, which lose their values. Return 0 or SL_ERR_SYSTEM.
 */
int sl_place_allocate(struct sl_runtime *rt, struct sl_place *place);

/* Free the memory, after the matrices are destroyed. */
void sl_place_free(struct sl_place *place);

/* Give the place to a matrix, if another matrix has the place. Tasks on the matrix that are
 * submitted later wait for all tasks and messages on the other matrix, whose values are lost. The
 * first of these tasks writes the matrix. */
void sl_place_take(struct sl_runtime *rt, struct sl_place *place, const struct sl_matrix *matrix);

/* ---- The places of a network ---- */

enum sl_place_use {
    SL_PLACE_SLOT,    /* work matrices (enum sl_slot) */
    SL_PLACE_OUTPUTS, /* an output, and the features after dropout */
    SL_PLACE_PASSING, /* outputs that are made again going back */
    SL_PLACE_SEGMENT, /* outputs made again, of blocks with one number in their segments */
    SL_PLACE_KEPT,    /* matrices that a network keeps from its forward pass to its backward pass */
    SL_PLACE_GRADIENTS, /* gradients of parameters: one place for each layer */
    SL_PLACE_FEATURES,  /* features of batches, which are read anew */
    SL_PLACE_USES
};

/* Networks that run one after the other may share their places: each place then has the size of the
 * largest network. */
struct sl_places {
    int count;
    struct sl_use_of_place {
        enum sl_place_use use;
        int number;
        struct sl_place place;
    } * *entry;  // (count)
    bool shared; /* the networks do not allocate; no matrices are apart */
};

/* Return the place of a use and a number, a new one if need be; NULL with SL_ERR_SYSTEM. */
struct sl_place *sl_places_find(struct sl_places *places, enum sl_place_use use, int number);

/* Allocate the memory of all places. Return 0 or SL_ERR_SYSTEM. */
int sl_places_allocate(struct sl_runtime *rt, struct sl_places *places);

/* Return whether matrices need larger places. If so, no task may use a place until it is allocated.
 */
bool sl_places_lack(const struct sl_runtime *rt, const struct sl_places *places);

/* Return the bytes of the places of one use. */
size_t sl_places_bytes(const struct sl_places *places, enum sl_place_use use);

/* Free all places, after the matrices are destroyed. */
void sl_places_free(struct sl_places *places);

#endif
