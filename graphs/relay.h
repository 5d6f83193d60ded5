/* Who sends whom, where every rank of a ring has tiles that the others need and all work on them
 * in turn: from the owner, or handed on by those that have it. */
#ifndef SL_GRAPHS_RELAY_H
#define SL_GRAPHS_RELAY_H

#include <stdbool.h>

#include "core/runtime.h"

enum sl_relay_form {
    SL_RELAY_CHAIN,  /* from each to the next */
    SL_RELAY_TREE,   /* along a binomial tree */
    SL_RELAY_DIRECT, /* from the owner to each */
};

/* The form of that name: chain, tree, direct. */
enum sl_relay_form sl_relay_find(const char *name);

/* `count` ranks, `stride` apart: first, first + stride, … Position 0 of a tile is its owner;
 * position p the rank p before it, round, which works on it p-th: the owner comes to the tiles of
 * the rank after it first. */
struct sl_relay {
    enum sl_relay_form form;
    int first, stride, count;
    int reach; /* a rank still has a tile when those so many positions after it ask for theirs */
};

int sl_relay_rank(const struct sl_relay *relay, int owner, int position);
int sl_relay_position(const struct sl_relay *relay, int owner, int rank);

/* The position that sends a tile to this one, which is not 0. needs(context, rank): whether that
 * rank wants it. */
typedef bool sl_relay_needs(const void *context, int rank);
int sl_relay_parent(const struct sl_relay *relay, int owner, int position, sl_relay_needs *needs,
                    const void *context);

/* The last position that may get tiles from this one; `position` itself where none may. */
int sl_relay_last(const struct sl_relay *relay, int position);

#endif
