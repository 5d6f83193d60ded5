/* clang-format off */
/* GraphSAGE (Hamilton, Ying & Leskovec): output = drop(relu(H·W + L·A·H·N + b)). H is the input of
 * the layer after dropout. W is the vertex's own weight, N the weight of the neighbours. The last
 * layer has no relu and no dropout. L is 1 / number of neighbours for the mean, and 1 for the sum.
 * The aggregator of DistGNN, with one weight for vertex and neighbours, is a GCN layer with other
 * factors. A maximum or minimum (graphs/reduce_extremum.c) takes the place of L·A·H, with the SpMM
 * first. The gradient of the maximum then takes the place of Aᵀ.
 *
 *   forward   GEMM first   T = H·N      Y = L·(A·T)
 *             SpMM first   U = L·(A·H)  Y = U·N
 *             aggregated                Y = (L·A·X)·N
 *             all          H of the next layer = drop(relu(Y + H·W + b))
 *   backward  GEMM first   V = Aᵀ·(L·G)   dN = Hᵀ·V   D = V·Nᵀ
 *             SpMM first   dN = Uᵀ·G                  D = Aᵀ·(L·(G·Nᵀ))
 *             aggregated   dN = (L·A·X)ᵀ·G
 *             all          dW = Hᵀ·G   db = column sums of G
 *                          G of the layer before = drop(relu'(D + G·Wᵀ)) */
/* clang-format on */
#include "codelets/epilogue.h"
#include "graphs/layer.h"

enum { OWN, NEIGHBOURS };

enum { WORK, EVEN, ODD, SCALED }; /* slots of work matrices */

/* Return the slot of the gradient of the layer before. The layer's own gradient is elsewhere: a
 * layer of another kind, or the loss, leaves it in the output or in slot EVEN. */
static int gradient_slot(const struct sl_network *net, const struct sl_layer *layer)
{
    const struct sl_model *model = net->model;
    int slot = ODD;
    for (int l = layer->index + 1; l < model->layers && model->layer[l].shape.kind == layer->kind;
         l++)
        slot = slot == ODD ? EVEN : ODD;
    return slot;
}

/* Whether the reducer takes a maximum or minimum, and keeps its argmax. */
static bool has_argmax(const struct sl_layer *layer)
{
    return layer->reducer->outputs > 1;
}

static int sage_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    const bool first = layer->index == 0, narrow = net->graph->type != SL_FLOAT32;
    layer->order = has_argmax(layer) ? SL_SPMM_FIRST : sl_layer_choose_order(net, layer, wanted);
    layer->gradient_factor = SL_ROW_NONE;
    const int from = layer->input_order, to = layer->output.row_order; /* rows */
    int code = sl_layer_plan_aggregations(net, layer);
    if (!code && has_argmax(layer))
        code = sl_distribution_create_rows(net->rt, &net->graph->distribution[to], &layer->argmax,
                                           SL_FLOAT32, layer->in);
    if (!code && narrow && !layer->last)
        code = sl_network_plan_sums(net, to, layer->out, true);
    if (!code && layer->order == SL_GEMM_FIRST)
        code = sl_network_plan_scratch(net, from, net->graph->type, layer->out, WORK);
    if (!code && layer->order == SL_GEMM_FIRST && narrow && sl_layer_input_is_sparse(net, layer))
        code = sl_network_plan_sums(net, from, layer->out, true);
    if (!code && layer->order == SL_GEMM_FIRST)
        code = sl_network_plan_scratch(net, from, SL_FLOAT32, layer->out, WORK);
    if (!code && layer->order == SL_GEMM_FIRST)
        code = sl_network_plan_scratch(net, to, SL_FLOAT32, layer->out, SCALED);
    if (!code && layer->order == SL_SPMM_FIRST)
        code = sl_distribution_create_rows(net->rt, &net->graph->distribution[to],
                                           &layer->aggregated, net->graph->type, layer->in);
    if (!code && layer->order == SL_SPMM_FIRST && !has_argmax(layer))
        code = sl_network_plan_sums(net, to, layer->in, false);
    if (!code && layer->order == SL_SPMM_FIRST && !first)
        code = sl_network_plan_scratch(net, to, SL_FLOAT32, layer->in, WORK);
    if (!code && !first)
        code = sl_network_plan_scratch(net, from, SL_FLOAT32, layer->in, gradient_slot(net, layer));
    return code ? code : sl_layer_plan_dropped(net, layer);
}

/* What the own weight multiplies. */
static struct sl_product_input own_input(const struct sl_network *net, const struct sl_layer *layer,
                                         bool training)
{
    const struct sl_input *features = sl_network_input(net, layer, OWN);
    struct sl_product_input h = {.weight = OWN, .sparse = &features->csr};
    h.drop = sl_layer_dropout(net, layer, training);
    if (layer->index == 0 && net->graph->input.aggregated) /* never dropped out */
        h.dense = features->sparse ? NULL : &features->dense;
    else if (layer->index > 0 || !features->sparse)
        h.dense = sl_layer_dense_input(net, layer, training);
    return h;
}

