/* A jump reads the outputs H_1, …, H_L of the L layers before it. The last layer takes them side by
 * side or, with one weight for all, their sum. A layer without weights takes the largest, value by
 * value; a linear layer follows it:
 *
 *   output = [H_1 | … | H_L]·W + b = Σ_l H_l·W_l + b
 *   output = (Σ_l H_l)·W + b
 *   output = max_l H_l
 *
 * H_l, after dropout, is stored as H_l' = R·H_l, as a graph convolution reads it. G is stored as
 * G' = G / R. After layers of another kind (jump_plain), R is 1.
 *
 *   forward    Z = (Σ_l H_l'·W_l) / R + b
 *   backward   dW_l = H_l'ᵀ·G'   db = column sums of G
 *              G of layer L = its activation'(R·G'·W_Lᵀ)
 *              G of layer l < L = its activation'(R·(D + G'·W_lᵀ)), where D comes from layer l + 1
 *
 * H_l and W_l stay until layer l + 1 has gone back (sl_jump_back). In a maximum, G' goes to the
 * layer that an element comes from, in place of G'·W_lᵀ. */
#include "graphs/layer_jump.h"

#include "codelets/jump_max.h"
#include "core/error.h"
#include "graphs/forward.h"
#include "graphs/layer.h"
#include "graphs/reach.h"

/* Return the index of the layer that reads several outputs; 0: there is none. */
static int jump_of(const struct sl_network *net)
{
    int l = net->model->layers - 1;
    while (l > 0 && net->model->layer[l].shape.inputs < 2)
        l--;
    return l;
}

bool sl_jump_reads(const struct sl_network *net, int l)
{
    const int jump = jump_of(net);
    const struct sl_layer_shape *shape = &net->model->layer[jump].shape;
    return l >= 0 && l < jump - 1 && l >= jump - sl_layer_shape_reach(shape) &&
           (jump - 1 - l) % sl_layer_shape_stride(shape) == 0;
}

static struct sl_layer *input_of(const struct sl_layer *layer, int number)
{
    const int others = layer->inputs - 1 - number;
    return (struct sl_layer *)layer - 1 - others * sl_layer_shape_stride(&layer->model->shape);
}

/* Return the weight of the input of that number. */
static int weight_of(const struct sl_layer *layer, int number)
{
    return layer->model->shape.shared ? 0 : number;
}

static bool is_readable(const struct sl_layer *layer, int number)
{
    const struct sl_layer *input = input_of(layer, number);
    const struct sl_layer_shape *shape = &input->model->shape;
    return input->out == layer->in && !shape->passing && !shape->block &&
           input->activation != SL_ACTIVATION_NONE &&
           (number == layer->inputs - 1 || (input + 1)->kind->leaves_sums);
}

static int plan_inputs(struct sl_network *net, struct sl_layer *layer)
{
    layer->order = SL_GEMM_FIRST;
    layer->back.gradient_factor = layer->kind->scaled_input ? SL_ROW_INVERSE_RIGHT : SL_ROW_NONE;
    bool fits =
        layer->index >= sl_layer_shape_reach(&layer->model->shape) && net->graph->row_orders == 1;
    for (int i = 0; fits && i < layer->inputs; i++)
        fits = is_readable(layer, i);
    return fits ? 0
                : sl_error(SL_ERR_SYSTEM,
                           "layer %d reads the outputs of %d layers (expected outputs of "
                           "its width with an activation, and one vertex order)",
                           layer->index + 1, layer->inputs);
}

static int jump_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    (void)wanted;
    if (!layer->last)
        return sl_error(SL_ERR_SYSTEM, "layer %d is a jump (expected no layer behind it)",
                        layer->index + 1);
    return plan_inputs(net, layer);
}

static void jump_forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    struct sl_epilogue_tiles finish = sl_layer_activation(net, layer, training);
    finish.before = layer->kind->scaled_input ? SL_ROW_INVERSE_RIGHT : SL_ROW_NONE;
    for (int i = 0; i < layer->inputs; i++) {
        const struct sl_product_input input = {.weight = weight_of(layer, i),
                                               .dense = &input_of(layer, i)->output};
        sl_product(net, layer, &input, i ? &layer->output : NULL,
                   i == layer->inputs - 1 ? &finish : NULL, &layer->output);
    }
}

static struct sl_matrix *jump_backward(struct sl_network *net, struct sl_layer *layer,
                                       struct sl_matrix *g)
{
    struct sl_matrix *h = &(layer - 1)->output;
    const struct sl_product_input input = {.weight = weight_of(layer, layer->inputs - 1),
                                           .dense = h};
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

/* ---- The largest ---- */

static int max_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    (void)wanted;
    int code = plan_inputs(net, layer);
    if (!code)
        code = sl_distribution_describe_cut(net->rt, net->graph->distribution, &layer->argmax,
                                            SL_FLOAT32, layer->columns.out_cut);
    if (!code)
        code = sl_network_keep(net, layer, layer->index, &layer->argmax);
    return code ? code : sl_network_plan_scratch_cut(net, 0, layer->columns.in_cut, SL_SLOT_SUM);
}

