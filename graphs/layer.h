/* Functions that kinds of layers share. */
#ifndef SL_GRAPHS_LAYER_H
#define SL_GRAPHS_LAYER_H

#include "codelets/epilogue.h"
#include "graphs/network.h"
#include "graphs/product.h"

/* Return whether a layer's input is sparse: sparse features, or their aggregation. */
bool sl_layer_input_is_sparse(const struct sl_network *net, const struct sl_layer *layer);

/* Return the wanted order of products (struct sl_layer_kind), or else the order that takes fewer
 * seconds. */
enum sl_product_order sl_layer_choose_order(const struct sl_network *net,
                                            const struct sl_layer *layer, int wanted);

/* Return the type of the gradients that the layer aggregates. */
enum sl_type sl_layer_moved_back(const struct sl_network *net, const struct sl_layer *layer);

/* List the aggregations of a step: Â·H or Â·(H·W), and, going back, the aggregation of a gradient
 * of equal width. Return how many. */
int sl_layer_aggregations(const struct sl_network *net, const struct sl_layer *layer,
                          struct sl_aggregation list[SL_AGGREGATIONS]);

/* Return 0: sl_layer_kind.aggregations of a layer that does not aggregate. */
int sl_layer_no_aggregations(const struct sl_network *net, const struct sl_layer *layer,
                             struct sl_aggregation list[SL_AGGREGATIONS]);

/* Return the bytes that `rank` of `d` receives for a layer of normalised rows, which its group
 * cuts; add the messages to *messages (graphs/layer_norm.c). */
int64_t sl_layer_count_norm(const struct sl_distribution *d, int rank, int64_t *messages);

/* Plan the aggregations of a layer whose order is chosen: partial sums, and the bytes of the widest
 * row that travels. Return 0 or SL_ERR_SYSTEM. */
int sl_layer_plan_aggregations(struct sl_network *net, struct sl_layer *layer);

/* Make `dropped` where a first layer needs it: for features with dropout, or for sparse features
 * that are aggregated first. Return 0 or SL_ERR_SYSTEM. */
int sl_layer_plan_dropped(struct sl_network *net, struct sl_layer *layer);

/* Return the dropout of the layer's input; threshold 0: none. */
struct sl_dropout sl_layer_dropout(const struct sl_network *net, const struct sl_layer *layer,
                                   bool training);

/* Submit `dropped`: the dense input of a first layer, after dropout when training. */
void sl_layer_drop_input(struct sl_network *net, struct sl_layer *layer, bool training);

/* Submit `dropped` again, going back, where another matrix has taken its memory. */
void sl_layer_drop_again(struct sl_network *net, struct sl_layer *layer);

/* Return the mask of the previous layer's activation, which is its output. NULL: it has no
 * activation. */
struct sl_matrix *sl_layer_mask(const struct sl_layer *layer);

/* Return the dense matrix that the layer multiplies or aggregates. NULL: the sparse features. */
const struct sl_matrix *sl_layer_dense_input(const struct sl_network *net,
                                             const struct sl_layer *layer, bool training);

/* Return the input of the layer's first weight: `aggregated`, where the SpMM comes first, or else
 * the dense or sparse input. */
struct sl_product_input sl_layer_product_input(const struct sl_network *net,
                                               const struct sl_layer *layer, bool training);

/* Return the epilogue that turns a sum into the layer's output: bias, activation, and dropout and
 * row factor of the next layer. */
struct sl_epilogue_tiles sl_layer_finish(const struct sl_network *net, struct sl_layer *layer,
                                         bool training);

/* Return the steps of sl_layer_finish that the layer's kind submits: none, where the input is still
 * to be added. */
struct sl_epilogue_tiles sl_layer_activation(const struct sl_network *net, struct sl_layer *layer,
                                             bool training);

/* Return whether the layer, going back, leaves the gradient of its input as sums: float32, without
 * the input's row factor and before sl_layer_activation_back. Other terms join these sums. */
bool sl_layer_leaves_sums(const struct sl_network *net, const struct sl_layer *layer);

/* Submit Y += X / R, R the row factor of the layer's input. */
void sl_layer_add_rows(struct sl_network *net, const struct sl_layer *layer,
                       const struct sl_matrix *x, const struct sl_matrix *y);

/* Submit D += G / R where the layer's input is added to its sums: D the sums that
 * sl_layer_leaves_sums describes, G the gradient of the pre-activation, without its factor after
 * the call. */
void sl_layer_add_gradient(struct sl_network *net, const struct sl_layer *layer,
                           const struct sl_matrix *g, const struct sl_matrix *d);

/* Return the epilogue that turns the gradient of the layer's input, without its row factor, into
 * the gradient of the previous layer's pre-activation: dropout, activation and row factors. The
 * mask is sl_layer_mask. */
struct sl_epilogue_tiles sl_layer_activation_back(const struct sl_network *net,
                                                  const struct sl_layer *layer);

/* Submit the gradient of the previous layer's pre-activation from the sums D that
 * sl_layer_leaves_sums describes. Return the gradient, in the place of the previous layer's output.
 */
struct sl_matrix *sl_layer_finish_sums(struct sl_network *net, const struct sl_layer *layer,
                                       const struct sl_matrix *d);

#endif
