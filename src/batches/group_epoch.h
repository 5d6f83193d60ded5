/* Seconds of a training step on a group's graph, by the number of hops that are preloaded. */
#ifndef SL_BATCHES_GROUP_EPOCH_H
#define SL_BATCHES_GROUP_EPOCH_H

#include "core/rates.h"
#include "data/select.h"
#include "recipe/batches_options.h"

/* What a group has with each number of hops, and what computes on it. */
struct sl_group_epoch {
    struct sl_layer_list model;
    int layers;            /* that aggregate, of those that count in hops */
    int most;              /* the most hops: as many, or 1 */
    bool cached;           /* the first layer has its sums from before the first epoch, */
    bool read;             /* and from the whole graph: it counts in no hop */
    double size;           /* bytes of a number */
    double features;       /* entries of a vertex in a sparse input; 0: a dense one */
    double kept;           /* of them, with dropout */
    int64_t inner;         /* vertices */
    int64_t inner_entries; /* of the adjacency, in their rows */
    int64_t *rows;         // (most + 1): at most h hops away, or those that a layer before computes
    int64_t *entries;      // (most + 1): in rows that are fewer hops away
};

/* List the layers. Return 0, SL_ERR_USAGE or SL_ERR_SYSTEM; sl_group_epoch_close in either case. */
int sl_group_epoch_open(struct sl_group_epoch *e, const struct sl_source *source,
                        const struct sl_config *config, const struct sl_batches_options *how);
void sl_group_epoch_close(struct sl_group_epoch *e);

/* Take the vertices and entries of a selection of all hops. Where it has no hops, each layer
 * computes all rows. */
void sl_group_epoch_count(struct sl_group_epoch *e, const struct sl_selection *all);

/* Whether a layer aggregates, and counts in hops. */
bool sl_group_epoch_counts(const struct sl_group_epoch *e, const struct sl_layer_shape *layer);

/* How often rows of other groups travel in a step, gradients included, after every h-th layer. */
int sl_group_epoch_times(const struct sl_group_epoch *e, int h);

int64_t sl_group_epoch_outer(const struct sl_group_epoch *e, int h);

/* Bytes of a layer's parameters. */
double sl_group_epoch_weight_bytes(const struct sl_layer_shape *layer);

/* The ranks of a group, and the rows that they have of a vertex. */
struct sl_group_ranks {
    double ranks, clones;
};

/* Return the seconds of computing, with h hops. */
double sl_group_epoch_computing(const struct sl_group_epoch *e, const struct sl_rates *rates, int h,
                                struct sl_group_ranks by);

/* A group among others of as many ranks. */
struct sl_group_among {
    double outer; /* its rows of outer vertices */
    double ranks, groups;
    double columns; /* of its grid: a rank gets rows of ranks that have its column */
};

/* Return the seconds of messages between groups, with h hops. */
double sl_group_epoch_messages(const struct sl_group_epoch *e, const struct sl_link *link, int h,
                               const struct sl_group_among *among);

#endif