static void max_forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    const struct sl_matrix *m = &layer->output;
    (void)training;
    sl_network_take(net, &layer->argmax, layer->rows.hops);
    for (int i = 0; i < layer->inputs; i++)
        for (int t = 0; t < m->tile_rows * m->tile_cols; t++)
            sl_submit_jump_max(
                net->rt,
                &(struct sl_jump_max_tiles){
                    .number = i,
                    .scales = &net->graph->scales[0][t / m->tile_cols],
                    .factor = layer->kind->scaled_input ? SL_ROW_INVERSE_RIGHT : SL_ROW_NONE,
                    .x = &input_of(layer, i)->output.tiles[t],
                    .m = &m->tiles[t],
                    .argmax = &layer->argmax.tiles[t]});
}

/* Submit D = [D +] the gradient of the input of that number, before the epilogue. */
static void select_gradient(struct sl_network *net, struct sl_layer *jump, int number,
                            bool accumulate, const struct sl_matrix *d)
{
    for (int t = 0; t < d->tile_rows * d->tile_cols; t++)
        sl_submit_jump_max_back(net->rt, number, &jump->back.g->tiles[t], &jump->argmax.tiles[t],
                                accumulate, &d->tiles[t]);
}

static struct sl_matrix *max_backward(struct sl_network *net, struct sl_layer *layer,
                                      struct sl_matrix *g)
{
    (void)g;
    const struct sl_matrix *d = sl_network_scratch_cut(net, 0, layer->columns.in_cut, SL_SLOT_SUM,
                                                       sl_reach_of_input(layer));
    select_gradient(net, layer, layer->inputs - 1, false, d);
    return sl_layer_finish_sums(net, layer, d);
}

static int largest_of(const struct sl_layer_shape *shape)
{
    return shape->inputs > 1 && shape->kind->weights.count == 0 ? shape->inputs : 0;
}

int sl_jump_max_tasks(const struct sl_layer_shape *shape)
{
    return 2 * largest_of(shape);
}

double sl_jump_max_bytes(const struct sl_layer_shape *shape)
{
    enum { FORWARD = 12, BACK = 16 };
    return (double)(largest_of(shape) * (FORWARD + BACK));
}

/* ---- Backward from the next layer ---- */

struct sl_matrix *sl_jump_back(struct sl_network *net, struct sl_layer *layer,
                               const struct sl_matrix *d)
{
    struct sl_layer *jump = &net->layer[jump_of(net)];
    struct sl_matrix *h = &(layer - 1)->output;
    const int number =
        (int)(layer - 1 - input_of(jump, 0)) / sl_layer_shape_stride(&jump->model->shape);
    if (jump->kind->weights.count == 0) {
        select_gradient(net, jump, number, true, d);
        return sl_layer_finish_sums(net, layer, d);
    }
    const struct sl_product_input input = {.weight = weight_of(jump, number), .dense = h};
    const struct sl_epilogue_tiles finish = sl_layer_activation_back(net, layer);
    sl_product_back(net, jump,
                    &(struct sl_product_gradient){.h = &input,
                                                  .v = jump->back.g,
                                                  .accumulate = jump->model->shape.shared,
                                                  .added = d,
                                                  .epilogue = &finish,
                                                  .mask = sl_layer_mask(layer),
                                                  .y = h});
    return h;
}

/* ---- The forward program ---- */

/* Return the value of the input of that number. */
static int input_value(const struct sl_forward *forward, int number)
{
    const int others = forward->shape->inputs - 1 - number;
    return forward->outputs[forward->index - others * sl_layer_shape_stride(forward->shape)];
}

/* Inputs side by side times a matrix are a sum of products with its rows. */
static int jump_describe(const struct sl_forward *forward)
{
    const bool shared = forward->shape->shared;
    int sum = input_value(forward, 0);
    if (!shared)
        sum = sl_forward_product(forward, sum, 0, 0);
    for (int i = 1; i < forward->shape->inputs; i++) {
        int value = input_value(forward, i);
        if (!shared)
            value = sl_forward_product(forward, value, 0, i);
        sum = sl_forward_add(forward, 1.0, sum, 1.0, value);
    }
    return sl_forward_finish(forward, shared ? sl_forward_product(forward, sum, 0, 0) : sum);
}

static int max_describe(const struct sl_forward *forward)
{
    int value = input_value(forward, 0);
    for (int i = 1; i < forward->shape->inputs; i++)
        value = sl_forward_step(
            forward, value,
            (struct sl_step){.kind = SL_STEP_LARGER, .of = {value, input_value(forward, i)}}, NULL);
    return value;
}

#define STEPS                                                                                \
    .weights = {.count = 1, .linear = 1, .name = {"weight"}}, .bias = "bias", .alone = true, \
    .plan = jump_plan, .forward = jump_forward, .backward = jump_backward,                   \
    .aggregations = sl_layer_no_aggregations, .describe = jump_describe

const struct sl_layer_kind sl_layer_jump = {.name = "jump", .scaled_input = true, STEPS};
const struct sl_layer_kind sl_layer_jump_plain = {.name = "jump-plain", STEPS};

#define MAX_STEPS                                                                      \
    .alone = true, .plan = max_plan, .forward = max_forward, .backward = max_backward, \
    .aggregations = sl_layer_no_aggregations, .describe = max_describe

const struct sl_layer_kind sl_layer_jump_max = {
    .name = "jump-max", .scaled_input = true, MAX_STEPS};
const struct sl_layer_kind sl_layer_jump_max_plain = {.name = "jump-max-plain", MAX_STEPS};
