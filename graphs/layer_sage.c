/* clang-format off */
/* GraphSAGE (Hamilton, Ying & Leskovec): output = drop(relu(H·W + L·A·H·N + b)). H is the input of the layer after dropout. W is the vertex's own weight, N the weight of the neighbours. The last layer has no relu and no dropout. L is 1 / number of neighbours for the mean, and 1 for the sum. The aggregator of DistGNN, with one weight for vertex and neighbours, is a GCN layer with other factors. A maximum or minimum (graphs/reduce_extremum.c) takes the place of L·A·H, with the SpMM first, and so does a program's reducer (graphs/reduce_own.c). The gradient of the maximum then takes the place of Aᵀ.
 *
 *   forward   GEMM first   T = H·N      Y = L·(A·T)
 *             SpMM first   U = L·(A·H)  Y = U·N
 *             aggregated                Y = (L·A·X)·N
 *             all          H of the next layer = drop(relu(Y + H·W + b))
 *   backward  GEMM first   V = Aᵀ·(L·G)   dN = Hᵀ·V   D = V·Nᵀ
 *             SpMM first   dN = Uᵀ·G                  D = Aᵀ·(L·(G·Nᵀ))
 *             aggregated   dN = (L·A·X)ᵀ·G
 *             all          dW = Hᵀ·G   db = column sums of G
 *                          G of the layer before = drop(relu'(D + G·Wᵀ))
 *
 * A graph convolution with a linear residual, output = drop(relu(H·W + L·S·R·H·N + b)), has the same steps. Its H is stored as H' = R·H, as for graph convolutions, and G as G' = G / R. Y and the sums have the factor R: Y' = R·Y, where L·R takes the place of L, and the output is drop(relu((Y' + H'·W) / R + b)). Going back, D' = D / R, and G of the layer before = drop(relu'(R·(D' + G'·Wᵀ))). */
/* clang-format on */
#include "codelets/epilogue.h"
#include "graphs/forward.h"
#include "graphs/layer.h"
#include "graphs/reach.h"

enum { OWN, NEIGHBOURS };

/* Return whether the reducer keeps another matrix for its gradient: the argmax of a maximum or
 * minimum, or a program's. */
static bool has_argmax(const struct sl_layer *layer)
{
    return layer->reducer->outputs > 1;
}

static int plan_spmm_first(struct sl_network *net, struct sl_layer *layer)
{
    const struct sl_distribution *d = &net->graph->distribution[layer->output.row_order];
    int code =
        sl_distribution_describe_rows(net->rt, d, &layer->aggregated, net->graph->type, layer->in);
    if (!code)
        code = sl_network_keep(net, layer, layer->index, &layer->aggregated);
    if (!code && has_argmax(layer))
        code = sl_distribution_describe_rows(net->rt, d, &layer->argmax, SL_FLOAT32, layer->in);
    if (!code && has_argmax(layer))
        code = sl_network_keep(net, layer, layer->index, &layer->argmax);
    if (!code && !has_argmax(layer))
        code = sl_network_plan_sums(net, d->row_order, layer->in);
    return code || layer->index == 0
               ? code
               : sl_network_plan_scratch(net, d->row_order, sl_layer_moved_back(net, layer),
                                         layer->in, SL_SLOT_WORK);
}

static int sage_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    const enum sl_type type = net->graph->type;
    const int from = layer->input_order, to = layer->output.row_order; /* vertex orders of rows */
    /* The stream of residual blocks needs G without L. */
    layer->order = has_argmax(layer) || layer->model->shape.block
                       ? SL_SPMM_FIRST
                       : sl_layer_choose_order(net, layer, wanted);
    layer->back.gradient_factor = layer->kind->scaled_input ? SL_ROW_INVERSE_RIGHT : SL_ROW_NONE;
    int code = sl_layer_plan_aggregations(net, layer);
    if (!code && type != SL_FLOAT32 && !layer->last)
        code = sl_network_plan_scratch(net, to, SL_FLOAT32, layer->out, SL_SLOT_SUM);
    if (!code && layer->order == SL_GEMM_FIRST)
        code = sl_network_plan_scratch(net, from, type, layer->out, SL_SLOT_WORK);
    if (!code && layer->order == SL_GEMM_FIRST)
        code = sl_network_plan_sums(net, from, layer->out);
    if (!code && layer->order == SL_SPMM_FIRST)
        code = plan_spmm_first(net, layer);
    if (!code && layer->index > 0)
        code = sl_network_plan_scratch(net, from, SL_FLOAT32, layer->in, SL_SLOT_SUM);
    return code ? code : sl_layer_plan_dropped(net, layer);
}

/* Return the input of the vertex's own weight. */
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

/* Return the input of the neighbours' weight. */
static struct sl_product_input neighbours_input(const struct sl_network *net,
                                                const struct sl_layer *layer, bool training)
{
    struct sl_product_input h = sl_layer_product_input(net, layer, training);
    h.weight = NEIGHBOURS;
    return h;
}

