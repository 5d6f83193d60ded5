/* What an epoch trains on. The ranks are one group or several. The vertices of a group are cut into
 * sets. A step trains on one graph in each group: some sets and what they depend on. Gradients meet
 * once a step. */
#ifndef SL_BATCHES_BATCHES_H
#define SL_BATCHES_BATCHES_H

#include "batches/pass.h"
#include "data/select.h"
#include "predict/plan.h"
#include "recipe/batches_options.h"

/* Inner vertices of a set, and training vertices with labels among them. */
struct sl_set_size {
    int64_t inner, train;
};

/* A step's graph on this rank's group, and the sets that it comes from. */
struct sl_batch {
    struct sl_pass pass;
    struct sl_network *more; // (models - 1): of the models after the first one
    struct sl_copies copies; /* of other groups' vertices, with --preload-hops */
    struct sl_tile weights;  /* of the whole graph, as the group's view sees them */
    int64_t version;         /* of what was drawn; -1: nothing yet */
    int64_t next_tag[2];     /* of its own, for all ranks and for the group's; while the batch is in
                                use, those of the views */
    struct sl_set_size size; /* of its sets, in all groups */
    int64_t inner, outer;    /* vertices */
    int64_t entries;         /* of the adjacency */
    int64_t redundant;       /* of them, in rows of outer vertices */
};

/* How the graphs of a run with needed rows are cut. A run that goes on cuts them alike. */
struct sl_batches_tiles {
    int64_t whole, step, validation; /* row tiles of each graph; 0: chosen */
    int shares;                      /* runs of rows have so many shares of each hop; 0: ranks */
};

struct sl_batches {
    const struct sl_config *config;
    const struct sl_source *source; /* the whole graph; borrowed. Batches that are drawn anew, and
                                       features of steps, are read from it to the end */
    struct sl_runtime *rt;          /* all ranks */
    struct sl_pass *whole;          /* on all ranks */
    const struct sl_rates *core;
    struct sl_batches_options how;
    struct sl_batches_tiles tiles;
    struct sl_model **model; // (models): that a step trains on each graph
    int models;
    bool independent;           /* groups train models of their own, each on the whole graph */
    struct sl_groups groups;    /* count 1: no network has it */
    struct sl_runtime own;      /* the view of this rank's group, if there are several */
    int64_t *workers;           // (ranks of the group)
    int64_t *set_cut;           // (sets + 1)
    int64_t *vertex;            // (set_cut[sets]): rows of the files, set after set
    int64_t *edges;             // (sets, sets): entries between clusters; NULL: not counted
    struct sl_set_size *size;   // (sets): in all groups
    int steps;                  /* of an epoch */
    int count;                  /* batches in memory */
    bool draws;                 /* a step draws a batch: a rank that fails stops the run itself */
    int64_t first_tag[2];       /* of batches that are drawn: all ranks' and the group's; 0: none */
    int64_t agreed;             /* block of draws that ranks have agreed on; -1: none */
    struct sl_batch *batch;     // (count)
    struct sl_batch validation; /* no step: for evaluations between epochs, whose network reads
                                   rows of validation vertices alone; zero: there is none */
    struct sl_batch *in_use;    /* its tags are taken; NULL: none */
    struct sl_places places;    /* of all batches: as large as the largest one needs */
    int *orders;                // (layers): of products
};

/* Return the tiles that --tiles says, for all graphs. */
struct sl_batches_tiles sl_batches_tiles(const struct sl_config *config);

/* Find the groups. `whole` has its network, whose products' orders all batches take. Collective.
 * Return 0, SL_ERR_USAGE, SL_ERR_DATA or SL_ERR_SYSTEM, the same on all ranks; sl_batches_destroy
 * in either case. */
int sl_batches_open(struct sl_batches *b, struct sl_runtime *rt, const struct sl_source *source,
                    const struct sl_config *config, struct sl_pass *whole,
                    const struct sl_rates *core);

/* Cut the vertices among groups and sets, and make all batches that are made once, to train these
 * models, whose list they free. Several models, or `independent`: on the ranks of this rank's
 * group, on the whole graph. Else the model has all ranks. Collective; returns as sl_batches_open.
 */
int sl_batches_create(struct sl_batches *b, struct sl_model **model, int models, bool independent);

/* Free all networks, which are on the models. Part of sl_batches_destroy. */
void sl_batches_clear(struct sl_batches *b);
void sl_batches_destroy(struct sl_batches *b);

/* Add what the batches in memory take on this rank to the plan of the whole graph. */
void sl_batches_plan(const struct sl_batches *b, struct sl_plan *plan);

/* Whether training reads the source: batches are drawn anew, or features are read. */
bool sl_batches_read_source(const struct sl_batches *b);

/* Return the network of a model in step `step` (0 … steps - 1) of an epoch (1, 2, …), or NULL where
 * no group has a training vertex in it. Make it if need be: collective then. Stop the run where
 * that fails. Until sl_batches_leave, what is made is of the batch. */
struct sl_network *sl_batches_network(struct sl_batches *b, int64_t epoch, int step, int model);

/* Return the network that evaluates validation vertices alone; NULL: there is none. */
static inline struct sl_network *sl_batches_validation(struct sl_batches *b)
{
    return b->validation.pass.network.rt ? &b->validation.pass.network : NULL;
}

/* The ranks that share a step's graph. */
static inline struct sl_runtime *sl_batches_own(struct sl_batches *b)
{
    return b->groups.count > 1 ? &b->own : b->rt;
}

/* Say that the network is not used until it is asked for again. */
void sl_batches_leave(struct sl_batches *b);

#endif
