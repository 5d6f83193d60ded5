/* Independent sub-networks (GIST; Wolfe, Yang, Chowdhury, Dun, Bayer, Segarra, Kyrillidis 2021).
 *
 *     for each round t = 1 … T
 *         cut the units of every hidden layer at random into m parts
 *         for each part: sub-model = blocks of the global parameters of its units
 *         each sub-model trains for Z steps by itself
 *         global parameters = blocks of all sub-models, which are disjoint
 *
 * Each group of ranks has some of the sub-models, which train in turn on the group's graph. Entries
 * that no axis splits, such as the last bias, are in all sub-models. Each keeps its own during a
 * round. Then they become their mean. What is said of parameters holds for the optimizer's
 * state, too.
 *
 * A slot is a model that sub-models of one shape have in turn. Several groups have a slot for each
 * sub-model, and blocks travel once a round. One group has a slot for each shape. It takes a
 * sub-model before each step: only one is in memory. The global parameters are in a store, whose
 * panels are on all ranks. */
#ifndef SL_SUBMODELS_SUBMODELS_H
#define SL_SUBMODELS_SUBMODELS_H

#include "checkpoint/checkpoint.h"
#include "checkpoint/saved.h"
#include "graphs/groups.h"
#include "recipe/config.h"
#include "submodels/rounds.h"
#include "submodels/store.h"

/* Parameters or state of one layer of a slot. */
struct sl_carried {
    struct sl_tile there; /* as all ranks see it, if there are groups */
    struct sl_tile *own;  /* the same tile on the ranks of its group; else NULL */
};

struct sl_model_slot {
    struct sl_model model;      /* on the ranks of its group; elsewhere nothing */
    struct sl_carried *carried; // (layers, 1 + states)
    int root;                   /* the rank that owns its tiles */
    int part;                   /* the sub-model that it has; -1: none */
    bool changed;               /* it has trained since it was last put back */
    int64_t epoch;              /* in which it took the sub-model */
};

struct sl_submodel {
    int slot;
    bool fresh;           /* its optimizer begins the round without state */
    struct sl_tile *kept; // (1 + states, panels): shared entries, on the owner of the panel
};

struct sl_submodels {
    const struct sl_config *config;
    struct sl_runtime *rt;          /* all ranks */
    struct sl_runtime *own;         /* this rank's group */
    struct sl_model *whole;         /* the global model, on all ranks */
    struct sl_store *store;         /* its parameters and state */
    const struct sl_groups *groups; /* NULL: all ranks are one group */
    struct sl_layer_list list;      /* of the global model */
    struct sl_axes axes;
    struct sl_rounds rounds;
    int count;                  /* sub-models */
    int first, here;            /* of this rank's group: `here` of them, from `first` on */
    int slots;                  /* of all groups */
    int first_slot, own_slots;  /* of this rank's group */
    int64_t steps;              /* of a round */
    int64_t round;              /* that sub-models are in; -1: none yet */
    int64_t epoch;              /* of the last step */
    struct sl_submodel *of;     // (count)
    struct sl_tile *total;      // (count): metrics of the last step
    struct sl_model_slot *slot; // (slots)
};

/* Return the steps of a round: of an ensemble, all that the run may take. */
int64_t sl_submodels_round_steps(const struct sl_submodels *s);

/* Make the sub-models of a global model, of which `store` has the parameters. `groups` NULL: one
 * group; own == rt then. `steps` of the optimizer are taken at most. Collective in `rt`. Return 0,
 * SL_ERR_USAGE or SL_ERR_SYSTEM, the same on all ranks; sl_submodels_destroy in either case. */
int sl_submodels_create(struct sl_submodels *s, struct sl_runtime *rt, struct sl_runtime *own,
                        const struct sl_groups *groups, struct sl_store *store,
                        const struct sl_model_shape *shape, const struct sl_config *config,
                        int64_t steps);
void sl_submodels_destroy(struct sl_submodels *s);

/* Before step `step` (0, 1, …) of all sub-models, which is in epoch `epoch`: begin a round if one
 * begins with the step. Return how many steps of the round were done before, plus one
 * (sl_optimizer_step.local). */
int64_t sl_submodels_step(struct sl_submodels *s, int64_t step, int64_t epoch);

/* Let sub-model `part`, of this rank's group, have its slot, to train. Return which of the group's
 * slots it is. Then take the metrics of the step from the network that trained. */
int sl_submodels_enter(struct sl_submodels *s, int part);
void sl_submodels_leave(struct sl_submodels *s, int part, struct sl_network *net);

/* Submit the sum over all sub-models of what they measured in a step, and hand it to `record` on
 * all ranks. */
void sl_submodels_record(struct sl_submodels *s, int64_t epoch, sl_record_function *record,
                         void *context);

/* Let the global parameters be those of the sub-models after that epoch. These go on with theirs.
 */
void sl_submodels_put(struct sl_submodels *s, int64_t epoch);

/* The run ended with an epoch, after `steps` steps; whatever was submitted since has done nothing.
 * Let the global parameters be those of the sub-models. */
void sl_submodels_end(struct sl_submodels *s, int64_t epoch, int64_t steps);

/* Whether a run can go on from a checkpoint: SL_ERR_USAGE where its sub-models were others. */
int sl_submodels_check(const struct sl_config *config, const struct sl_checkpoint *checkpoint);

/* Add to a checkpoint, inside a round, what sub-models keep, after `steps` steps. Go on with it:
 * SL_ERR_DATA where it is not there. */
int sl_submodels_save(struct sl_submodels *s, int64_t steps, struct sl_saved *saved);
int sl_submodels_load(struct sl_submodels *s, int64_t steps,
                      const struct sl_checkpoint *checkpoint);

/* Return the numbers that travel between ranks in a round: blocks and their optimizer state from
 * panels to slots of other ranks, and back. Sub-models that have a slot in turn take it in each
 * step. */
int64_t sl_submodels_words(struct sl_submodels *s, int64_t round);

/* Add what sub-models take on this rank to a plan. `wide` evaluates them, or does nothing. */
struct sl_plan;
struct sl_wide;
void sl_submodels_plan(const struct sl_submodels *s, const struct sl_wide *wide,
                       struct sl_plan *plan);

#endif
