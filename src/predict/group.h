/* What travels inside a group of ranks, before there is the group. A group trains on a selection
 * (data/select.h), cut among its ranks by some distribution. */
#ifndef SL_PREDICT_GROUP_H
#define SL_PREDICT_GROUP_H

#include "predict/scenario.h"

/* What all groups have in common. */
struct sl_group_options {
    const struct sl_training *training;
    struct sl_partition_options cuts; /* for the ranks of a group */
    const struct sl_rates *rates, *core;
    const char *distribution; /* a name of --distribution; NULL: the fastest */
    int refresh; /* copies of other groups' vertices come after so many layers; 0: never */
};

/* A training step inside groups of equally many ranks. Gradients of parameters go to each group's
 * first rank, and parameters come back. */
struct sl_group_prediction {
    const struct sl_distribution_kind *kind; /* of all groups; NULL: of none yet */
    struct sl_grid grid;
    char name[32];
    bool none;              /* some group cannot have it */
    double bytes, messages; /* that all ranks of all groups receive */
    double seconds;         /* of messages that no work hides, of the rank with most */
    double rows, outer;     /* of the last group, on all its ranks: rows of vertices, and of other
                               groups' vertices; clones, where vertices have clones */
};

/* Add a group to *out[0], without clones, and to *out[1], a vertex-cut, which are zero before the
 * first group. The first group takes its fastest grid; other groups take the grid of the first one.
 * `rt` is one rank. Return 0, SL_ERR_USAGE where the ranks have no such distribution, SL_ERR_SYSTEM
 * or SL_ERR_DATA. */
int sl_group_predict(struct sl_runtime *rt, const struct sl_source *selection,
                     const struct sl_group_options *options, struct sl_group_prediction *out[2]);

#endif