/* Return the epilogue that multiplies rows by a row scale, before all else. */
static struct sl_epilogue_tiles scale_by(enum sl_row_scale factor)
{
    struct sl_epilogue_tiles e = SL_EPILOGUE_NONE;
    e.before = factor;
    return e;
}

/* Return the epilogue that scales sums over neighbours, before all else. */
static struct sl_epilogue_tiles scale(const struct sl_layer *layer)
{
    return scale_by(layer->kind->scaled_input ? SL_ROW_BOTH : SL_ROW_LEFT);
}

/* Return whether Y comes from aggregated features, which lack the factor R of the own input. */
static bool lacks_factor(const struct sl_layer *layer)
{
    return layer->order == SL_AGGREGATED && layer->kind->scaled_input;
}

/* Aggregate H into `aggregated`, where the SpMM comes first. */
static void aggregate(struct sl_network *net, struct sl_layer *layer, const struct sl_matrix *h)
{
    const struct sl_epilogue_tiles mean = scale(layer);
    sl_network_take(net, &layer->aggregated, layer->rows.hops);
    if (has_argmax(layer))
        sl_network_take(net, &layer->argmax, layer->rows.hops);
    if (has_argmax(layer))
        sl_network_walk(
            net, layer, SL_WALK_FORWARD,
            &(struct sl_reduction){.moved = {h}, .out = {&layer->aggregated, &layer->argmax}});
    else if (layer->order == SL_SPMM_FIRST)
        sl_network_aggregate(net, layer, false, h, &mean, NULL, &layer->aggregated);
}

static void sage_forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    const struct sl_matrix *h = sl_layer_dense_input(net, layer, training);
    const struct sl_product_input own = own_input(net, layer, training),
                                  neighbours = neighbours_input(net, layer, training);
    const struct sl_epilogue_tiles mean = scale(layer), own_factor = scale_by(SL_ROW_RIGHT);
    struct sl_epilogue_tiles finish = sl_layer_activation(net, layer, training);
    struct sl_matrix *z = &layer->output, *y = z;
    if (z->type != SL_FLOAT32)
        y = sl_network_scratch(net, z->row_order, SL_FLOAT32, layer->out, SL_SLOT_SUM,
                               layer->rows.hops);
    if (layer->kind->scaled_input)
        finish.before = SL_ROW_INVERSE_RIGHT;
    if (h == &layer->dropped)
        sl_layer_drop_input(net, layer, training);
    if (layer->order == SL_GEMM_FIRST) {
        struct sl_matrix *t =
            sl_network_scratch(net, layer->input_order, net->graph->type, layer->out, SL_SLOT_WORK,
                               sl_reach_of_input(layer));
        sl_product(net, layer, &neighbours, NULL, NULL, t);
        sl_network_aggregate(net, layer, false, t, &mean, NULL, y);
    } else {
        if (!net->aggregated)
            aggregate(net, layer, h);
        sl_product(net, layer, &neighbours, NULL, lacks_factor(layer) ? &own_factor : NULL, y);
    }
    sl_product(net, layer, &own, y, &finish, z);
}

/* Matrices on the way back: Y, the gradient for the layer before, and D, its float32 sum. Y may be
 * the mask, because H is read before. All are NULL for a first layer. Y is D where other terms join
 * the sum. */
struct back {
    struct sl_epilogue_tiles finish;
    struct sl_matrix *y, *mask, *d;
};

static struct back back_of(struct sl_network *net, struct sl_layer *layer)
{
    struct back back = {.finish = SL_EPILOGUE_NONE};
    if (layer->index == 0)
        return back;
    back.d = sl_network_scratch(net, layer->input_order, SL_FLOAT32, layer->in, SL_SLOT_SUM,
                                sl_reach_of_input(layer));
    back.y = back.d;
    if (sl_layer_leaves_sums(net, layer))
        return back;
    back.finish = sl_layer_activation_back(net, layer);
    back.y = &(layer - 1)->output;
    back.mask = sl_layer_mask(layer);
    return back;
}

/* Submit dW, db and D = G·Wᵀ; then G = L·G; then V, dN and Y. */
static void back_gemm_first(struct sl_network *net, struct sl_layer *layer, struct sl_matrix *g,
                            const struct back *back)
{
    const struct sl_product_input own = own_input(net, layer, true),
                                  neighbours = neighbours_input(net, layer, true);
    const struct sl_epilogue_tiles mean = scale(layer);
    sl_product_back(net, layer,
                    &(struct sl_product_gradient){.h = &own, .v = g, .g = g, .y = back->d});
    sl_layer_add_gradient(net, layer, g, back->d);
    sl_network_finish(net, &mean, NULL, g, g);
    struct sl_matrix *v = sl_network_scratch(net, layer->input_order, net->graph->type, layer->out,
                                             SL_SLOT_WORK, sl_reach_of_input(layer));
    sl_network_aggregate(net, layer, true, g, NULL, NULL, v);
    sl_product_back(
        net, layer,
        &(struct sl_product_gradient){.h = &neighbours,
                                      .v = v,
                                      .after_bias = true,
                                      .added = back->d,
                                      .epilogue = back->y == back->d ? NULL : &back->finish,
                                      .mask = back->mask,
                                      .y = back->y});
}

