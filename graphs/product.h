/* Products of a layer's matrices, which have a row per vertex, with its weights: on any grid. */
#ifndef SL_GRAPHS_PRODUCT_H
#define SL_GRAPHS_PRODUCT_H

#include "codelets/epilogue.h"
#include "graphs/network.h"

/* The factor of weight W of a layer: a dense matrix H, or, where `dense` is NULL, sparse features
 * after dropout. */
struct sl_product_input {
    int weight; /* its number among the layer's weights */
    const struct sl_matrix *dense;
    const struct sl_sparse_matrix *sparse;
    struct sl_dropout drop; /* dropout of the sparse features */
};

/* Submit Y = epilogue(ADDED + H·W). `epilogue` NULL: none. ADDED is float32 like the sums, is
 * overwritten and may be Y; NULL: none. */
void sl_product(struct sl_network *net, struct sl_layer *layer, const struct sl_product_input *h,
                const struct sl_matrix *added, const struct sl_epilogue_tiles *epilogue,
                struct sl_matrix *y);

/* Submit the gradients of the parameters, and Y.
 *
 *     dW = Hᵀ·V
 *     db = column sums of G, unless `g` is NULL     the layer's gradient factor in G is undone
 *     Y = epilogue(ADDED + V·Wᵀ), unless `y` is NULL
 *
 * Y may be H and the mask. ADDED is float32. */
struct sl_product_gradient {
    const struct sl_product_input *h;
    const struct sl_matrix *v, *g;
    bool after_bias;               /* further rows of the gradient are made already, such as db */
    bool accumulate;               /* dW += Hᵀ·V; H is dense */
    const struct sl_matrix *added; /* NULL: none */
    const struct sl_epilogue_tiles *epilogue; /* NULL: none */
    const struct sl_matrix *mask;             /* NULL: none */
    struct sl_matrix *y;
};
void sl_product_back(struct sl_network *net, struct sl_layer *layer,
                     const struct sl_product_gradient *gradient);

/* Return the tile of row tile i's part of the gradients that ends with their further rows. */
struct sl_tile *sl_product_further(const struct sl_network *net, const struct sl_layer *layer,
                                   int i);

/* The gradients of a layer's parameters: `blocks` × C tiles for each row tile, C the columns of the
 * grid.
 *
 *     C = 1    one tile for each weight, the last one with further rows, such as the bias
 *     C > 1    one tile for each weight and pair of column tiles of its input and its output, and
 *              C tiles of further rows
 *
 * Return `blocks`. */
int sl_product_blocks(const struct sl_network *net, const struct sl_layer *layer);

/* Make the gradients of a layer's parameters; their parts have no memory yet. Return 0 or
 * SL_ERR_SYSTEM. */
int sl_product_create_gradients(struct sl_network *net, struct sl_layer *layer);

/* Submit the sum of the gradients over the row tiles, on rank 0. Return its tile: the only block,
 * or layer->gradient. */
struct sl_tile *sl_product_sum_gradients(struct sl_network *net, struct sl_layer *layer);

/* Return whether H travels in a group for the forward product with a weight; else terms of H·W
 * travel. */
bool sl_product_sends_input(const struct sl_network *net, const struct sl_layer *layer, int weight);

/* Return the bytes of an element of V for the backward products with a weight. */
int64_t sl_product_gradient_size(const struct sl_network *net, const struct sl_layer *layer,
                                 int weight);

/* Return whether V travels for the backward products; else H and terms of V·Wᵀ travel. */
bool sl_product_sends_gradient(const struct sl_network *net, const struct sl_layer *layer,
                               int weight);

/* ---- product_counts.c ---- */

/* Bytes and messages that a rank receives for products. */
struct sl_product_flow {
    int64_t rows, sums; /* bytes of rows of H and V; bytes of terms and gradients */
    int64_t messages;
};

/* Add to FLOW the bytes and messages that `rank` receives inside its group for the products with a
 * weight, forward and back. The grid of `d` has the network's columns, and more than one. */
void sl_product_count(const struct sl_network *net, const struct sl_layer *layer, int weight,
                      const struct sl_distribution *d, int rank, struct sl_product_flow *flow);

/* Add to flow (ranks) the bytes and messages that each rank of `d` receives for the sum of a
 * layer's gradients. */
void sl_product_count_gradients(const struct sl_network *net, const struct sl_layer *layer,
                                const struct sl_distribution *d, struct sl_product_flow *flow);

/* Return the bytes that this rank receives for the sum of a layer's gradients. */
int64_t sl_product_gradient_bytes(const struct sl_network *net, const struct sl_layer *layer);

/* Return the peak bytes of other ranks' data on a rank while it trains on distribution `d` of
 * runtime `rt`. The peak is in an aggregation, or in a product with its sums. The grid of `d` has
 * the network's columns. */
int64_t sl_product_received_bytes(const struct sl_network *net, const struct sl_runtime *rt,
                                  const struct sl_distribution *d);

#endif
