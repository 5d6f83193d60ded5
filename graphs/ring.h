/* Broadcasts of tiles in a ring: the sender of each tile to each rank. Every rank of a ring has
 * tiles that the other ranks need, and all ranks work on these tiles in turn. A tile comes from its
 * owner, or from a rank that received the tile before. */
#ifndef SL_GRAPHS_RING_H
#define SL_GRAPHS_RING_H

#include <stdbool.h>

#include "core/names.h"
#include "core/runtime.h"

/* chain: from each rank to the next; tree: along a binomial tree; direct: from the owner to each.
 */
#define SL_BROADCAST_FORMS(ENTRY)     \
    ENTRY(SL_BROADCAST_RING, "chain") \
    ENTRY(SL_BROADCAST_TREE, "tree")  \
    ENTRY(SL_BROADCAST_DIRECT, "direct")
enum sl_broadcast_form { SL_BROADCAST_FORMS(SL_CHOICE_CONSTANT) };

/* A ring of `count` ranks, `stride` apart: first, first + stride, … Position 0 of a tile is its
 * owner. Position p is the rank p before the owner, round. The rank at position p works on the tile
 * p-th, because each rank starts with the tiles of the rank after it. */
struct sl_ring {
    enum sl_broadcast_form form;
    int first, stride, count;
    int reach; /* a rank still has a tile when the next `reach` positions ask for it */
};

int sl_ring_rank(const struct sl_ring *ring, int owner, int position);
int sl_ring_position(const struct sl_ring *ring, int owner, int rank);

/* Return the position that sends a tile to position `position` > 0. needs(context, rank) returns
 * whether a rank needs the tile; NULL: all ranks do. */
typedef bool sl_ring_needs(const void *context, int rank);
int sl_ring_parent(const struct sl_ring *ring, int owner, int position, sl_ring_needs *needs,
                   const void *context);

/* Return the last position that may get tiles from `position`; `position` itself if there is none.
 */
int sl_ring_last(const struct sl_ring *ring, int position);

#endif
