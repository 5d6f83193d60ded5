/* Seconds of a training step on a group's graph, by the number of hops that are preloaded. */
#ifndef SL_BATCHES_GROUP_EPOCH_H
#define SL_BATCHES_GROUP_EPOCH_H

#include "core/rates.h"
#include "data/select.h"
#include "recipe/batches_options.h"

/* The rows, entries and layers of a group's step, for each number of hops. */
struct sl_group_epoch {
    struct sl_layer_list model;
    int layers;  /* layers that aggregate and count in hops */
    int most;    /* the most hops: `layers`, but at least 1 */
    bool cached; /* the first layer's sums are made before the first epoch */
    bool read; /* the first layer's sums are read from the whole graph's: the layer counts in no hop
                */
    double size;           /* bytes of a number */
    double features;       /* entries of a vertex in a sparse input; 0: the input is dense */
    double kept;           /* the share of input entries that dropout keeps */
    int64_t inner;         /* inner vertices */
    int64_t inner_entries; /* adjacency entries in rows of inner vertices */
    int64_t *rows;         // (most + 1): vertices at most h hops away; without hops, all vertices
    int64_t *entries;      // (most + 1): adjacency entries in rows fewer than h hops away
};

/* List the layers of the model. Return 0, SL_ERR_USAGE or SL_ERR_SYSTEM; call sl_group_epoch_close
 * in either case. */
int sl_group_epoch_open(struct sl_group_epoch *e, const struct sl_source *source,
                        const struct sl_config *config, const struct sl_batches_options *options);
void sl_group_epoch_close(struct sl_group_epoch *e);

/* Count the vertices and entries of a selection of all hops. If the selection has no hops, each
 * layer computes all rows. */
void sl_group_epoch_count(struct sl_group_epoch *e, const struct sl_selection *all);

/* Set `features` for the rows `row` (rows) of the files, which the first layer computes; NULL: all
 * rows. */
void sl_group_epoch_sum_features(struct sl_group_epoch *e, const struct sl_source *source,
                                 const int32_t *row, int64_t rows);

/* How many times rows of other groups, or their gradients, travel in a step, and the bytes of a
 * vertex in all these times. Every h-th layer that aggregates is refreshed, except the last one. */
struct sl_group_refreshed {
    int times;
    double bytes;
};
struct sl_group_refreshed sl_group_epoch_refreshed(const struct sl_group_epoch *e, int h);

int64_t sl_group_epoch_outer(const struct sl_group_epoch *e, int h);

/* The ranks of a group, and how many ranks hold a vertex's row on average. */
struct sl_group_ranks {
    double ranks, clones;
};

/* Return the seconds that a step computes, with h hops. */
double sl_group_epoch_computing(const struct sl_group_epoch *e, const struct sl_rates *rates, int h,
                                struct sl_group_ranks by);

/* A group among others of as many ranks. */
struct sl_group_among {
    double outer; /* rows of outer vertices */
    double ranks, groups;
    double columns; /* columns of its grid: a rank receives rows from ranks in its own column */
};

/* Return the seconds of messages between groups in a step, with h hops. */
double sl_group_epoch_messages(const struct sl_group_epoch *e, const struct sl_link *link, int h,
                               const struct sl_group_among *among);

#endif
