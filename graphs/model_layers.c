/* Models with layers of one kind. All layers but the last have --hidden columns, the last one a
 * column per class. With a classifier, all have --hidden columns, and a linear layer follows. With
 * a jump, this layer reads the outputs of all layers: side by side, their sum, or the largest,
 * value by value (Xu, Li, Tian, Sonobe, Kawarabayashi & Jegelka, ICML 2018). jknet is a GCN with a
 * jump. */
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
        .identity = shape->identity && !last && (l > 0 || shape->encoder),
        .bias = shape->bias,
        .dropout = l == 0 ? shape->input_dropout : shape->dropout,
        .decay = l == 0 ? shape->decay_first : shape->decay_rest,
        .activation = last ? SL_ACTIVATION_NONE : shape->activation,
        .heads = last ? shape->attention.last : shape->attention.heads,
        .mean = last && shape->attention.heads > 0,
        .attention_dropout = shape->attention.dropout,
        .edge_features = shape->edges.features,
        .relations = shape->edges.relations,
        .bases = shape->edges.bases,
        .slope = shape->attention.slope,
    };
}

static void list_layers(const struct sl_model_shape *shape, struct sl_layer_list *list)
{
    for (int l = 0; l < shape->layers; l++) {
        const struct sl_layer_shape layer = layer_of(shape, l);
        sl_layer_list_add(list, &layer);
    }
    const bool scaled = shape->kind->scaled_input, largest = shape->jump == SL_JUMP_MAX,
               joint = shape->jump && !largest;
    const int64_t hidden = sl_model_hidden(shape);
    if (largest)
        sl_layer_list_add(list, &(struct sl_layer_shape){
                                    .kind = scaled ? &sl_layer_jump_max : &sl_layer_jump_max_plain,
                                    .reducer = shape->reducer,
                                    .in = hidden,
                                    .inputs = shape->layers,
                                    .shared = true,
                                    .out = hidden,
                                    .dropout = shape->dropout,
                                });
    if (shape->classifier)
        sl_layer_list_add(list, &(struct sl_layer_shape){
                                    .kind = !joint   ? &sl_layer_linear
                                            : scaled ? &sl_layer_jump
                                                     : &sl_layer_jump_plain,
                                    .reducer = shape->reducer,
                                    .in = hidden,
                                    .inputs = joint ? shape->layers : 0,
                                    .shared = shape->jump == SL_JUMP_SUM,
                                    .out = shape->classes,
                                    .bias = shape->bias,
                                    .dropout = largest ? 0.0 : shape->dropout,
                                    .decay = shape->decay_rest,
                                });
}

static void list_jknet(const struct sl_model_shape *shape, struct sl_layer_list *list)
{
    struct sl_model_shape jumps = *shape;
    jumps.jump = SL_JUMP_CONCAT;
    jumps.classifier = true;
    list_layers(&jumps, list);
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
    .attention = &sl_reduce_attention,
    .edges = SL_EDGES_READ,
    .one_order = true,
    .list = list_layers,
};
const struct sl_model_kind sl_model_gatv2 = {
    .name = "gatv2",
    .neighbours = &sl_layer_gatv2,
    .residual = &sl_layer_gatv2_residual,
    .attention = &sl_reduce_gatv2,
    .edges = SL_EDGES_READ,
    .one_order = true,
    .list = list_layers,
};
const struct sl_model_kind sl_model_transformer = {
    .name = "transformer",
    .neighbours = &sl_layer_transformer,
    .residual = &sl_layer_transformer_residual,
    .attention = &sl_reduce_transformer,
    .edges = SL_EDGES_READ,
    .one_order = true,
    .list = list_layers,
};
const struct sl_model_kind sl_model_rgcn = {
    .name = "rgcn",
    .neighbours = &sl_layer_rgcn,
    .reducer = &sl_reduce_rgcn,
    .edges = SL_EDGES_RELATIONS,
    .one_order = true,
    .list = list_layers,
};
const struct sl_model_kind sl_model_jknet = {
    .name = "jknet",
    .neighbours = &sl_layer_gcn,
    .residual = &sl_layer_gcn_residual,
    .one_order = true,
    .inner = true,
    .list = list_jknet,
};
