/* Who sends tiles to whom in a ring. Every rank of a ring has tiles that the other ranks need, and
 * all ranks work on these tiles in turn. A tile comes from its owner, or from a rank that received
 * the tile before. */
#ifndef SL_GRAPHS_RELAY_H
#define SL_GRAPHS_RELAY_H

#include <stdbool.h>

#include "core/runtime.h"

enum sl_relay_form {
    SL_RELAY_CHAIN,  /* from each to the next */
    SL_RELAY_TREE,   /* along a binomial tree */
    SL_RELAY_DIRECT, /* from the owner to each */
};

/* Return the form of that name: chain, tree, direct. */
enum sl_relay_form sl_relay_find(const char *name);

/* A ring of `count` ranks, `stride` apart: first, first + stride, … Position 0 of a tile is its
 * owner. Position p is the rank p before the owner, round. The rank at position p works on the tile
 * p-th, because each rank starts with the tiles of the rank after it. */
struct sl_relay {
    enum sl_relay_form form;
    int first, stride, count;
    int reach; /* a rank still has a tile when the next `reach` positions ask for the tile */
};

int sl_relay_rank(const struct sl_relay *relay, int owner, int position);
int sl_relay_position(const struct sl_relay *relay, int owner, int rank);

/* Return the position that sends a tile to position `position` > 0. needs(context, rank): whether a
 * rank needs the tile; NULL: all ranks do. */
typedef bool sl_relay_needs(const void *context, int rank);
int sl_relay_parent(const struct sl_relay *relay, int owner, int position, sl_relay_needs *needs,
                    const void *context);

/* Return the last position that may get tiles from `position`; `position` itself if there is none.
 */
int sl_relay_last(const struct sl_relay *relay, int position);

#endif
