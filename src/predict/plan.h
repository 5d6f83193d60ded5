/* The host memory that training will take on a rank. */
#ifndef SL_PREDICT_PLAN_H
#define SL_PREDICT_PLAN_H

#include <stdint.h>

#include "assembly/operands.h"
#include "core/free_memory.h"

enum sl_plan_kind {
    SL_PLAN_ADJACENCY,   /* S, and its transpose if that is another one */
    SL_PLAN_FEATURES,    /* X, or ÂX, and X after dropout */
    SL_PLAN_ACTIVATIONS, /* outputs of layers, which become gradients, and aggregated inputs */
    SL_PLAN_WORK,        /* matrices that all layers share */
    SL_PLAN_RECEIVED,    /* tiles of other ranks, and parts of their sums */
    SL_PLAN_PARAMETERS,  /* with the optimizer's state, the best ones and those of rank 0 */
    SL_PLAN_GRADIENTS,   /* gradients of parameters, a part for each row tile, and received parts */
    SL_PLAN_ROWS,        /* degrees, vertex numbers, labels, splits, metrics */
    SL_PLAN_KINDS,
};

struct sl_plan {
    int64_t bytes[SL_PLAN_KINDS];
    int64_t passing; /* received rows: networks that run in turn share their memory */
    int64_t total;
    int64_t handles; /* StarPU's, about, in networks of batches; not part of the total */
    int64_t
        block_columns; /* columns of hidden layers in an evaluation by blocks; 0: by whole rows */
};

extern const char *const sl_plan_names[SL_PLAN_KINDS];

/* Return the bytes of the tiles of a training on this rank, whether they have memory or not. */
struct sl_plan sl_plan_of(const struct sl_operands *o, const struct sl_network *net);

/* Add a network that runs in turn with the planned one, on the model of the planned one: all but
 * its places, if they are shared. Its memory comes after that of the plan. sl_plan_add_places adds
 * shared places, once. sl_plan_add_up comes last: it makes the total the sum, if that is larger. */
void sl_plan_add_turn(const struct sl_operands *o, const struct sl_network *net,
                      struct sl_plan *plan);
/* Add another network on a planned graph, likewise. */
void sl_plan_add_other(const struct sl_network *net, struct sl_plan *plan);
void sl_plan_add_places(const struct sl_places *places, struct sl_plan *plan);
void sl_plan_add_up(struct sl_plan *plan);

/* Add the parameters of a model, with the optimizer's state. */
void sl_plan_add_model(const struct sl_model *model, struct sl_plan *plan);

/* Adds those of a network. */
void sl_plan_add_network(const struct sl_network *net, struct sl_plan *plan);

/* Makes the total that of the start, if it is larger, of a run that aggregates dense features:
 * `own` bytes of them are this rank's, in float32. */
void sl_plan_start(struct sl_plan *plan, const struct sl_runtime *rt,
                   const struct sl_distribution *d, int64_t own, int64_t width);

/* Find the memory that each rank can have, the least over all ranks, and its bound. Collective. */
struct sl_space {
    int64_t bytes;
    enum sl_memory_bound bound;
};
struct sl_space sl_space_find(struct sl_runtime *rt);

/* Every kind's largest figure over the ranks, and the largest total. Collective. */
struct sl_plan sl_plan_largest(struct sl_runtime *rt, const struct sl_plan *plan);

#endif
