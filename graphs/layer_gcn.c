/* clang-format off */
/* Graph convolution (Kipf & Welling): output = drop(relu(Â·H·W + b)). H is the input of the layer
 * after dropout. The last layer has no relu and no dropout. Â = L·S·R with diagonal L and R. S = A
 * + I has no values on a graph without weights. L and R need no pass over memory of their own:
 * matrices are stored with the factor that the next product needs. H' = R·H between layers; going
 * back, G' = L·G with G = dZ.
 *
 *   forward   GEMM first   T = H'·W               Z = L·(S·T)
 *             SpMM first   U = S·H'               Z = L·(U·W)
 *             aggregated                          Z = (ÂX)·W
 *             all          H' of the next layer = R·drop(relu(Z + b))
 *   backward  GEMM first   V = Sᵀ·G'   dW = H'ᵀ·V   dH = R·(V·Wᵀ)
 *             SpMM first   dW = Uᵀ·G'               dH = R·Sᵀ·(G'·Wᵀ)
 *             aggregated   dW = (ÂX)ᵀ·G   (G' = G)
 *             all          db = column sums of G;  G' of the layer before = L·drop(relu'(dH))
 *             where other terms join dH (sl_layer_leaves_sums): D = dH / R
 *
 * With two vertex orders, S turns rows of one order into rows of the other, and Sᵀ turns them back.
 * T, V, dH and G' of the layer before have the vertex order of the input. U, Z and dZ have the
 * vertex order of the output.
 *
 * Sparse features become dense, after dropout, where the SpMM comes first. MG-GCN (section 4.4)
 * drops the aggregation from dW where the GEMM comes first; here dW always has the aggregation. */
/* clang-format on */
#include "codelets/epilogue.h"
#include "graphs/forward.h"
#include "graphs/layer.h"
#include "graphs/reach.h"

static int gcn_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    const enum sl_type type = net->graph->type;
    layer->order = sl_layer_choose_order(net, layer, wanted);
    const int from = layer->input_order, to = layer->output.row_order; /* vertex orders of rows */
    int code = sl_layer_plan_aggregations(net, layer);
    layer->back.gradient_factor = layer->order == SL_AGGREGATED ? SL_ROW_NONE : SL_ROW_LEFT;
    if (!code && layer->order == SL_GEMM_FIRST) {
        code = sl_network_plan_scratch(net, from, type, layer->out, SL_SLOT_WORK);
        if (!code && !layer->last)
            code = sl_network_plan_sums(net, to, layer->out);
        if (!code)
            code = sl_network_plan_sums(net, from, layer->out);
    } else if (!code && layer->order == SL_SPMM_FIRST) {
        code = sl_distribution_describe_rows(net->rt, &net->graph->distribution[to],
                                             &layer->aggregated, type, layer->in);
        if (!code)
            code = sl_network_keep(net, layer, layer->index, &layer->aggregated);
        if (!code)
            code = sl_network_plan_sums(net, to, layer->in);
    }
    if (!code && layer->order == SL_SPMM_FIRST && layer->index > 0) {
        code = sl_network_plan_scratch(net, to, type, layer->in, SL_SLOT_WORK);
        if (!code && !sl_layer_leaves_sums(net, layer))
            code = sl_network_plan_scratch(net, from, type, layer->in, SL_SLOT_GRADIENT);
        if (!code)
            code = sl_network_plan_sums(net, from, layer->in);
    }
    if (!code && sl_layer_leaves_sums(net, layer))
        code = sl_network_plan_scratch(net, from, SL_FLOAT32, layer->in, SL_SLOT_SUM);
    return code ? code : sl_layer_plan_dropped(net, layer);
}

/* ---- Forward ---- */

/* Return the epilogue from the sum to the output: L, bias, relu, dropout of the next layer, R. */
static struct sl_epilogue_tiles activation(const struct sl_network *net, struct sl_layer *layer,
                                           bool training)
{
    struct sl_epilogue_tiles e = sl_layer_activation(net, layer, training);
    e.before = layer->order == SL_AGGREGATED ? SL_ROW_NONE : SL_ROW_LEFT;
    return e;
}

