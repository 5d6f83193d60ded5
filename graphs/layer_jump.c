/* The last layer reads the outputs H_1, …, H_L of the L layers before it, side by side:
 *
 *   output = [H_1 | … | H_L]·W + b = Σ_l H_l·W_l + b
 *
 * H_l, after dropout, is stored as H_l' = R·H_l, as a graph convolution reads it. G is stored as
 * G' = G / R.
 *
 *   forward    Z = (Σ_l H_l'·W_l) / R + b
 *   backward   dW_l = H_l'ᵀ·G'   db = column sums of G
 *              G of layer L = its activation'(R·G'·W_Lᵀ)
 *              G of layer l < L = its activation'(R·(D + G'·W_lᵀ)), where D comes from layer l + 1
 *
 * H_l and W_l stay until layer l + 1 has gone back (sl_jump_back). */
#include "graphs/layer_jump.h"

#include "core/error.h"
#include "graphs/layer.h"

bool sl_jump_reads(const struct sl_network *net, int l)
{
    const int last = net->layers - 1;
    return l >= 0 && l < last - 1 && l >= last - net->model->layer[last].shape.inputs;
}

static struct sl_layer *input_of(const struct sl_layer *layer, int number)
{
    return (struct sl_layer *)layer - layer->inputs + number;
}

static bool is_readable(const struct sl_layer *layer, int number)
{
    const struct sl_layer *input = input_of(layer, number);
    const struct sl_layer_shape *shape = &input->model->shape;
    return input->out == layer->in && !shape->passing && !shape->block &&
           input->activation == SL_ACTIVATION_RELU &&
           (number == layer->inputs - 1 || (input + 1)->kind->leaves_sums);
}

static int jump_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    (void)wanted;
    layer->order = SL_GEMM_FIRST;
    layer->back.gradient_factor = SL_ROW_INVERSE_RIGHT;
    bool fits = layer->last && layer->index >= layer->inputs && net->graph->row_orders == 1;
    for (int i = 0; fits && i < layer->inputs; i++)
        fits = is_readable(layer, i);
    return fits ? 0
                : sl_error(SL_ERR_SYSTEM,
                           "layer %d reads the outputs of %d layers (expected the last layer, "
                           "outputs of its width with relu, and one vertex order)",
                           layer->index + 1, layer->inputs);
}

static void jump_forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    struct sl_epilogue_tiles finish = sl_layer_activation(net, layer, training);
    finish.before = SL_ROW_INVERSE_RIGHT;
    for (int i = 0; i < layer->inputs; i++) {
        const struct sl_product_input input = {.weight = i, .dense = &input_of(layer, i)->output};
        sl_product(net, layer, &input, i ? &layer->output : NULL,
                   i == layer->inputs - 1 ? &finish : NULL, &layer->output);
    }
}

static struct sl_matrix *jump_backward(struct sl_network *net, struct sl_layer *layer,
                                       struct sl_matrix *g)
{
    struct sl_matrix *h = &(layer - 1)->output;
    const struct sl_product_input input = {.weight = layer->inputs - 1, .dense = h};
    const struct sl_epilogue_tiles finish = sl_layer_activation_back(net, layer);
    sl_product_back(net, layer,
                    &(struct sl_product_gradient){.h = &input,
                                                  .v = g,
                                                  .g = g,
                                                  .epilogue = &finish,
                                                  .mask = sl_layer_mask(layer),
                                                  .y = h});
    return h;
}

struct sl_matrix *sl_jump_back(struct sl_network *net, struct sl_layer *layer,
                               const struct sl_matrix *d)
{
    struct sl_layer *jump = &net->layer[net->layers - 1];
    struct sl_matrix *h = &(layer - 1)->output;
    const struct sl_product_input input = {
        .weight = layer->index - 1 - (jump->index - jump->inputs), .dense = h};
    const struct sl_epilogue_tiles finish = sl_layer_activation_back(net, layer);
    sl_product_back(net, jump,
                    &(struct sl_product_gradient){.h = &input,
                                                  .v = jump->back.g,
                                                  .added = d,
                                                  .epilogue = &finish,
                                                  .mask = sl_layer_mask(layer),
                                                  .y = h});
    return h;
}

const struct sl_layer_kind sl_layer_jump = {
    .name = "jump",
    .weights = 1,
    .weight = {"weight"},
    .bias = "bias",
    .scaled_input = true,
    .alone = true,
    .plan = jump_plan,
    .forward = jump_forward,
    .backward = jump_backward,
    .aggregations = sl_layer_no_aggregations,
};
