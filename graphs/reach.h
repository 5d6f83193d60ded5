/* Which rows a layer computes. A graph that a group has preloaded has inner vertices, which count
 * for the loss, and vertices up to h hops away, on which the inner ones depend. A row tile has the
 * hop of its nearest row (sl_distribution.hop). An output of layer l is needed as far as layers
 * after l read it: one hop further for each of them that aggregates. Tiles beyond are idle
 * (core/tile.h): no task writes them. Idle tiles of matrices with a row per vertex are zero, so
 * that a reader needs not know. */
#ifndef SL_GRAPHS_REACH_H
#define SL_GRAPHS_REACH_H

#include "graphs/network.h"

/* Set `hops` and `read` of all layers. Row tiles beyond them, of gradients of parameters and of
 * metrics, are idle from now on: sums leave them out. */
void sl_reach_plan(struct sl_network *net);

/* The same for the gradients of one layer's parameters alone, once their place was taken. */
void sl_reach_gradients(const struct sl_network *net, const struct sl_layer *layer);

/* How many hops away the furthest rows are that a layer reads of its input. */
int sl_reach_of_input(const struct sl_layer *layer);

/* Submit zeros for row tiles that are over `hops` hops away, and let them be idle; the others are
 * not. */
void sl_reach_set(struct sl_network *net, const struct sl_matrix *matrix, int hops);

/* The same rows as of another matrix. */
void sl_reach_copy(struct sl_network *net, const struct sl_matrix *from,
                   const struct sl_matrix *matrix);

#endif