static void gcn_forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    const struct sl_matrix *h = sl_layer_dense_input(net, layer, training);
    const struct sl_epilogue_tiles finish = activation(net, layer, training);
    const struct sl_product_input input = sl_layer_product_input(net, layer, training);
    if (h == &layer->dropped)
        sl_layer_drop_input(net, layer, training);
    if (layer->order == SL_GEMM_FIRST) {
        struct sl_matrix *t =
            sl_network_scratch(net, layer->input_order, net->graph->type, layer->out, SL_SLOT_WORK,
                               sl_reach_of_input(layer));
        sl_product(net, layer, &input, NULL, NULL, t);
        sl_network_aggregate(net, layer, false, t, &finish, NULL, &layer->output);
        return;
    }
    if (layer->order == SL_SPMM_FIRST && !net->aggregated) {
        sl_network_take(net, &layer->aggregated, layer->rows.hops);
        sl_network_aggregate(net, layer, false, h, NULL, NULL, &layer->aggregated);
    }
    sl_product(net, layer, &input, NULL, &finish, &layer->output);
}

/* ---- Backward ---- */

static struct sl_matrix *gcn_backward(struct sl_network *net, struct sl_layer *layer,
                                      struct sl_matrix *g)
{
    const struct sl_product_input input = sl_layer_product_input(net, layer, true);
    const enum sl_type type = net->graph->type;
    struct sl_matrix *v = g;
    sl_layer_drop_again(net, layer);
    if (layer->order == SL_GEMM_FIRST) {
        v = sl_network_scratch(net, layer->input_order, type, layer->out, SL_SLOT_WORK,
                               sl_reach_of_input(layer));
        sl_network_aggregate(net, layer, true, g, NULL, NULL, v);
    }
    struct sl_product_gradient back = {.h = &input, .v = v, .g = g};
    if (layer->index == 0) {
        sl_product_back(net, layer, &back);
        return NULL;
    }
    const struct sl_epilogue_tiles finish = sl_layer_activation_back(net, layer);
    const bool sums = sl_layer_leaves_sums(net, layer);
    const struct sl_epilogue_tiles *epilogue = sums ? NULL : &finish;
    const struct sl_matrix *mask = sums ? NULL : sl_layer_mask(layer);
    struct sl_matrix *dh = sums ? sl_network_scratch(net, layer->input_order, SL_FLOAT32, layer->in,
                                                     SL_SLOT_SUM, sl_reach_of_input(layer))
                                : &(layer - 1)->output;
    if (layer->order == SL_SPMM_FIRST) {
        back.y =
            sl_network_scratch(net, g->row_order, type, layer->in, SL_SLOT_WORK, layer->rows.hops);
        sl_product_back(net, layer, &back);
        if (!sums)
            dh = sl_network_scratch(net, dh->row_order, type, layer->in, SL_SLOT_GRADIENT,
                                    (layer - 1)->rows.read);
        sl_network_aggregate(net, layer, true, back.y, epilogue, mask, dh);
    } else {
        back.epilogue = epilogue;
        back.mask = mask;
        back.y = dh;
        sl_product_back(net, layer, &back);
    }
    sl_layer_add_gradient(net, layer, g, dh);
    return dh;
}

/* The narrower of input and output is aggregated. */
static int gcn_describe(const struct sl_forward *forward)
{
    const bool product_first = forward->shape->out <= forward->shape->in;
    int value = sl_forward_input(forward);
    if (product_first)
        value = sl_forward_product(forward, value, 0, 0);
    value = sl_forward_aggregate(forward, value, SL_REDUCE_SUM);
    if (!product_first)
        value = sl_forward_product(forward, value, 0, 0);
    return sl_forward_finish(forward, value);
}

const struct sl_layer_kind sl_layer_gcn = {
    .name = "gcn",
    .weights = {.count = 1, .name = {"weight"}},
    .bias = "bias",
    .loops = true,
    .normalized = true,
    .scaled_input = true,
    .leaves_sums = true,
    .plan = gcn_plan,
    .forward = gcn_forward,
    .backward = gcn_backward,
    .describe = gcn_describe,
};
