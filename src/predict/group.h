/* Messages inside a group of ranks, before there is the group. A group trains on a selection
 * (data/select.h), cut among its ranks by some distribution. */
#ifndef SL_PREDICT_GROUP_H
#define SL_PREDICT_GROUP_H

#include "predict/scenario.h"

/* Options that all groups have in common. */
struct sl_group_options {
    const struct sl_training *training;
    struct sl_partition_options cuts; /* for the ranks of a group */
    const struct sl_rates *rates, *core;
    const struct sl_distribution_name *distribution; /* NULL: any */
    bool parted; /* the parts of --partition are those of the groups, not of their ranks */
    int refresh; /* copies of other groups' vertices come after so many layers; 0: never */
};

/* A training step inside a group. Gradients of parameters go to the group's first rank, and
 * parameters come back. */
struct sl_group_prediction {
    const struct sl_distribution_kind *kind; /* NULL: nothing travels inside */
    struct sl_grid grid;
    char name[32];
    double bytes, messages; /* received by all ranks together */
    double seconds;         /* messages that no work hides, on the rank with most */
    double rows, outer; /* on all ranks: rows of vertices, and of other groups' vertices; clones,
                           where vertices have clones */
};

/* List predictions of all distributions that the group can have, or of those with the name that the
 * options say. The list may be empty; it is the caller's. `rt` is one rank. Return 0, SL_ERR_SYSTEM
 * or SL_ERR_DATA. */
int sl_group_predict(struct sl_runtime *rt, const struct sl_source *selection,
                     const struct sl_group_options *options, struct sl_group_prediction **list,
                     int *count);

#endif
