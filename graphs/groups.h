/* Groups of ranks that train one model together. Each group has a view and a graph of its own, and
 * trains a network on it. A sum is made inside each group first, then over the groups, in a fixed
 * order. Only sums, and values that follow from sums, travel between groups. */
#ifndef SL_GRAPHS_GROUPS_H
#define SL_GRAPHS_GROUPS_H

#include "graphs/collective.h"

struct sl_groups {
    struct sl_runtime *all; /* the ranks of all groups, which hold the model */
    struct sl_runtime *own; /* the ranks of this rank's group, which hold its network */
    int count, index;       /* number of groups; this rank's group */
    int *first; // (count + 1): group g has the ranks first[g] … first[g + 1] - 1 of `all`
};

/* Describe the groups that the views `all` and `own` make: sl_view_split(all, group) made `own`.
 * Collective in `all`. Return 0 or SL_ERR_SYSTEM, the same on all ranks; sl_groups_destroy in
 * either case. SL_ERR_USAGE: ranks of a group are not neighbours. */
int sl_groups_create(struct sl_groups *groups, struct sl_runtime *all, struct sl_runtime *own,
                     int group);
void sl_groups_destroy(struct sl_groups *groups);

/* Sums over groups of tiles with one shape. */
struct sl_group_sums {
    struct sl_tile *of; // (count): one for each group; of[0] holds the total
};

/* Make the sums of tiles like `summed`, a tile of this group. All have one shape; each has its
 * group's owner and distance between rows. Collective in `all`. Return 0 or SL_ERR_SYSTEM;
 * sl_group_sums_destroy in either case, before the summed tiles are destroyed. */
int sl_group_sums_create(const struct sl_groups *groups, struct sl_group_sums *sums,
                         const struct sl_tile *summed);
void sl_group_sums_destroy(const struct sl_groups *groups, struct sl_group_sums *sums);

/* Return the bytes of other groups' tiles that come to this rank for a sum. */
int64_t sl_group_sums_bytes(const struct sl_groups *groups, const struct sl_group_sums *sums);

/* Submit the sum of `tile`, the group's own, over the groups; `add` submits y += x. Return the
 * total, a tile of `all` on the owner in group 0. The sum overwrites the tiles of the groups. */
struct sl_tile *sl_groups_sum(const struct sl_groups *groups, struct sl_group_sums *sums,
                              struct sl_tile *tile, sl_add_function *add);

/* Broadcast a tile of `all`, whose owner is in group 0, to all ranks: one message to each other
 * group, then inside the groups. */
void sl_groups_broadcast(const struct sl_groups *groups, struct sl_tile *tile);

#endif
