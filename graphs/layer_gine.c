/* The aggregation of GINE: output = drop(H + Z), Z_i = Σ_j relu(H_j + f_ij·W + b) over the
 * neighbours j of i (graphs/reduce_gine.c). H is the input of the layer after dropout, and as wide
 * as the output.
 *
 *   backward   D = G + the walk back     dW, db are sums over edges
 *              G of the layer before = drop(activation'(D)) */
#include "graphs/layer_gine.h"

#include <stdlib.h>

#include "codelets/gine.h"
#include "codelets/paste.h"
#include "core/error.h"
#include "core/rates.h"
#include "graphs/forward.h"
#include "graphs/layer.h"

/* ---- Plan ---- */

static int own_column(const struct sl_network *net)
{
    return sl_grid_column(&net->graph->distribution->grid, net->rt->rank);
}

static int gine_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    (void)wanted;
    layer->own = calloc(1, sizeof(struct sl_edge_layer));
    if (!layer->own)
        return sl_error(SL_ERR_SYSTEM, "no memory for a layer");
    if (net->graph->type != SL_FLOAT32 || net->graph->row_orders > 1 || layer->in != layer->out ||
        layer->edge_features < 1)
        return sl_error(SL_ERR_SYSTEM, "a sum of GINE on bfloat16, on two orders, of another width "
                                       "than its input, or without edge features");
    if (layer->in > SL_GINE_COLUMNS)
        return sl_error(
            SL_ERR_USAGE,
            "--model gine: a layer of %lld columns (expected at most %d: --encoder linear, "
            "or a smaller --hidden)",
            (long long)layer->in, SL_GINE_COLUMNS);
    return sl_edge_layer_plan(net, layer, layer->edge_features + 1,
                              sl_cut_width(layer->columns.in_cut, own_column(net)), true);
}

static int gine_aggregations(const struct sl_network *net, const struct sl_layer *layer,
                             struct sl_aggregation list[SL_AGGREGATIONS])
{
    const struct sl_edge_layer *own = layer->own;
    (void)net;
    list[0] = (struct sl_aggregation){.width = layer->in,
                                      .cut = layer->columns.in_cut,
                                      .type = SL_FLOAT32,
                                      .reducer = layer->reducer};
    list[1] = (struct sl_aggregation){.transposed = true,
                                      .width = layer->in,
                                      .cut = layer->columns.in_cut,
                                      .type = SL_FLOAT32,
                                      .reducer = layer->reducer->back,
                                      .state = own->d_cut,
                                      .operands = layer->columns.in_cut};
    return 2;
}

/* ---- Steps ---- */

static void gine_forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    struct sl_edge_layer *own = layer->own;
    const struct sl_gine_pass pass = {.edge = &own->weight};
    struct sl_epilogue_tiles finish = sl_layer_finish(net, layer, training);
    if (sl_layer_dense_input(net, layer, training) == &layer->dropped)
        sl_layer_drop_input(net, layer, training);
    const struct sl_matrix *const h = sl_layer_dense_input(net, layer, training);
    sl_submit_paste(net->rt,
                    &(struct sl_paste_tiles){.x = &layer->model->parameters,
                                             .x_col = layer->columns.in_cut[own_column(net)],
                                             .y = &own->weight});
    sl_network_walk(
        net, layer, SL_WALK_FORWARD,
        &(struct sl_reduction){.moved = {h}, .out = {&layer->output}, .parameters = &pass});
    sl_layer_add_rows(net, layer, h, &layer->output);
    finish.parameters = NULL; /* the bias is the edges' own */
    if (finish.drop.threshold || finish.after != SL_ROW_NONE)
        sl_network_finish(net, &finish, NULL, &layer->output, &layer->output);
}

static struct sl_matrix *gine_backward(struct sl_network *net, struct sl_layer *layer,
                                       struct sl_matrix *g)
{
    struct sl_edge_layer *own = layer->own;
    const struct sl_gine_pass pass = {&own->weight, &own->sums, layer->index == 0};
    const struct sl_tile_run run = sl_grid_group(net->graph->distribution, net->rt->rank);
    sl_layer_drop_again(net, layer);
    struct sl_matrix *const d = sl_edge_layer_back(net, layer, g, &pass);
    for (int i = run.from; i < run.to; i++)
        sl_submit_paste(net->rt, &(struct sl_paste_tiles){.x = sl_edge_sums_of(&own->sums, i),
                                                          .y = sl_product_further(net, layer, i)});
    if (layer->index == 0)
        return NULL;
    sl_layer_add_rows(net, layer, g, d);
    if (sl_layer_leaves_sums(net, layer))
        return d;
    const struct sl_epilogue_tiles finish = sl_layer_activation_back(net, layer);
    sl_network_finish(net, &finish, sl_layer_mask(layer), d, &(layer - 1)->output);
    return &(layer - 1)->output;
}

/* Each walk multiplies features with W for each column of an entry; the walk back also sums their
 * products with gradients. */
static double gine_seconds(const struct sl_layer_shape *shape, const struct sl_walk_size *walk)
{
    static const double COLUMN = 8.0;
    const double flops = walk->way == SL_WALK_BACK ? 4.0 : 2.0;
    return walk->entries * (double)shape->in / walk->columns *
           (COLUMN / walk->rates->features +
            flops * (double)shape->edge_features / walk->rates->gemm);
}

static int gine_describe(const struct sl_forward *forward)
{
    const struct sl_layer_kind *kind = forward->shape->kind;
    const int input = sl_forward_input(forward);
    const char *const names[SL_STEP_TENSORS] = {kind->edge,
                                                forward->shape->bias ? kind->bias : NULL};
    const int sums = sl_forward_step(forward, input, (struct sl_step){.kind = SL_STEP_GINE}, names);
    return sl_forward_add(forward, 1.0, sums, 1.0, input);
}

/* Names of parameters are PyG's. */
const struct sl_layer_kind sl_layer_gine = {
    .name = "gine",
    .edge = "lin.weight",
    .bias = "lin.bias",
    .leaves_sums = true,
    .plan = gine_plan,
    .forward = gine_forward,
    .backward = gine_backward,
    .aggregations = gine_aggregations,
    .seconds = gine_seconds,
    .memory = sl_edge_layer_memory,
    .destroy = sl_edge_layer_destroy,
    .describe = gine_describe,
};
