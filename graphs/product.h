/* Products of a layer's matrices, which have a row per vertex, with its weights: on any grid. */
#ifndef SL_GRAPHS_PRODUCT_H
#define SL_GRAPHS_PRODUCT_H

#include "graphs/network.h"

/* What is multiplied with weight W of a layer: a dense matrix H, or, where `dense` is NULL, sparse
 * features, dropped out. */
struct sl_product_input {
    int weight; /* of the layer's */
    const struct sl_matrix *dense;
    const struct sl_sparse_matrix *sparse;
    struct sl_dropout drop; /* of these */
};

/* Y = epilogue(ADDED + H·W), without an epilogue where it is NULL. ADDED, float32 like the sums, is
 * overwritten and may be Y; NULL: none. */
void sl_product(struct sl_network *net, struct sl_layer *layer, const struct sl_product_input *h,
                const struct sl_matrix *added, const struct sl_epilogue_tiles *epilogue,
                struct sl_matrix *y);

/* The gradients of the parameters, dW = Hᵀ·V and, unless `g` is NULL, db = column sums of G, whose
 * rows are multiplied by the layer's gradient factor; and, unless `y` is NULL, Y = epilogue(ADDED +
 * V·Wᵀ), which may take the place of H and, without ADDED, of the mask (NULL: none). V and G are
 * float32. */
void sl_product_back(struct sl_network *net, struct sl_layer *layer,
                     const struct sl_product_input *h, const struct sl_matrix *v,
                     const struct sl_matrix *g, const struct sl_matrix *added,
                     const struct sl_epilogue_tiles *epilogue, const struct sl_matrix *mask,
                     struct sl_matrix *y);

/* The gradients of a layer's parameters, `blocks` x columns of the grid for each row tile: where
 * there is one column, one for each weight, the last one with the bias; else one for each weight
 * and pair of column tiles of its input and its output, and those of the bias. */
int sl_product_blocks(const struct sl_network *net, const struct sl_layer *layer);
int sl_product_create_gradients(struct sl_network *net, struct sl_layer *layer);

/* Their sum over the row tiles, on rank 0: the one tile that there is, or layer->gradient. */
struct sl_tile *sl_product_sum_gradients(struct sl_network *net, struct sl_layer *layer);

/* What a rank receives for that. */
int64_t sl_product_gradient_bytes(const struct sl_network *net, const struct sl_layer *layer);

/* What travels among the ranks of a group in the products with a weight: forward H, or else terms
 * of H·W; backward V, or else H and terms of V·Wᵀ. */
bool sl_product_sends_input(const struct sl_network *net, const struct sl_layer *layer, int weight);
bool sl_product_sends_gradient(const struct sl_network *net, const struct sl_layer *layer,
                               int weight);

/* What a rank has of others at most, with the sums of products, in a training on distribution `d`
 * of runtime `rt`, whose columns are those of the network's: rows of an aggregation, or a product.
 */
int64_t sl_product_received_bytes(const struct sl_network *net, const struct sl_runtime *rt,
                                  const struct sl_distribution *d);

#endif
