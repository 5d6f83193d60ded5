/* Products of a layer's matrices, which have a row per vertex, with its weights: on any grid. */
#ifndef SL_GRAPHS_PRODUCT_H
#define SL_GRAPHS_PRODUCT_H

#include "graphs/network.h"

/* Y = epilogue(H·W), or, where `h` is NULL, epilogue(X·W) with the sparse features, dropped out;
 * without an epilogue where it is NULL. */
void sl_product(struct sl_network *net, struct sl_layer *layer, const struct sl_matrix *h,
                const struct sl_dropout *drop, const struct sl_epilogue_tiles *epilogue,
                struct sl_matrix *y);

/* The gradients of the parameters, dW = Hᵀ·V, H as above, and db = column sums of G, whose rows are
 * multiplied by the layer's gradient factor; and, unless `y` is NULL, Y = epilogue(V·Wᵀ), which may
 * take the place of H and of the mask (NULL: none). V and G are float32. */
void sl_product_back(struct sl_network *net, struct sl_layer *layer, const struct sl_matrix *h,
                     const struct sl_dropout *drop, const struct sl_matrix *v,
                     const struct sl_matrix *g, const struct sl_epilogue_tiles *epilogue,
                     const struct sl_matrix *mask, struct sl_matrix *y);

/* The gradients of a layer's parameters, `blocks` x columns of the grid for each row tile: one
 * where that is 1, else one for each pair of column tiles of its input and its output, and those of
 * the bias. */
int sl_product_blocks(const struct sl_network *net, const struct sl_layer *layer);
int sl_product_create_gradients(struct sl_network *net, struct sl_layer *layer);

/* Their sum over the row tiles, on rank 0: the one tile that there is, or layer->gradient. */
struct sl_tile *sl_product_sum_gradients(struct sl_network *net, struct sl_layer *layer);

/* What travels among the ranks of a group: forward H, or else terms of H·W; backward V, or else H
 * and terms of V·Wᵀ. */
bool sl_product_sends_input(const struct sl_network *net, const struct sl_layer *layer);
bool sl_product_sends_gradient(const struct sl_network *net, const struct sl_layer *layer);

/* The most bytes that products take on the way. */
int64_t sl_product_bytes(const struct sl_network *net, const struct sl_layer *layer);

#endif
