/* Messages between ranks. Every rank runs the same submission loops; a message is inserted only on
 * its two ends. */
#ifndef SL_CORE_MESSAGE_H
#define SL_CORE_MESSAGE_H

#include "core/runtime.h"
#include "core/tile.h"

/* Sends the current value of a tile from one rank, which must have it, to another. */
void sl_tile_send(struct sl_runtime *rt, struct sl_tile *tile, int from, int to);

/* Y, of one rank, becomes X, a tile of the same shape of another rank. */
void sl_tile_send_into(struct sl_runtime *rt, struct sl_tile *x, struct sl_tile *y);

/* Writes a tile of another rank, without gaps between its rows, as if it had been received. */
void sl_tile_restore(struct sl_runtime *rt, struct sl_tile *tile, const void *rows);

/* Drops the copy of a tile that this rank received; its memory can then be used again. */
void sl_tile_drop(struct sl_runtime *rt, struct sl_tile *tile);

/* What this rank has sent and received since its traffic was `before`. */
struct sl_traffic sl_traffic_since(const struct sl_runtime *rt, const struct sl_traffic *before);

/* Return the sum of both; return a `count`-th of it, rounded (all of it for 0). */
struct sl_traffic sl_traffic_add(const struct sl_traffic *sum, const struct sl_traffic *more);
struct sl_traffic sl_traffic_mean(const struct sl_traffic *sum, int64_t count);

/* Say which group each rank of `rt` is in (ranks), so that messages between groups are told apart
 * in the traffic of all views and in overlap.h. NULL: there are none. */
void sl_message_groups(const struct sl_runtime *rt, const int64_t *group);

/* A stage: tiles that their owners send to another rank, which runs tasks on them and drops them. A
 * rank has memory for the tiles of `rt->stages` stages at a time (train: four, or one). Tasks work
 * on one stage while the others travel. Stages are dropped in the order in which they were asked
 * for. A tile waits at its sender until the receiver asks for it. The sender is the owner, or a
 * rank that asked for the tile earlier and has not dropped it yet. A stage without tiles counts as
 * a stage, too, and its room stays empty. */
struct sl_stage {
    int count;
    struct sl_tile **tiles; // (count)
    const int *from;        // (count): the rank that sends each; NULL: its owner
    bool sums;              /* parts of sums, which are counted as such */
    int adjacency;          /* tiles of it, the last ones, which are counted as such */
};

/* Asks for the tiles as soon as there is memory for them and the tasks on `after` (count_after
 * tiles) are done; with two stages or more, it does not wait for tasks. */
void sl_stage_ask(struct sl_runtime *rt, const struct sl_stage *stage, int count_after,
                  struct sl_tile *const *after);

/* Drops them after the tasks on them; before this, the next stage but `rt->stages` cannot come. */
void sl_stage_drop(struct sl_runtime *rt, const struct sl_stage *stage);

/* The sender's part of it, for one tile. */
void sl_stage_send(struct sl_runtime *rt, struct sl_tile *tile, int to);

/* Part of sl_runtime_stop. */
void sl_stage_stop(struct sl_runtime *rt);

#endif
