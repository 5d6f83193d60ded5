/* Broadcasts and reductions: trees of messages and tasks in a fixed order. */
#ifndef SL_GRAPHS_COLLECTIVE_H
#define SL_GRAPHS_COLLECTIVE_H

#include "core/message.h"
#include "core/task.h"

/* Broadcast a tile from its owner to the ranks first … first + count - 1 along a binomial tree. The
 * owner is among them. */
void sl_broadcast(struct sl_runtime *rt, struct sl_tile *tile, int first, int count);

/* Broadcast a tile from `root`, which has the tile, to the ranks first … first + count - 1. The
 * root is one of them. */
void sl_broadcast_from(struct sl_runtime *rt, struct sl_tile *tile, int root, int first, int count);

/* An addition of the binary tree over `count` terms: term `to` += term `from`. Start with {0};
 * sl_reduce_next sets the next addition, and returns false after the last one. */
struct sl_reduce_step {
    int to, from;
};
bool sl_reduce_next(struct sl_reduce_step *step, int count);

/* Submit tiles[0] = Σ tiles[t·stride], added pairwise in a binary tree over t: the order depends on
 * the tiles alone, not on who owns them. The other tiles hold partial sums afterwards. `add`
 * submits y += x. Idle tiles are left out, as if there were fewer; the first tile is not idle. */
typedef void sl_add_function(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);
void sl_reduce(struct sl_runtime *rt, struct sl_tile *tiles, int count, int stride,
               sl_add_function *add);

/* Submit sums[t] += stage->tiles[t], float32. Ask for the stage and drop it. */
void sl_add_stage(struct sl_runtime *rt, const struct sl_stage *stage, struct sl_tile *const *sums);

#endif
