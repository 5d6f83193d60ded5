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
#include "graphs/forward.h"
#include "graphs/layer.h"
#include "graphs/reach.h"

struct gine {
    struct sl_tile edge; // (K + 1, own columns), on this rank: it never travels
    struct sl_edge_sums sums;
    int64_t *d_cut; // (columns + 1): the cut of D (sl_edge_sums_cut)
};

/* ---- Plan ---- */

static int own_column(const struct sl_network *net)
{
    return sl_grid_column(&net->graph->distribution->grid, net->rt->rank);
}

/* Sparse features are expanded, as for a layer whose SpMM comes first. */
static int gine_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    const int64_t rows = layer->edge_features + 1,
                  cols = sl_cut_width(layer->columns.in_cut, own_column(net));
    struct gine *gine = calloc(1, sizeof *gine);
    (void)wanted;
    layer->own = gine;
    layer->order = SL_SPMM_FIRST;
    layer->back.gradient_factor = SL_ROW_NONE;
    if (!gine)
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
    int code = sl_tile_create(net->rt, &gine->edge, rows, cols, sizeof(float), net->rt->rank);
    if (!code)
        code = sl_edge_sums_create(net, &gine->sums, rows, cols);
    gine->d_cut = sl_edge_sums_cut(net, layer);
    if (!code)
        code = gine->d_cut ? 0 : SL_ERR_SYSTEM;
    if (!code)
        code = sl_network_plan_scratch_cut(net, layer->input_order, gine->d_cut, SL_SLOT_SUM);
    if (!code)
        code = sl_layer_plan_aggregations(net, layer);
    return code ? code : sl_layer_plan_dropped(net, layer);
}

static void gine_destroy(struct sl_layer *layer)
{
    struct gine *gine = layer->own;
    free(gine->d_cut);
    sl_tile_destroy(&gine->edge);
    sl_edge_sums_destroy(&gine->sums);
    free(gine);
}

static struct sl_layer_memory gine_memory(const struct sl_layer *layer)
{
    const struct gine *gine = layer->own;
    return (struct sl_layer_memory){
        .tile = {&gine->edge}, .tiles = gine->sums.count, .of_rows = gine->sums.tile};
}

static int gine_aggregations(const struct sl_network *net, const struct sl_layer *layer,
                             struct sl_aggregation list[SL_AGGREGATIONS])
{
    const struct gine *gine = layer->own;
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
                                      .state = gine->d_cut,
                                      .operands = layer->columns.in_cut};
    return 2;
}

/* ---- Steps ---- */

static void gine_forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    struct gine *gine = layer->own;
    const struct sl_gine_pass pass = {.edge = &gine->edge};
    struct sl_epilogue_tiles finish = sl_layer_finish(net, layer, training);
    if (sl_layer_dense_input(net, layer, training) == &layer->dropped)
        sl_layer_drop_input(net, layer, training);
    const struct sl_matrix *const h = sl_layer_dense_input(net, layer, training);
    sl_submit_paste(net->rt,
                    &(struct sl_paste_tiles){.x = &layer->model->parameters,
                                             .x_col = layer->columns.in_cut[own_column(net)],
                                             .y = &gine->edge});
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
    struct gine *gine = layer->own;
    const struct sl_gine_pass pass = {&gine->edge, &gine->sums, layer->index == 0};
    const struct sl_tile_run own = sl_grid_group(net->graph->distribution, net->rt->rank);
    sl_layer_drop_again(net, layer);
    struct sl_matrix *const d = sl_network_scratch_cut(net, layer->input_order, gine->d_cut,
                                                       SL_SLOT_SUM, sl_reach_of_input(layer));
    sl_edge_sums_begin(&gine->sums);
    sl_network_walk(net, layer, SL_WALK_BACK,
                    &(struct sl_reduction){.moved = {g},
                                           .row = {sl_layer_dense_input(net, layer, true)},
                                           .out = {d},
                                           .parameters = &pass});
    sl_edge_sums_end(net, layer, &gine->sums);
    for (int i = own.from; i < own.to; i++)
        sl_submit_paste(net->rt, &(struct sl_paste_tiles){.x = sl_edge_sums_of(&gine->sums, i),
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
    .memory = gine_memory,
    .destroy = gine_destroy,
    .describe = gine_describe,
};
