/* The rows that a layer computes. A graph that a group has preloaded has inner vertices, which
 * count for the loss, and vertices up to h hops away, on which the inner ones depend. A row tile
 * has the hop of its nearest row (sl_distribution.hop). An output of layer l is needed as far as
 * layers after l read it: one hop further for each of them that aggregates. Tiles beyond are idle
 * (core/tile.h): no task writes them. Idle tiles of matrices with a row per vertex are zero, so
 * that readers need not know about hops. */
#ifndef SL_GRAPHS_REACH_H
#define SL_GRAPHS_REACH_H

#include "graphs/network.h"

/* Set `hops` and `read` of all layers. Row tiles beyond them, of gradients of parameters and of
 * metrics, are idle from now on: sums leave them out. */
void sl_reach_plan(struct sl_network *net);

/* Return how many hops away the furthest rows are that block `block` of a layer's gradients sums,
 * on a grid of `columns` columns. Where the product comes first, neighbours' weights and their
 * biases have the rows of the input, and so have weights of edge features; the bias is in their
 * tile. All others have the rows of the output. */
int sl_reach_of_gradient(const struct sl_layer *layer, int block, int columns);

/* Make tiles of one layer's gradients idle if they sum no needed row, and all others active. Call
 * it once the gradients have their place. */
void sl_reach_gradients(const struct sl_network *net, const struct sl_layer *layer);

/* Return how many hops away the furthest rows of its input are that a layer reads. */
int sl_reach_of_input(const struct sl_layer *layer);

/* Return the rows that an aggregation of a layer reads and needs: forward, rows of its input or of
 * their products; back, rows of its output's gradient. Where no hops are known: all rows. */
struct sl_counted_walk sl_reach_of_walk(const struct sl_layer *layer,
                                        const struct sl_distribution *d, bool transposed);

/* Submit zeros for row tiles that are over `hops` hops away, and make these tiles idle. Make all
 * other tiles active. */
void sl_reach_set(struct sl_network *net, const struct sl_matrix *matrix, int hops);

/* Make the row tiles of `matrix` idle, and submit zeros for them, that are idle in `from`. Make all
 * other tiles active. */
void sl_reach_copy(struct sl_network *net, const struct sl_matrix *from,
                   const struct sl_matrix *matrix);

#endif
