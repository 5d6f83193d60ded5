/* A hop without parameters: output = (1 - w)·Â·H, w the weight of the earlier output that is added.
 * The layer before has no activation.
 *
 *   forward    Z = (1 - w)·L·(S·R·H)              R is in H already
 *   backward   G of the layer before = (1 - w)·R·(Sᵀ·L·G)     L is in G already */
#include "core/error.h"
#include "graphs/forward.h"
#include "graphs/layer.h"

static int propagate_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    const int from = layer->input_order, to = layer->output.row_order;
    (void)wanted;
    layer->order = SL_GEMM_FIRST;
    layer->back.gradient_factor = SL_ROW_LEFT;
    if (layer->index == 0 || layer->in != layer->out ||
        (layer - 1)->activation != SL_ACTIVATION_NONE)
        return sl_error(SL_ERR_SYSTEM,
                        "layer %d is a hop (expected a layer of its width without activation "
                        "before it)",
                        layer->index + 1);
    int code = sl_layer_plan_aggregations(net, layer);
    if (!code)
        code = sl_network_plan_sums(net, to, layer->out);
    return code ? code : sl_network_plan_sums(net, from, layer->in);
}

static void propagate_forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    struct sl_epilogue_tiles finish = sl_layer_activation(net, layer, training);
    finish.before = SL_ROW_LEFT;
    finish.scale = 1.0f - layer->residual.weight;
    sl_network_aggregate(net, layer, false, &(layer - 1)->output, &finish, NULL, &layer->output);
}

static struct sl_matrix *propagate_backward(struct sl_network *net, struct sl_layer *layer,
                                            struct sl_matrix *g)
{
    struct sl_epilogue_tiles finish = sl_layer_activation_back(net, layer);
    finish.scale = 1.0f - layer->residual.weight;
    sl_network_aggregate(net, layer, true, g, &finish, NULL, &(layer - 1)->output);
    return &(layer - 1)->output;
}

static int propagate_describe(const struct sl_forward *forward)
{
    const struct sl_layer_shape *shape = forward->shape;
    const int value = sl_forward_aggregate(forward, sl_forward_input(forward), SL_REDUCE_SUM);
    return shape->back
               ? sl_forward_add(forward, 1.0 - (double)shape->weight, value, (double)shape->weight,
                                forward->outputs[forward->index + 1 - shape->back])
               : value;
}

const struct sl_layer_kind sl_layer_propagate = {
    .name = "propagate",
    .loops = true,
    .normalized = true,
    .scaled_input = true,
    .plan = propagate_plan,
    .forward = propagate_forward,
    .backward = propagate_backward,
    .describe = propagate_describe,
};
