/* Sums over edges that walks make: gradients of the weights of edge features. The tasks of a row
 * tile write one tile, one after the other, so that row tiles do not wait for each other. */
#ifndef SL_GRAPHS_EDGE_SUMS_H
#define SL_GRAPHS_EDGE_SUMS_H

#include "graphs/network.h"

/* Tiles of this rank's row tiles, and as many of partial sums for other ranks. */
struct sl_edge_sums {
    int first, own;       /* this rank's row tiles: `own` from `first` on */
    int count;            /* 2 · own, at least 2; 0: the network never goes back */
    struct sl_tile *tile; // (count) tiles (rows, cols), on this rank: they never travel
    bool *met;            // (count): the tile has a sum of this walk
};

/* Make the tiles of a network that goes back. Return 0 or SL_ERR_SYSTEM; sl_edge_sums_destroy in
 * either case. */
int sl_edge_sums_create(struct sl_network *net, struct sl_edge_sums *sums, int64_t rows,
                        int64_t cols);
void sl_edge_sums_destroy(struct sl_edge_sums *sums);

/* Begin a walk. */
void sl_edge_sums_begin(struct sl_edge_sums *sums);

/* Return the tile for the next task of row tile `i`; `part`: of partial sums for another rank. Set
 * *accumulate to whether the task adds to the tile, or else writes it. */
struct sl_tile *sl_edge_sums_at(struct sl_edge_sums *sums, int i, bool part, bool *accumulate);

/* End a walk. Submit the tasks that leave all sums in the tiles of this rank's row tiles whose
 * gradients of the layer are not idle. Partial sums are added to the first tile. A tile without a
 * sum becomes 0. */
void sl_edge_sums_end(struct sl_network *net, const struct sl_layer *layer,
                      struct sl_edge_sums *sums);

/* Return the tile of this rank's row tile `i`. */
static inline struct sl_tile *sl_edge_sums_of(const struct sl_edge_sums *sums, int i)
{
    return &sums->tile[i - sums->first];
}

/* The first member of what a GINE or R-GCN layer owns (sl_layer.own). Walks of these layers
 * multiply moved rows by weights. */
struct sl_edge_layer {
    struct sl_tile weight; // (rows, cols), on this rank: it never travels; no rows: there is none
    struct sl_edge_sums sums; /* its gradient */
    int64_t *d_cut;           // (columns + 1): the cut of D, the gradient of the layer's input
};

/* Plan a layer that owns an edge layer, and make the weight if `weighs`. D is cut as the input. In
 * a first layer nobody reads D: each column of ranks has one column, which stays 0. Return 0 or
 * SL_ERR_SYSTEM; sl_edge_layer_destroy in either case. */
int sl_edge_layer_plan(struct sl_network *net, struct sl_layer *layer, int64_t rows, int64_t cols,
                       bool weighs);
void sl_edge_layer_destroy(struct sl_layer *layer);
struct sl_layer_memory sl_edge_layer_memory(const struct sl_layer *layer);

/* Submit the walk back from G, whose reducer has the parameters `pass`. Return D. */
struct sl_matrix *sl_edge_layer_back(struct sl_network *net, struct sl_layer *layer,
                                     const struct sl_matrix *g, const void *pass);

#endif
