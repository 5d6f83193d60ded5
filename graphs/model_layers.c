/* Models with layers of one kind. All layers but the last have --hidden columns, the last one a
 * column per class. With a classifier, all have --hidden columns, and a linear layer follows. */
#include "graphs/network.h"

static struct sl_layer_shape layer_of(const struct sl_model_shape *shape, int l)
{
    const bool last = l == shape->layers - 1 && !shape->classifier;
    const int64_t hidden = sl_model_hidden(shape);
    return (struct sl_layer_shape){
        .kind = shape->kind,
        .reducer = shape->reducer,
        .in = l == 0 ? shape->features : hidden,
        .out = last ? shape->classes : hidden,
        .bias = shape->bias,
        .dropout = l == 0 ? shape->input_dropout : shape->dropout,
        .decay = l == 0 ? shape->decay_first : shape->decay_rest,
        .activation = last ? SL_ACTIVATION_NONE : shape->activation,
        .heads = last ? shape->out_heads : shape->heads,
        .mean = last && shape->heads > 0,
        .attention_dropout = shape->attention_dropout,
        .slope = shape->slope,
    };
}

static void list_layers(const struct sl_model_shape *shape, struct sl_layer_list *list)
{
    for (int l = 0; l < shape->layers; l++) {
        const struct sl_layer_shape layer = layer_of(shape, l);
        sl_layer_list_add(list, &layer);
    }
    if (shape->classifier)
        sl_layer_list_add(list, &(struct sl_layer_shape){
                                    .kind = &sl_layer_linear,
                                    .reducer = shape->reducer,
                                    .in = sl_model_hidden(shape),
                                    .out = shape->classes,
                                    .bias = shape->bias,
                                    .dropout = shape->dropout,
                                    .decay = shape->decay_rest,
                                });
}

const struct sl_model_kind sl_model_gcn = {
    .name = "gcn",
    .neighbours = &sl_layer_gcn,
    .residual = &sl_layer_gcn_residual,
    .list = list_layers,
};
const struct sl_model_kind sl_model_sage = {
    .name = "sage", .neighbours = &sl_layer_sage, .list = list_layers};
const struct sl_model_kind sl_model_gat = {
    .name = "gat",
    .neighbours = &sl_layer_gat,
    .residual = &sl_layer_gat_residual,
    .one_order = true,
    .list = list_layers,
};
