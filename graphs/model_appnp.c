/* APPNP (Gasteiger, Bojchevski & Guennemann, ICLR 2019): --layers layers that do not aggregate give
 * H, and --hops hops, with the teleport probability a, give
 *
 *   logits = Z_K,   Z_k = (1 - a)·Â·Z_{k-1} + a·H,   Z_0 = H
 */
#include "graphs/network.h"

static void list_appnp(const struct sl_model_shape *shape, struct sl_layer_list *list)
{
    for (int l = 0; l < shape->layers; l++) {
        const bool last = l == shape->layers - 1;
        sl_layer_list_add(list, &(struct sl_layer_shape){
                                    .kind = &sl_layer_linear,
                                    .reducer = shape->reducer,
                                    .in = l == 0 ? shape->features : shape->hidden,
                                    .out = last ? shape->classes : shape->hidden,
                                    .bias = shape->bias,
                                    .dropout = l == 0 ? shape->input_dropout : shape->dropout,
                                    .decay = l == 0 ? shape->decay_first : shape->decay_rest,
                                    .activation = last ? SL_ACTIVATION_NONE : SL_ACTIVATION_RELU,
                                });
    }
    for (int hop = 0; hop < shape->hops; hop++)
        sl_layer_list_add(list, &(struct sl_layer_shape){
                                    .kind = &sl_layer_propagate,
                                    .reducer = shape->reducer,
                                    .in = shape->classes,
                                    .out = shape->classes,
                                    .back = hop + 1,
                                    .weight = shape->teleport,
                                });
}

const struct sl_model_kind sl_model_appnp = {
    .name = "appnp",
    .neighbours = &sl_layer_propagate,
    .alone_first = true,
    .one_order = true,
    .list = list_appnp,
};
