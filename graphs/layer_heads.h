/* Functions that layers of attention share. Such a layer multiplies its input with one matrix, made
 * of its weights, and with a residual, with V of a layer beside it. */
#ifndef SL_GRAPHS_LAYER_HEADS_H
#define SL_GRAPHS_LAYER_HEADS_H

#include "graphs/edge_sums.h"
#include "graphs/forward.h"

/* The head of what such a layer owns (sl_layer.own). */
struct sl_heads {
    struct sl_matrix *kept[3]; /* rows that the layer keeps from its forward pass, in its own */
    struct sl_tile weights;    // (in, product), on this rank: it never travels
    struct sl_tile vectors;    /* other parameters of walks, likewise; no rows: there are none */
    struct sl_tile gradient;   /* gradient of the parameters, on rank 0 */
    struct sl_edge_sums sums;  /* sums of the gradient of the weight of edge features */
    struct sl_layer residual;  /* with a residual, the layer of V */
};

/* Make the weights, the gradient and the kept matrices (3), which are cut at `cut` (3). Return 0,
 * or SL_ERR_SYSTEM, also if attention cannot work on the network's matrices, or the layers around
 * it do not allow the layer; sl_heads_destroy in either case. */
int sl_heads_create(struct sl_network *net, struct sl_layer *layer, struct sl_matrix *const *kept,
                    const int64_t *const *cut);
void sl_heads_destroy(struct sl_layer *layer);
struct sl_layer_memory sl_heads_memory(const struct sl_layer *layer);

/* Plan the gradient of the input, where terms join it, and the rest of a layer's work matrices;
 * with a residual, make the layer of V. Return 0 or SL_ERR_SYSTEM. */
int sl_heads_plan(struct sl_network *net, struct sl_layer *layer);

/* Submit OUTPUT = epilogue(OUTPUT + H·V): the residual, where the layer has one. */
void sl_heads_add_residual(struct sl_network *net, struct sl_layer *layer, bool training,
                           const struct sl_epilogue_tiles *epilogue);

/* Submit the gradients of the weights from V, the gradient of the product, and from G, the gradient
 * of the output before bias and activation. Return the gradient of the previous layer's
 * pre-activation, or NULL for a first layer. `after`: the further rows of the weights' gradient
 * have a row already. */
struct sl_matrix *sl_heads_products_back(struct sl_network *net, struct sl_layer *layer,
                                         const struct sl_matrix *v, struct sl_matrix *g,
                                         bool after);

/* Append what follows the heads of attention: their mean, the residual, bias and activation. Return
 * the value of the output. */
int sl_heads_describe(const struct sl_forward *forward, int heads);

/* Submit dV into the gradient of the parameters, which is returned. */
struct sl_tile *sl_heads_residual_back(struct sl_network *net, struct sl_layer *layer);

/* Work of a walk of attention, in flops at the rate of products with sparse features: of a column
 * of an entry, and of a feature of an entry and head. Measured: docs/DISTRIBUTIONS.md. */
struct sl_heads_work {
    double column, number;
};

/* Return the seconds of a walk of attention (struct sl_layer_kind). */
double sl_heads_seconds(const struct sl_layer_shape *shape, const struct sl_walk_size *walk,
                        struct sl_heads_work work);

#endif
