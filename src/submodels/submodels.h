/* Independent sub-networks (GIST; Wolfe, Yang, Chowdhury, Dun, Bayer, Segarra, Kyrillidis 2021).
 *
 *     for each round t = 1 … T
 *         cut the units of every hidden layer at random into m parts
 *         for each part: sub-model = blocks of the global parameters of its units
 *         each sub-model trains for Z steps by itself
 *         global parameters = blocks of all sub-models, which are disjoint
 *
 * train_submodels in train/steps.c is this loop, a step at a time.
 *
 * Each group of ranks has some of the sub-models, which train in turn on the group's graph. Entries
 * that no axis splits, such as the last bias, are in all sub-models. Each sub-model changes its own
 * copy during a round. Then the entries become the mean of the copies. The optimizer's state
 * travels and meets in the same way.
 *
 * A slot is a model that sub-models of one shape have in turn. Several groups have a slot for each
 * sub-model, and blocks travel once a round. One group has a slot for each shape. It takes a
 * sub-model before each step: only one is in memory. The global parameters are in a store, whose
 * shards are on all ranks. */
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
    struct sl_tile there; /* the tile as all ranks see it, if there are groups */
    struct sl_tile *own;  /* the tile on the ranks of the slot's group; else NULL */
};

struct sl_model_slot {
    struct sl_model model;      /* on the ranks of the slot's group; empty elsewhere */
    struct sl_carried *carried; // (layers, 1 + states)
    int root;                   /* the rank that owns its tiles */
    int part;                   /* the sub-model that the slot holds; -1: none */
    bool changed;               /* the sub-model has trained since it was last put back */
    int64_t epoch;              /* when the slot took the sub-model */
};

struct sl_submodel {
    int slot;
    bool fresh;           /* its optimizer begins the round without state */
    struct sl_tile *kept; // (1 + states, shards): shared entries, on the shard's owner
};

struct sl_submodels {
    const struct sl_config *config;
    struct sl_runtime *rt;          /* view of all ranks */
    struct sl_runtime *own;         /* view of this rank's group */
    struct sl_model *whole;         /* the global model, on all ranks */
    struct sl_store *store;         /* the global model's parameters and state */
    const struct sl_groups *groups; /* NULL: all ranks are one group */
    struct sl_layer_list list;      /* the global model's layers */
    struct sl_axes axes;
    struct sl_rounds rounds;
    int count;       /* sub-models */
    int first, here; /* the group of this rank has sub-models first, …, first + here - 1 */
    int slots;       /* slots of all groups */
    int first_slot, own_slots;  /* this rank's group: its first slot, number of slots */
    int64_t steps;              /* steps of a round */
    int64_t round;              /* the current round; -1: none has begun */
    int64_t epoch;              /* the epoch of the last step */
    struct sl_submodel *of;     // (count)
    struct sl_tile *total;      // (count): metrics of each sub-model in the last step
    struct sl_model_slot *slot; // (slots)
};

/* Return the steps of a round. A round of an ensemble has all steps of the run. */
int64_t sl_submodels_round_steps(const struct sl_submodels *s);

/* Make the sub-models of the global model whose parameters are in `store`. `groups` NULL: one
 * group, and own == rt. `steps`: the most steps that the optimizer takes. Collective in `rt`.
 * Return 0, SL_ERR_USAGE or SL_ERR_SYSTEM, the same on all ranks; call sl_submodels_destroy in
 * either case. */
int sl_submodels_create(struct sl_submodels *s, struct sl_runtime *rt, struct sl_runtime *own,
                        const struct sl_groups *groups, struct sl_store *store,
                        const struct sl_model_shape *shape, const struct sl_config *config,
                        int64_t steps);
void sl_submodels_destroy(struct sl_submodels *s);

/* Return the round that step `step` (0, 1, …) is in, and the number of the step in its round, from
 * 1 (sl_optimizer_step.local). */
int64_t sl_submodels_round_of(const struct sl_submodels *s, int64_t step);
int64_t sl_submodels_local_step(const struct sl_submodels *s, int64_t step);

/* subAgg: submit the global parameters' blocks = the sub-models' parameters, and shared entries =
 * the means of the sub-models' copies. Do nothing before the first round. */
void sl_submodels_aggregate(struct sl_submodels *s);

/* subGCNs: cut the units for round `round`, and submit the copies of shared entries. `epoch`: the
 * epoch of the round's first step, which may come after the end of the run. */
void sl_submodels_cut(struct sl_submodels *s, int64_t round, int64_t epoch);

/* Submit the sub-models' blocks on their way to the groups. One group takes a sub-model at each
 * step instead. */
void sl_submodels_distribute(struct sl_submodels *s, int64_t epoch);

/* Begin a step of an epoch, in which all sub-models train. */
void sl_submodels_begin_step(struct sl_submodels *s, int64_t epoch);

/* Load sub-model `part` of this rank's group into its slot, to train. Return the slot's number in
 * the group. After the training, sl_submodels_leave takes the metrics from the network that
 * trained. */
int sl_submodels_enter(struct sl_submodels *s, int part);
void sl_submodels_leave(struct sl_submodels *s, int part, struct sl_network *net);

/* Submit the sum of all sub-models' metrics of a step, and give it to `record` on all ranks. */
void sl_submodels_record(struct sl_submodels *s, int64_t epoch, sl_record_function *record,
                         void *context);

/* Copy the sub-models' parameters after the epoch into the global ones. Sub-models keep training
 * with their own. */
void sl_submodels_put(struct sl_submodels *s, int64_t epoch);

/* Copy the sub-models' parameters into the global ones after a run that ended in `epoch`, after
 * `steps` steps. Tasks submitted for later steps did nothing. */
void sl_submodels_end(struct sl_submodels *s, int64_t epoch, int64_t steps);

/* Return 0 if a run can go on from a checkpoint, or SL_ERR_USAGE if an option of its sub-models
 * differs. */
int sl_submodels_check(const struct sl_config *config, const struct sl_checkpoint *checkpoint);

/* Add the entries that sub-models keep inside a round, after `steps` steps, to a checkpoint. Load
 * them from it: SL_ERR_DATA if they are missing. */
int sl_submodels_save(struct sl_submodels *s, int64_t steps, struct sl_saved *saved);
int sl_submodels_load(struct sl_submodels *s, int64_t steps,
                      const struct sl_checkpoint *checkpoint);

/* Return how many numbers travel between ranks in a round: blocks and their optimizer state, from
 * shards to slots of other ranks and back. Sub-models that take turns in a slot travel in each
 * step. */
int64_t sl_submodels_words(struct sl_submodels *s, int64_t round);

/* Add the memory of sub-models on this rank to a plan. `blocked` evaluates them, or is empty. */
struct sl_plan;
struct sl_blocked;
void sl_submodels_plan(const struct sl_submodels *s, const struct sl_blocked *blocked,
                       struct sl_plan *plan);

#endif
