/* clang-format off */
/* R-GCN (Schlichtkrull, Kipf, Bloem, van den Berg, Titov & Welling, ESWC 2018): output = drop(relu(H·W + Z + b)), Z_i = Σ_j f_ij · H_j·W_r over the neighbours j of i (graphs/reduce_rgcn.c). H is the input of the layer after dropout. W is the vertex's own weight, W_r the weight of relation r.
 *
 *   backward   D = the walk back      dW_r are sums over edges
 *              dW = Hᵀ·G              db = column sums of G
 *              G of the layer before = drop(relu'(D + G·Wᵀ)) */
/* clang-format on */
#include "graphs/layer_rgcn.h"

#include <math.h>
#include <stdlib.h>

#include "codelets/bases.h"
#include "codelets/paste.h"
#include "codelets/relations.h"
#include "core/error.h"
#include "graphs/forward.h"
#include "graphs/layer.h"
#include "graphs/reach.h"

struct rgcn {
    struct sl_bases bases;
    struct sl_tile weight; // (relations · in, out), on this rank, made of bases; no rows: W_r are
                           // parameters
    struct sl_edge_sums sums;
    int64_t *d_cut; // (columns + 1): the cut of D (sl_edge_sums_cut)
};

/* ---- Plan ---- */

static int rgcn_cut(const struct sl_layer_shape *shape, const struct sl_grid *grid, int64_t *output,
                    int64_t *product)
{
    (void)output;
    (void)product;
    if (shape->relations < 1 || shape->in > SL_RELATIONS_COLUMNS ||
        shape->out > SL_RELATIONS_COLUMNS)
        return sl_error(SL_ERR_USAGE,
                        "--model rgcn: a layer of %lld relations, from %lld to %lld columns "
                        "(expected at least 1, and at most %d: --encoder linear)",
                        (long long)shape->relations, (long long)shape->in, (long long)shape->out,
                        SL_RELATIONS_COLUMNS);
    if (shape->bases > shape->out)
        return sl_error(
            SL_ERR_USAGE,
            "--bases %lld: a layer has %lld columns (expected at most as many bases, or "
            "--classifier linear)",
            (long long)shape->bases, (long long)shape->out);
    return grid->columns == 1
               ? 0
               : sl_error(SL_ERR_USAGE,
                          "--model rgcn: rows of features are not cut for %d columns of ranks "
                          "(expected --distribution 1d, 1.5d, halo, cover or vertex-cut)",
                          grid->columns);
}

/* Sparse features are expanded, as for a layer whose SpMM comes first. */
static int rgcn_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    struct rgcn *rgcn = calloc(1, sizeof *rgcn);
    (void)wanted;
    layer->own = rgcn;
    layer->order = SL_SPMM_FIRST;
    layer->back.gradient_factor = SL_ROW_NONE;
    if (!rgcn)
        return sl_error(SL_ERR_SYSTEM, "no memory for a layer");
    if (net->graph->type != SL_FLOAT32 || net->graph->row_orders > 1)
        return sl_error(SL_ERR_SYSTEM, "a sum over relations on bfloat16, or on two orders");
    const struct sl_layer_shape *const shape = &layer->model->shape;
    const int64_t rows = shape->relations * layer->in;
    rgcn->bases = (struct sl_bases){shape->relations, shape->bases, layer->in, layer->out};
    int code = sl_edge_sums_create(net, &rgcn->sums, rows, layer->out);
    if (!code && shape->bases)
        code =
            sl_tile_create(net->rt, &rgcn->weight, rows, layer->out, sizeof(float), net->rt->rank);
    rgcn->d_cut = sl_edge_sums_cut(net, layer);
    if (!code)
        code = rgcn->d_cut ? 0 : SL_ERR_SYSTEM;
    if (!code)
        code = sl_network_plan_scratch_cut(net, layer->input_order, rgcn->d_cut, SL_SLOT_SUM);
    if (!code)
        code = sl_layer_plan_aggregations(net, layer);
    return code ? code : sl_layer_plan_dropped(net, layer);
}

