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
#include "core/rates.h"
#include "graphs/forward.h"
#include "graphs/layer.h"

/* `edge` has the weights (relations · in, out) that bases make; without bases, parameters do. */
struct rgcn {
    struct sl_edge_layer edge;
    struct sl_bases bases;
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

static int rgcn_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    struct rgcn *rgcn = layer->own = calloc(1, sizeof *rgcn);
    const struct sl_layer_shape *const shape = &layer->model->shape;
    (void)wanted;
    if (!rgcn)
        return sl_error(SL_ERR_SYSTEM, "no memory for a layer");
    if (net->graph->type != SL_FLOAT32 || net->graph->row_orders > 1)
        return sl_error(SL_ERR_SYSTEM, "a sum over relations on bfloat16, or on two orders");
    rgcn->bases = (struct sl_bases){shape->relations, shape->bases, layer->in, layer->out};
    return sl_edge_layer_plan(net, layer, shape->relations * layer->in, layer->out,
                              shape->bases > 0);
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
                                      .state = rgcn->edge.d_cut,
                                      .operands = layer->columns.in_cut};
    return 2;
}

/* ---- Steps ---- */

static struct sl_rgcn_pass pass_of(struct sl_layer *layer)
{
    struct rgcn *rgcn = layer->own;
    const bool bases = rgcn->edge.weight.rows > 0;
    return (struct sl_rgcn_pass){.relations = rgcn->bases.relations,
                                 .weight = bases ? &rgcn->edge.weight : &layer->model->parameters,
                                 .weight_row = bases ? 0 : layer->in,
                                 .sums = &rgcn->edge.sums,
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
    if (rgcn->edge.weight.rows > 0)
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
    if (rgcn->edge.weight.rows > 0)
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
    struct sl_matrix *const d = sl_edge_layer_back(net, layer, g, &pass);
    struct sl_product_gradient back = {.h = &own, .v = g, .g = g};
    if (!first) {
        back.added = d;
        back.epilogue = sums ? NULL : &finish;
        back.mask = sums ? NULL : sl_layer_mask(layer);
        back.y = sums ? d : &(layer - 1)->output;
    }
    sl_product_back(net, layer, &back);
    for (int i = run.from; i < run.to; i++)
        give_sums(net, layer, sl_edge_sums_of(&rgcn->edge.sums, i),
                  sl_product_further(net, layer, i));
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
    .memory = sl_edge_layer_memory,
    .destroy = sl_edge_layer_destroy,
    .describe = rgcn_describe,
};
