/* ResGCN+ (Li, Xiong, Thabet & Ghanem, DeeperGCN, 2020): an encoder, --layers blocks, a decoder.
 *
 *   H = X·W + b,   H += GCN(drop(relu(norm(H)))) for each block,   logits = drop(relu(norm(H)))·W +
 * b
 *
 * In place of GCN, blocks may have GraphSAGE's layer: GraNNDis wraps its mean.
 *
 * Only norms and sums read the stream H. A norm of columns takes their means out, and with them all
 * biases of the stream. So with --block-norm batch these biases have no gradient, and stay as they
 * are.
 *
 * Instead of norm, blocks may have a layer that a program brings (graphs/layer_own.c). With
 * --recompute, its output or a block's normalised rows are made again going back. */
#include "graphs/network.h"

static bool takes_biases_out(const struct sl_model_shape *shape)
{
    return shape->block == &sl_layer_batch_norm;
}

static void add_linear(const struct sl_model_shape *shape, bool first, struct sl_layer_list *list)
{
    sl_layer_list_add(list, &(struct sl_layer_shape){
                                .kind = &sl_layer_linear,
                                .reducer = shape->reducer,
                                .in = first ? shape->features : shape->hidden,
                                .out = first ? shape->hidden : shape->classes,
                                .bias = shape->bias,
                                .bias_cancels = first && takes_biases_out(shape),
                                .dropout = first ? shape->input_dropout : shape->dropout,
                                .decay = first ? shape->decay_first : shape->decay_rest,
                            });
}

static void add_norm(const struct sl_model_shape *shape, struct sl_layer_list *list)
{
    sl_layer_list_add(list, &(struct sl_layer_shape){
                                .kind = shape->block,
                                .reducer = shape->reducer,
                                .in = shape->hidden,
                                .out = shape->hidden,
                                .decay = shape->block->own ? shape->decay_rest : 0.0f,
                                .activation = SL_ACTIVATION_RELU,
                                .passing = true,
                            });
}

static void add_convolution(const struct sl_model_shape *shape, struct sl_layer_list *list)
{
    sl_layer_list_add(list, &(struct sl_layer_shape){
                                .kind = shape->kind,
                                .reducer = shape->reducer,
                                .in = shape->hidden,
                                .out = shape->hidden,
                                .bias = shape->bias,
                                .bias_cancels = takes_biases_out(shape),
                                .dropout = shape->dropout,
                                .decay = shape->decay_rest,
                                .back = 2,
                                .weight = 1.0f,
                                .block = true,
                            });
}

static void list_resgcn(const struct sl_model_shape *shape, struct sl_layer_list *list)
{
    add_linear(shape, true, list);
    for (int block = 0; block < shape->layers; block++) {
        add_norm(shape, list);
        add_convolution(shape, list);
    }
    add_norm(shape, list);
    add_linear(shape, false, list);
}

const struct sl_model_kind sl_model_resgcn = {
    .name = "resgcn",
    .neighbours = &sl_layer_gcn,
    .alone_first = true,
    .one_order = true,
    .inner = true,
    .recomputes = true,
    .list = list_resgcn,
};