static void rgcn_destroy(struct sl_layer *layer)
{
    struct rgcn *rgcn = layer->own;
    free(rgcn->d_cut);
    sl_tile_destroy(&rgcn->weight);
    sl_edge_sums_destroy(&rgcn->sums);
    free(rgcn);
}

static struct sl_layer_memory rgcn_memory(const struct sl_layer *layer)
{
    const struct rgcn *rgcn = layer->own;
    return (struct sl_layer_memory){
        .tile = {&rgcn->weight}, .tiles = rgcn->sums.count, .of_rows = rgcn->sums.tile};
}

static int rgcn_aggregations(const struct sl_network *net, const struct sl_layer *layer,
                             struct sl_aggregation list[SL_AGGREGATIONS])
{
    const struct rgcn *rgcn = layer->own;
    (void)net;
    list[0] = (struct sl_aggregation){.width = layer->in,
                                      .cut = layer->columns.in_cut,
                                      .type = SL_FLOAT32,
                                      .reducer = layer->reducer,
                                      .state = layer->columns.out_cut};
    list[1] = (struct sl_aggregation){.transposed = true,
                                      .width = layer->out,
                                      .cut = layer->columns.out_cut,
                                      .type = SL_FLOAT32,
                                      .reducer = layer->reducer->back,
                                      .state = rgcn->d_cut,
                                      .operands = layer->columns.in_cut};
    return 2;
}

/* ---- Steps ---- */

static struct sl_rgcn_pass pass_of(struct sl_layer *layer)
{
    struct rgcn *rgcn = layer->own;
    const bool bases = rgcn->weight.rows > 0;
    return (struct sl_rgcn_pass){.relations = rgcn->bases.relations,
                                 .weight = bases ? &rgcn->weight : &layer->model->parameters,
                                 .weight_row = bases ? 0 : layer->in,
                                 .sums = &rgcn->sums,
                                 .first = layer->index == 0};
}

static struct sl_product_input own_input(const struct sl_network *net, const struct sl_layer *layer,
                                         bool training)
{
    return (struct sl_product_input){.dense = sl_layer_dense_input(net, layer, training)};
}

static void rgcn_forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    const struct rgcn *rgcn = layer->own;
    const struct sl_rgcn_pass pass = pass_of(layer);
    const struct sl_epilogue_tiles finish = sl_layer_activation(net, layer, training);
    if (rgcn->weight.rows > 0)
        sl_submit_bases(net->rt, &rgcn->bases, &layer->model->parameters, layer->in, pass.weight);
    if (sl_layer_dense_input(net, layer, training) == &layer->dropped)
        sl_layer_drop_input(net, layer, training);
    const struct sl_product_input own = own_input(net, layer, training);
    sl_network_walk(
        net, layer, SL_WALK_FORWARD,
        &(struct sl_reduction){.moved = {own.dense}, .out = {&layer->output}, .parameters = &pass});
    sl_product(net, layer, &own, &layer->output, &finish, &layer->output);
}

/* Submit the further rows of a part of the gradient, from a part of dW_r. */
static void give_sums(struct sl_network *net, struct sl_layer *layer, struct sl_tile *sums,
                      struct sl_tile *further)
{
    const struct rgcn *rgcn = layer->own;
    const int64_t row = further->rows - sl_layer_further_rows(layer);
    if (rgcn->weight.rows > 0)
        sl_submit_bases_back(net->rt, &rgcn->bases, &layer->model->parameters, layer->in, sums,
                             further, row);
    else
        sl_submit_paste(net->rt, &(struct sl_paste_tiles){.x = sums, .y = further, .y_row = row});
}

