/* Broadcasts and reductions: trees of messages and tasks in a fixed order. */
#ifndef SL_GRAPHS_COLLECTIVE_H
#define SL_GRAPHS_COLLECTIVE_H

#include "core/message.h"
#include "core/task.h"

/* Broadcast a tile from its owner to the ranks first … first + count - 1 along a binomial tree. The
 * owner is one of these ranks. */
void sl_broadcast(struct sl_runtime *rt, struct sl_tile *tile, int first, int count);

/* The same from `root`, one of these ranks, which has the tile. */
void sl_broadcast_from(struct sl_runtime *rt, struct sl_tile *tile, int root, int first, int count);

/* One addition of the binary tree over `count` terms: term `to` += term `from`. Start with {0};
 * sl_reduce_next returns false after the last addition. */
struct sl_reduce_step {
    int to, from;
};
bool sl_reduce_next(struct sl_reduce_step *step, int count);

/* tiles[0] = Σ tiles[t·stride], added pairwise in a binary tree over t: the order depends on the
 * tiles alone, not on who owns them. The other tiles hold partial sums afterwards. `add` submits y
 * += x. Idle tiles are left out, as if there were fewer; the first tile is not idle.
 */
typedef void sl_add_function(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);
void sl_reduce(struct sl_runtime *rt, struct sl_tile *tiles, int count, int stride,
               sl_add_function *add);

/* Submit sums[t] += stage->tiles[t], float32. Ask for the stage and drop it. */
void sl_add_stage(struct sl_runtime *rt, const struct sl_stage *stage, struct sl_tile *const *sums);

#endif