/* Submit dN, and D unless it is NULL. */
static void differentiate_neighbours(struct sl_network *net, struct sl_layer *layer,
                                     struct sl_matrix *g, struct sl_matrix *d)
{
    const struct sl_product_input neighbours = neighbours_input(net, layer, true);
    const struct sl_epilogue_tiles mean = scale(layer);
    if (!d) {
        sl_product_back(net, layer, &(struct sl_product_gradient){.h = &neighbours, .v = g});
        return;
    }
    struct sl_matrix *du = sl_network_scratch(net, g->row_order, sl_layer_moved_back(net, layer),
                                              layer->in, SL_SLOT_WORK, layer->rows.hops);
    sl_product_back(
        net, layer,
        &(struct sl_product_gradient){.h = &neighbours, .v = g, .epilogue = &mean, .y = du});
    if (has_argmax(layer))
        sl_network_walk(net, layer, SL_WALK_BACK,
                        &(struct sl_reduction){.moved = {du, &layer->argmax},
                                               .row = {sl_layer_dense_input(net, layer, true)},
                                               .out = {d}});
    else
        sl_network_aggregate(net, layer, true, du, NULL, NULL, d);
}

/* Submit dW, db and dN of a first layer whose Y lacks the factor R. */
static void back_without_factor(struct sl_network *net, struct sl_layer *layer, struct sl_matrix *g)
{
    const struct sl_product_input own = own_input(net, layer, true),
                                  neighbours = neighbours_input(net, layer, true);
    const struct sl_epilogue_tiles factor = scale_by(SL_ROW_RIGHT);
    sl_product_back(net, layer, &(struct sl_product_gradient){.h = &own, .v = g, .g = g});
    sl_network_finish(net, &factor, NULL, g, g);
    sl_product_back(net, layer,
                    &(struct sl_product_gradient){.h = &neighbours, .v = g, .after_bias = true});
}

static struct sl_matrix *sage_backward(struct sl_network *net, struct sl_layer *layer,
                                       struct sl_matrix *g)
{
    const struct back back = back_of(net, layer);
    sl_layer_drop_again(net, layer);
    if (lacks_factor(layer)) {
        back_without_factor(net, layer, g);
        return NULL;
    }
    if (layer->order == SL_GEMM_FIRST) {
        back_gemm_first(net, layer, g, &back);
        return back.y;
    }
    const struct sl_product_input own = own_input(net, layer, true);
    differentiate_neighbours(net, layer, g, back.d);
    sl_product_back(
        net, layer,
        &(struct sl_product_gradient){.h = &own,
                                      .v = g,
                                      .g = g,
                                      .added = back.d,
                                      .epilogue = back.y == back.d ? NULL : &back.finish,
                                      .mask = back.mask,
                                      .y = back.y});
    sl_layer_add_gradient(net, layer, g, back.d);
    return back.y;
}

/* The narrower of input and output is summed; maxima and minima are of the input. */
static int sage_describe(const struct sl_forward *forward)
{
    const struct sl_reducer *reducer = forward->shape->reducer;
    const enum sl_step_reduce reduce = reducer == &sl_reduce_max   ? SL_REDUCE_MAX
                                       : reducer == &sl_reduce_min ? SL_REDUCE_MIN
                                                                   : SL_REDUCE_SUM;
    const bool product_first = reduce == SL_REDUCE_SUM && forward->shape->out <= forward->shape->in;
    const int input = sl_forward_input(forward);
    if (reduce == SL_REDUCE_SUM && reducer != &sl_reduce_sum)
        return -1;
    int value = input;
    if (product_first)
        value = sl_forward_product(forward, value, NEIGHBOURS, 0);
    value = sl_forward_aggregate(forward, value, reduce);
    if (!product_first)
        value = sl_forward_product(forward, value, NEIGHBOURS, 0);
    const int own = sl_forward_product(forward, input, OWN, 0);
    return sl_forward_finish(forward, sl_forward_add(forward, 1.0, own, 1.0, value));
}

const struct sl_layer_kind sl_layer_sage = {
    .name = "sage",
    .weights = {.count = 2,
                .linear = 2,
                .name = {"lin_r.weight", "lin_l.weight"}}, /* names in PyG */
    .bias = "lin_l.bias",
    .leaves_sums = true,
    .plan = sage_plan,
    .forward = sage_forward,
    .backward = sage_backward,
    .describe = sage_describe,
};

const struct sl_layer_kind sl_layer_gcn_residual = {
    .name = "gcn-residual",
    .weights = {.count = 2, .linear = 1, .name = {"residual.weight", "weight"}},
    .bias = "bias",
    .loops = true,
    .normalized = true,
    .scaled_input = true,
    .leaves_sums = true,
    .plan = sage_plan,
    .forward = sage_forward,
    .backward = sage_backward,
    .describe = sage_describe,
};
