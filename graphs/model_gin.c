/* GIN (Xu, Hu, Leskovec & Jegelka, ICLR 2019) with epsilon = 0: each of --layers layers is
 *
 *   H = relu(relu((A + I)·drop(H)·W + b)·V + c),   without the last relu in the last layer
 */
#include "graphs/network.h"

static void add_layer(const struct sl_model_shape *shape, int l, struct sl_layer_list *list)
{
    const bool last = l == shape->layers - 1;
    const float decay = l == 0 ? shape->decay_first : shape->decay_rest;
    sl_layer_list_add(list, &(struct sl_layer_shape){
                                .kind = shape->kind,
                                .reducer = shape->reducer,
                                .in = l == 0 ? shape->features : shape->hidden,
                                .out = shape->hidden,
                                .bias = shape->bias,
                                .dropout = l == 0 ? shape->input_dropout : shape->dropout,
                                .decay = decay,
                                .activation = shape->activation,
                            });
    sl_layer_list_add(list, &(struct sl_layer_shape){
                                .kind = &sl_layer_linear,
                                .reducer = shape->reducer,
                                .in = shape->hidden,
                                .out = last ? shape->classes : shape->hidden,
                                .bias = shape->bias,
                                .decay = decay,
                                .activation = last ? SL_ACTIVATION_NONE : shape->activation,
                            });
}

static void list_gin(const struct sl_model_shape *shape, struct sl_layer_list *list)
{
    for (int l = 0; l < shape->layers; l++)
        add_layer(shape, l, list);
}

const struct sl_model_kind sl_model_gin = {
    .name = "gin",
    .neighbours = &sl_layer_gcn,
    .unscaled = true,
    .inner = true,
    .list = list_gin,
};
