/* Messages between ranks. Every rank runs the same submission loops; a message is inserted only on
 * its two ends. */
#ifndef SL_CORE_MESSAGE_H
#define SL_CORE_MESSAGE_H

#include "core/runtime.h"
#include "core/tile.h"

/* Send the current value of a tile from rank `from`, which must have it, to rank `to`. */
void sl_tile_send(struct sl_runtime *rt, struct sl_tile *tile, int from, int to);

/* Copy Y, a tile of one rank, to X, a tile with Y's shape on another rank. */
void sl_tile_send_into(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);

/* Write `rows`, without gaps between them, into a tile of another rank, as if this rank had
 * received it. */
void sl_tile_restore(struct sl_runtime *rt, struct sl_tile *tile, const void *rows);

/* Drop this rank's received copy of a tile, so that its memory can be used again. */
void sl_tile_drop(struct sl_runtime *rt, struct sl_tile *tile);

/* Return the traffic of this rank since `before`. */
struct sl_traffic sl_traffic_since(const struct sl_runtime *rt, const struct sl_traffic *before);

/* Return the sum of both; return a `count`-th of `sum`, rounded (all of it for count 0). */
struct sl_traffic sl_traffic_add(const struct sl_traffic *sum, const struct sl_traffic *more);
struct sl_traffic sl_traffic_mean(const struct sl_traffic *sum, int64_t count);

/* Set the group of each rank of `rt`, group (ranks). Traffic of all views and overlap.h then tell
 * messages between groups apart. NULL: there are no groups. */
void sl_message_groups(const struct sl_runtime *rt, const int64_t *group);

/* A stage: tiles that their owners send to another rank, which runs tasks on them and drops them. A
 * rank has memory for the tiles of `rt->stages` stages at a time (train: four, or one). Tasks work
 * on one stage while others travel. Stages are dropped in the order in which they were asked for. A
 * tile waits at its sender until the receiver asks for it. The sender is the owner, or a rank that
 * asked for the tile earlier and has not dropped it yet. A stage without tiles counts as a stage,
 * too. */
struct sl_stage {
    int count;
    struct sl_tile **tiles; // (count)
    const int *from;        // (count): rank that sends each tile; NULL: its owner
    bool sums;              /* the tiles are partial sums, which the traffic counts apart */
    int adjacency; /* the last `adjacency` tiles are sparse, which the traffic counts apart */
};

/* Ask for the tiles of a stage as soon as there is memory for them and the tasks on `after`
 * (count_after tiles) are done. With two stages or more, do not wait for the tasks on `after`. */
void sl_stage_ask(struct sl_runtime *rt, const struct sl_stage *stage, int count_after,
                  struct sl_tile *const *after);

/* Drop the tiles of a stage after the tasks on them. This lets the stage that is `rt->stages` later
 * come. */
void sl_stage_drop(struct sl_runtime *rt, const struct sl_stage *stage);

/* Send a tile of a stage to rank `to`, synchronously. The sender calls this, the receiver
 * sl_stage_ask. */
void sl_stage_send(struct sl_runtime *rt, struct sl_tile *tile, int to);

/* Free the tokens of stages, within sl_runtime_stop. */
void sl_stage_stop(struct sl_runtime *rt);

#endif
