/* A layer that does not aggregate: output = drop(activation(H·W + b)), H its input after dropout.
 *
 *   backward   dW = Hᵀ·G   db = column sums of G   G of the layer before = drop(activation'(G·Wᵀ))
 */
#include "graphs/forward.h"
#include "graphs/layer.h"

static int linear_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    (void)wanted;
    layer->order = SL_GEMM_FIRST;
    layer->back.gradient_factor = SL_ROW_NONE;
    return sl_layer_plan_dropped(net, layer);
}

static void linear_forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    const struct sl_product_input input = sl_layer_product_input(net, layer, training);
    const struct sl_epilogue_tiles finish = sl_layer_activation(net, layer, training);
    if (input.dense == &layer->dropped)
        sl_layer_drop_input(net, layer, training);
    sl_product(net, layer, &input, NULL, &finish, &layer->output);
}

static struct sl_matrix *linear_backward(struct sl_network *net, struct sl_layer *layer,
                                         struct sl_matrix *g)
{
    sl_layer_drop_again(net, layer);
    const struct sl_product_input input = sl_layer_product_input(net, layer, true);
    struct sl_product_gradient back = {.h = &input, .v = g, .g = g};
    if (layer->index == 0) {
        sl_product_back(net, layer, &back);
        return NULL;
    }
    const struct sl_epilogue_tiles finish = sl_layer_activation_back(net, layer);
    back.epilogue = &finish;
    back.mask = sl_layer_mask(layer);
    back.y = &(layer - 1)->output;
    sl_product_back(net, layer, &back);
    return back.y;
}

static int linear_describe(const struct sl_forward *forward)
{
    return sl_forward_finish(forward, sl_forward_product(forward, sl_forward_input(forward), 0, 0));
}

const struct sl_layer_kind sl_layer_linear = {
    .name = "linear",
    .weights = {.count = 1, .linear = 1, .name = {"weight"}},
    .bias = "bias",
    .alone = true,
    .plan = linear_plan,
    .forward = linear_forward,
    .backward = linear_backward,
    .aggregations = sl_layer_no_aggregations,
    .describe = linear_describe,
};
