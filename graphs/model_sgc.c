/* SGC (Wu, Souza, Zhang, Fifty, Yu & Weinberger, ICML 2019): logits = Â^K·(X·W + b), K = --hops.
 * The product with W comes first: rows have the classes' width in all hops. */
#include "graphs/network.h"

static void list_sgc(const struct sl_model_shape *shape, struct sl_layer_list *list)
{
    sl_layer_list_add(list, &(struct sl_layer_shape){
                                .kind = &sl_layer_linear,
                                .reducer = shape->reducer,
                                .in = shape->features,
                                .out = shape->classes,
                                .bias = shape->bias,
                                .dropout = shape->input_dropout,
                                .decay = shape->decay_first,
                            });
    for (int hop = 0; hop < shape->hops; hop++)
        sl_layer_list_add(list, &(struct sl_layer_shape){
                                    .kind = &sl_layer_propagate,
                                    .reducer = shape->reducer,
                                    .in = shape->classes,
                                    .out = shape->classes,
                                });
}

const struct sl_model_kind sl_model_sgc = {
    .name = "sgc", .neighbours = &sl_layer_propagate, .alone_first = true, .list = list_sgc};
