/* What kinds of layers share. */
#ifndef SL_GRAPHS_LAYER_H
#define SL_GRAPHS_LAYER_H

#include "core/rates.h"
#include "graphs/network.h"
#include "graphs/product.h"

/* Whether a layer's input is sparse features, or what was aggregated of them. */
bool sl_layer_input_is_sparse(const struct sl_network *net, const struct sl_layer *layer);

/* What a layer does in a training step. */
struct sl_layer_work {
    const struct sl_rates *rates;
    double n, nnz;      /* vertices, entries of the adjacency */
    double entries;     /* of sparse input; 0: it is dense */
    double aggregated;  /* entries of Â·X of sparse X; 0: dense */
    double in, out;     /* widths */
    double weights;     /* of the kind of layer */
    double kept, bytes; /* the share that dropout keeps; bytes of an element of the input */
    bool first;
};

/* Seconds of its products by that order; what all orders have in common is left out. */
double sl_layer_seconds(const struct sl_layer_work *work, enum sl_product_order order);

/* The order of products that moves fewer bytes, from the widths and the sparsity, unless one is
 * wanted (struct sl_layer_kind). */
enum sl_product_order sl_layer_choose_order(const struct sl_network *net,
                                            const struct sl_layer *layer, int wanted);

/* Those of a step: Â·H or Â·(H·W), and, going back, of the gradient of the same width. */
int sl_layer_aggregations(const struct sl_network *net, const struct sl_layer *layer,
                          struct sl_aggregation list[SL_AGGREGATIONS]);

/* What the aggregations of a layer whose order is chosen need: partial sums, and the size of what
 * travels. SL_ERR_SYSTEM. */
int sl_layer_plan_aggregations(struct sl_network *net, struct sl_layer *layer);

/* Makes `dropped` where a first layer needs it: of features that are dropped out, or that are made
 * dense because they are aggregated first. SL_ERR_SYSTEM. */
int sl_layer_plan_dropped(struct sl_network *net, struct sl_layer *layer);

/* The dropout of the layer's input; threshold 0 where there is none. */
struct sl_dropout sl_layer_dropout(const struct sl_network *net, const struct sl_layer *layer,
                                   bool training);

/* Submits `dropped`: the dense input of a first layer, after dropout when training. */
void sl_layer_drop_input(struct sl_network *net, struct sl_layer *layer, bool training);

/* The dense matrix that the layer multiplies or aggregates, or NULL: the sparse features. */
const struct sl_matrix *sl_layer_dense_input(const struct sl_network *net,
                                             const struct sl_layer *layer, bool training);

/* What its first weight multiplies: that, or `aggregated` where it was aggregated before. */
struct sl_product_input sl_layer_product_input(const struct sl_network *net,
                                               const struct sl_layer *layer, bool training);

/* From the sum to the output: bias, relu, dropout of the next layer; without factors. */
struct sl_epilogue_tiles sl_layer_activation(const struct sl_network *net, struct sl_layer *layer,
                                             bool training);

#endif