static struct sl_matrix *rgcn_backward(struct sl_network *net, struct sl_layer *layer,
                                       struct sl_matrix *g)
{
    struct rgcn *rgcn = layer->own;
    const struct sl_rgcn_pass pass = pass_of(layer);
    const struct sl_tile_run run = sl_grid_group(net->graph->distribution, net->rt->rank);
    const bool first = layer->index == 0, sums = !first && sl_layer_leaves_sums(net, layer);
    const struct sl_epilogue_tiles finish =
        first || sums ? SL_EPILOGUE_NONE : sl_layer_activation_back(net, layer);
    sl_layer_drop_again(net, layer);
    const struct sl_product_input own = own_input(net, layer, true);
    struct sl_matrix *const d = sl_network_scratch_cut(net, layer->input_order, rgcn->d_cut,
                                                       SL_SLOT_SUM, sl_reach_of_input(layer));
    sl_edge_sums_begin(&rgcn->sums);
    sl_network_walk(
        net, layer, SL_WALK_BACK,
        &(struct sl_reduction){.moved = {g}, .row = {own.dense}, .out = {d}, .parameters = &pass});
    sl_edge_sums_end(net, layer, &rgcn->sums);
    struct sl_product_gradient back = {.h = &own, .v = g, .g = g};
    if (!first) {
        back.added = d;
        back.epilogue = sums ? NULL : &finish;
        back.mask = sums ? NULL : sl_layer_mask(layer);
        back.y = sums ? d : &(layer - 1)->output;
    }
    sl_product_back(net, layer, &back);
    for (int i = run.from; i < run.to; i++)
        give_sums(net, layer, sl_edge_sums_of(&rgcn->sums, i), sl_product_further(net, layer, i));
    if (!first)
        sl_layer_add_gradient(net, layer, g, back.y);
    return back.y;
}

/* Entries are sorted by relation, so their rows come from memory. Rows that meet a relation are
 * then copied, multiplied and added (codelets/relations.h). Going back there are two products; in
 * the first layer, one. Relations are taken to be spread evenly. */
static double rgcn_seconds(const struct sl_layer_shape *shape, const struct sl_walk_size *walk)
{
    enum { COPIES = 3 };
    const bool back = walk->way == SL_WALK_BACK;
    const double in = (double)shape->in, out = (double)shape->out,
                 products = 1 + (back && !walk->first), all = walk->rows * (double)shape->relations,
                 met = all * -expm1(-walk->entries / fmax(all, 1.0));
    return walk->entries * 4.0 * (back ? out : in) / walk->rates->gather[SL_LEVEL_MEMORY][0] +
           met * (products * 2.0 * in * out / walk->rates->gemm +
                  COPIES * 4.0 * (in + out) / walk->rates->gather[SL_LEVEL_CORE][0]);
}

static int rgcn_describe(const struct sl_forward *forward)
{
    const struct sl_layer_shape *shape = forward->shape;
    const int input = sl_forward_input(forward), own = sl_forward_product(forward, input, 0, 0);
    const char *const names[SL_STEP_TENSORS] = {shape->kind->edge, shape->bases ? "comp" : NULL};
    const int sums = sl_forward_step(forward, input,
                                     (struct sl_step){.kind = SL_STEP_RELATIONS,
                                                      .relations = shape->relations,
                                                      .bases = shape->bases},
                                     names);
    return sl_forward_finish(forward, sl_forward_add(forward, 1.0, own, 1.0, sums));
}

/* Names of parameters are PyG's. */
const struct sl_layer_kind sl_layer_rgcn = {
    .name = "rgcn",
    .weights = {.count = 1, .name = {"root"}},
    .edge = "weight",
    .bias = "bias",
    .leaves_sums = true,
    .cut = rgcn_cut,
    .plan = rgcn_plan,
    .forward = rgcn_forward,
    .backward = rgcn_backward,
    .aggregations = rgcn_aggregations,
    .seconds = rgcn_seconds,
    .memory = rgcn_memory,
    .destroy = rgcn_destroy,
    .describe = rgcn_describe,
};