/* What the neighbours' weight multiplies. */
static struct sl_product_input neighbours_input(const struct sl_network *net,
                                                const struct sl_layer *layer, bool training)
{
    struct sl_product_input h = sl_layer_product_input(net, layer, training);
    h.weight = NEIGHBOURS;
    return h;
}

/* L. */
static struct sl_epilogue_tiles scale(void)
{
    struct sl_epilogue_tiles e = SL_EPILOGUE_NONE;
    e.before = SL_ROW_LEFT;
    return e;
}

static void sage_forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    const struct sl_matrix *h = sl_layer_dense_input(net, layer, training);
    const struct sl_product_input own = own_input(net, layer, training),
                                  neighbours = neighbours_input(net, layer, training);
    const struct sl_epilogue_tiles mean = scale(),
                                   finish = sl_layer_activation(net, layer, training);
    struct sl_matrix *z = &layer->output, *y = sl_network_sums(net, z);
    if (h == &layer->dropped)
        sl_layer_drop_input(net, layer, training);
    if (layer->order == SL_GEMM_FIRST) {
        struct sl_matrix *t =
            sl_network_scratch(net, layer->input_order, net->graph->type, layer->out, WORK);
        sl_product(net, layer, &neighbours, NULL, NULL, t);
        sl_network_aggregate(net, layer, false, t, &mean, NULL, y);
    } else {
        if (has_argmax(layer))
            sl_network_walk(
                net, layer, false,
                &(struct sl_reduction){.moved = {h}, .out = {&layer->aggregated, &layer->argmax}});
        else if (layer->order == SL_SPMM_FIRST)
            sl_network_aggregate(net, layer, false, h, &mean, NULL, &layer->aggregated);
        sl_product(net, layer, &neighbours, NULL, NULL, y);
    }
    sl_product(net, layer, &own, y, &finish, z);
}

/* dN, and D, unless it is NULL. */
static void differentiate_neighbours(struct sl_network *net, struct sl_layer *layer,
                                     struct sl_matrix *g, struct sl_matrix *d)
{
    const struct sl_product_input neighbours = neighbours_input(net, layer, true);
    const struct sl_epilogue_tiles mean = scale();
    if (layer->order == SL_GEMM_FIRST) {
        struct sl_matrix *lg =
            sl_network_scratch(net, g->row_order, SL_FLOAT32, layer->out, SCALED);
        struct sl_matrix *v =
            sl_network_scratch(net, layer->input_order, SL_FLOAT32, layer->out, WORK);
        sl_network_finish(net, &mean, g, lg);
        sl_network_aggregate(net, layer, true, lg, NULL, NULL, v);
        sl_product_back(net, layer,
                        &(struct sl_product_gradient){.h = &neighbours, .v = v, .y = d});
    } else if (d) {
        struct sl_matrix *du = sl_network_scratch(net, g->row_order, SL_FLOAT32, layer->in, WORK);
        sl_product_back(
            net, layer,
            &(struct sl_product_gradient){.h = &neighbours, .v = g, .epilogue = &mean, .y = du});
        if (has_argmax(layer))
            sl_network_walk(net, layer, true,
                            &(struct sl_reduction){.moved = {du, &layer->argmax}, .out = {d}});
        else
            sl_network_aggregate(net, layer, true, du, NULL, NULL, d);
    } else {
        sl_product_back(net, layer, &(struct sl_product_gradient){.h = &neighbours, .v = g});
    }
}

static struct sl_matrix *sage_backward(struct sl_network *net, struct sl_layer *layer,
                                       struct sl_matrix *g)
{
    const struct sl_product_input own = own_input(net, layer, true);
    const struct sl_matrix *mask = layer->index > 0 ? &(layer - 1)->output : NULL;
    struct sl_matrix *d = layer->index > 0
                              ? sl_network_scratch(net, layer->input_order, SL_FLOAT32, layer->in,
                                                   gradient_slot(net, layer))
                              : NULL;
    struct sl_epilogue_tiles finish = SL_EPILOGUE_NONE;
    if (layer->index > 0)
        finish = sl_layer_activation_back(net, layer);
    differentiate_neighbours(net, layer, g, d);
    sl_product_back(
        net, layer,
        &(struct sl_product_gradient){
            .h = &own, .v = g, .g = g, .added = d, .epilogue = &finish, .mask = mask, .y = d});
    return d;
}

const struct sl_layer_kind sl_layer_sage = {
    .name = "sage",
    .weights = 2,
    .weight = {"lin_r.weight", "lin_l.weight"}, /* PyG's names */
    .bias = "lin_l.bias",
    .plan = sage_plan,
    .forward = sage_forward,
    .backward = sage_backward,
};
