/* What travels inside a group of ranks, before there is the group. A group trains on a selection
 * (data/select.h), cut among its ranks by some distribution. */
#ifndef SL_PREDICT_GROUP_H
#define SL_PREDICT_GROUP_H

#include "predict/scenario.h"

/* A training step inside groups of equally many ranks. Gradients of parameters go to each group's
 * first rank, and parameters come back. */
struct sl_group_prediction {
    const struct sl_distribution_kind *kind; /* of all groups; NULL: of none yet */
    struct sl_grid grid;
    char name[32];
    double bytes, messages; /* that all ranks of all groups receive */
    double seconds;         /* of messages that no work hides, of the rank with most */
};

/* Add a group to *out, which is zero before the first group. `distribution` (a name of
 * --distribution; NULL: any): the first group takes its fastest grid; other groups take the grid of
 * the first one. `cuts`: for the ranks of the group. `refresh`: copies of other groups' vertices
 * are refreshed after so many layers (0: never). Vertex-cuts are not predicted. `rt` is one rank.
 * Return 0, SL_ERR_USAGE where the ranks have no such distribution, SL_ERR_SYSTEM or SL_ERR_DATA.
 */
int sl_group_predict(struct sl_runtime *rt, const struct sl_source *selection,
                     const struct sl_training *training, const struct sl_partition_options *cuts,
                     const struct sl_rates *rates, const struct sl_rates *core, int refresh,
                     const char *distribution, struct sl_group_prediction *out);

#endif
