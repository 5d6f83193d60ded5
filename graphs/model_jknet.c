/* Jumping knowledge (Xu, Li, Tian, Sonobe, Kawarabayashi & Jegelka, ICML 2018), by concatenation,
 * of --layers graph convolutions:
 *
 *   H_l = drop(relu(GCN(H_{l-1}))),   logits = [H_1 | … | H_L]·W + b
 */
#include "graphs/network.h"

static void list_jknet(const struct sl_model_shape *shape, struct sl_layer_list *list)
{
    for (int l = 0; l < shape->layers; l++)
        sl_layer_list_add(list, &(struct sl_layer_shape){
                                    .kind = shape->kind,
                                    .reducer = shape->reducer,
                                    .in = l == 0 ? shape->features : shape->hidden,
                                    .out = shape->hidden,
                                    .bias = shape->bias,
                                    .dropout = l == 0 ? shape->input_dropout : shape->dropout,
                                    .decay = l == 0 ? shape->decay_first : shape->decay_rest,
                                    .activation = SL_ACTIVATION_RELU,
                                });
    sl_layer_list_add(list, &(struct sl_layer_shape){
                                .kind = &sl_layer_jump,
                                .reducer = shape->reducer,
                                .in = shape->hidden,
                                .out = shape->classes,
                                .inputs = shape->layers,
                                .bias = shape->bias,
                                .dropout = shape->dropout,
                                .decay = shape->decay_rest,
                            });
}

const struct sl_model_kind sl_model_jknet = {
    .name = "jknet",
    .neighbours = &sl_layer_gcn,
    .one_order = true,
    .inner = true,
    .list = list_jknet,
};
