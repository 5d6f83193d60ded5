/* Batches: the graphs that the steps of an epoch train on. The ranks are one group or several. The
 * vertices of a group are cut into sets. A step trains on one graph in each group: some sets, and
 * the vertices they depend on. Gradients meet once a step. Algorithm 1 of GraNNDis (Song and
 * others, 2023), by its lines, with a server as a group of ranks:
 *
 *      2   for each server i in parallel          sl_batches_open: groups
 *      6       cut i's vertices into R sets       sl_batches_cut_sets
 *      4       extract k hops around, m of each   sl_batch_select
 *     12   for each epoch                         sl_trainer_run
 *     13       for each batch b                   sl_trainer_submit_steps
 *     17           load b, unless it is there     sl_batches_network
 *     19           layers: fetch in the server    sl_network_train, on the group's view
 *     36           all-reduce of gradients        graphs/groups.h
 *     40           unload b where memory asks     renew, in batches.c
 *
 * Lines 4 and 6 have changed places, so that a set has all that its vertices depend on. */
#ifndef SL_BATCHES_BATCHES_H
#define SL_BATCHES_BATCHES_H

#include "batches/pass.h"
#include "data/select.h"
#include "predict/plan.h"
#include "recipe/batches_options.h"

/* Inner vertices of a set, and how many of them have labels and train. */
struct sl_set_size {
    int64_t inner, train;
};

/* A step's graph on this rank's group. */
struct sl_batch {
    struct sl_pass pass;
    struct sl_network *more; // (models - 1): networks of the models after the first one
    struct sl_copies copies; /* copies of other groups' vertices, with --preload-hops */
    struct sl_tile weights;  /* class weights of the whole graph, as the group's view sees them */
    int64_t version;         /* number of the draw; -1: nothing was drawn yet */
    int64_t next_tag[2]; /* next tags of the batch: for all ranks, for the group. While the batch is
                            in use, next tags of the views */
    struct sl_set_size size; /* inner and training vertices of the batch in all groups */
    int64_t inner, outer;    /* vertices on this rank's group */
    int64_t entries;         /* adjacency entries on this rank's group */
    int64_t redundant;       /* adjacency entries in rows of outer vertices */
};

/* How graphs with needed rows are cut. A resumed run cuts them in the same way. */
struct sl_batches_tiles {
    int64_t whole, step, validation; /* row tiles of each graph; 0: the program chooses */
    int shares; /* shares that each hop's rows are cut into; 0: as many as ranks */
};

/* Batches that are drawn in each step. */
struct sl_drawn {
    bool draws; /* batches are being drawn in a step: a rank that fails stops the run itself */
    int64_t first_tag[2]; /* first tags of drawn batches: for all ranks, for the group; 0: none */
    int64_t agreed;       /* last block of draws that ranks agreed on; -1: none */
};

struct sl_batches {
    const struct sl_config *config;
    const struct sl_source *source; /* the whole graph, borrowed. Drawn batches and features of
                                       steps are read from it until the run ends */
    struct sl_runtime *rt;          /* view of all ranks */
    struct sl_pass *whole;          /* the whole graph on all ranks */
    const struct sl_rates *core;
    struct sl_batches_options options;
    struct sl_batches_tiles tiles;
    struct sl_model **model; // (models): a step trains all of them on its graph
    int models;
    bool independent;         /* groups train models of their own, each on the whole graph */
    struct sl_groups groups;  /* count 1: networks have no groups */
    struct sl_runtime own;    /* the view of this rank's group, if there are several */
    int64_t *workers;         // (ranks of the group)
    int64_t *set_cut;         // (sets + 1)
    int64_t *vertex;          // (set_cut[sets]): vertices as rows of the files, set after set
    int64_t *edges;           // (sets, sets): entries between clusters; NULL: not counted
    struct sl_set_size *size; // (sets): sizes in all groups
    int steps;                /* steps of an epoch */
    int count;                /* batches in memory */
    struct sl_drawn drawn;
    struct sl_batch *batch;     // (count)
    struct sl_batch validation; /* graph for evaluations between epochs; its network computes
                                   validation vertices alone. Zero: none */
    struct sl_batch *in_use;    /* the batch whose tags the views use; NULL: none */
    struct sl_places places;    /* memory of all batches, as large as the largest batch needs */
    int *orders;                // (layers): product orders
};

/* Return the tiles that --tiles sets, for all graphs. */
struct sl_batches_tiles sl_batches_tiles(const struct sl_config *config);

/* Find the groups. `whole` has a network; all batches take its product orders. Collective. Return
 * 0, SL_ERR_USAGE, SL_ERR_DATA or SL_ERR_SYSTEM, the same on all ranks; call sl_batches_destroy in
 * either case. */
int sl_batches_open(struct sl_batches *b, struct sl_runtime *rt, const struct sl_source *source,
                    const struct sl_config *config, struct sl_pass *whole,
                    const struct sl_rates *core);

/* Cut the vertices among groups and sets, and make all batches that are made once. Steps train the
 * models of `model` (models), a list that sl_batches_destroy frees. Several models, or
 * `independent`: the models are on this rank's group and train on the whole graph. Otherwise the
 * model is on all ranks. Collective; returns as sl_batches_open. */
int sl_batches_create(struct sl_batches *b, struct sl_model **model, int models, bool independent);

/* Free all networks, before their models. sl_batches_destroy does so, too. */
void sl_batches_clear(struct sl_batches *b);
void sl_batches_destroy(struct sl_batches *b);

/* Add the memory of the current batches on this rank to the plan of the whole graph. */
void sl_batches_plan(const struct sl_batches *b, struct sl_plan *plan);

/* Whether training reads the source: it draws batches anew, or reads features for each step. */
bool sl_batches_read_source(const struct sl_batches *b);

/* Return the network of a model in step `step` (0 … steps - 1) of an epoch (1, 2, …). Return NULL
 * if no group has a training vertex in the step. Draw the batch if needed; the call is collective
 * then, and a failure stops the run. Tags belong to the batch until sl_batches_leave. */
struct sl_network *sl_batches_network(struct sl_batches *b, int64_t epoch, int step, int model);

/* Return the network that computes validation vertices alone, or NULL if there is none. */
static inline struct sl_network *sl_batches_validation(struct sl_batches *b)
{
    return b->validation.pass.network.rt ? &b->validation.pass.network : NULL;
}

/* Return the view of the ranks that share a step's graph. */
static inline struct sl_runtime *sl_batches_own(struct sl_batches *b)
{
    return b->groups.count > 1 ? &b->own : b->rt;
}

/* Give the views their own tags back. No network is used until sl_batches_network. */
void sl_batches_leave(struct sl_batches *b);

#endif
