/* clang-format off */
/* Graph convolution (Kipf & Welling): output = drop(relu(Â·H·W + b)), H the input of the layer after
 * dropout; the last layer without relu and dropout. Â = L·S·R with diagonal L, R and S = A + I, which has
 * no values on a graph without weights. So that no pass over memory is needed for L and R, matrices are
 * kept multiplied by what the next product needs: H' = R·H between layers, G' = L·G, G = dZ, going back.
 *
 *   forward   GEMM first   T = H'·W               Z = L·(S·T)
 *             SpMM first   U = S·H'               Z = L·(U·W)
 *             aggregated                          Z = (ÂX)·W
 *             all          H' of the next layer = R·drop(relu(Z + b))
 *   backward  GEMM first   V = Sᵀ·G'   dW = H'ᵀ·V   dH = R·(V·Wᵀ)
 *             SpMM first   dW = Uᵀ·G'               dH = R·Sᵀ·(G'·Wᵀ)
 *             aggregated   dW = (ÂX)ᵀ·G   (G' = G)
 *             all          db = column sums of G;  G' of the layer before = L·drop(relu'(dH))
 *
 * S turns rows in one order of vertices into rows in the other one, where there are two, and Sᵀ turns
 * them back: T, V, dH and G' of the layer before have their rows in the order of the input; U, Z and dZ
 * have theirs in that of the output.
 *
 * The order of products that moves fewer bytes is chosen from the widths and the sparsity. Sparse features are made
 * dense, after dropout, where the SpMM comes first. MG-GCN (section 4.4) drops the aggregation from dW
 * where the GEMM comes first; here dW always has it. */
/* clang-format on */
#include "graphs/product.h"

static bool sparse_input(const struct sl_network *net, const struct sl_layer *layer)
{
    return layer->index == 0 && net->input.sparse;
}

/* ---- Which product comes first ---- */

enum { ENTRY_BYTES = 8 }; /* column and value */

/* Bytes that a product of a sparse matrix moves: for each entry itself and the row of `row` bytes
 * that it meets, and the result. */
static double sparse_product_bytes(double entries, double rows, double row)
{
    return entries * (ENTRY_BYTES + row) + rows * row;
}

/* Bytes that a training step of the layer moves in that order. */
static double step_bytes(const struct sl_network *net, const struct sl_layer *layer,
                         enum sl_product_order order)
{
    const bool first = layer->index == 0, sparse = sparse_input(net, layer);
    const double n = (double)net->adjacency->rows, nnz = (double)net->adjacency->nnz;
    const double forward = (double)sl_type_size(net->type), back = 4.0; /* bytes of an element */
    const double in = (double)layer->in, out = (double)layer->out, gemm = n * (in + out);
    /* A first layer needs no gradient of its input. */
    const double gemms = gemm * (forward + (first ? 1.0 : 2.0) * back);
    if (order == SL_GEMM_FIRST) {
        const double x = (double)net->input.csr.nnz;
        return sparse_product_bytes(nnz, n, forward * out) +
               sparse_product_bytes(nnz, n, back * out) +
               (sparse ? 2.0 * sparse_product_bytes(x, n, back * out) : gemms);
    }
    const double expansion =
        sparse ? (double)net->input.csr.nnz * ENTRY_BYTES + forward * n * in : 0.0;
    return sparse_product_bytes(nnz, n, forward * in) +
           (first ? 0.0 : sparse_product_bytes(nnz, n, back * in)) + gemms + expansion;
}

static enum sl_product_order choose_order(const struct sl_network *net,
                                          const struct sl_layer *layer, int wanted)
{
    if (layer->index == 0 && net->input.aggregated)
        return SL_AGGREGATED;
    if (wanted == SL_GEMM_FIRST || wanted == SL_SPMM_FIRST)
        return (enum sl_product_order)wanted;
    return step_bytes(net, layer, SL_SPMM_FIRST) < step_bytes(net, layer, SL_GEMM_FIRST)
               ? SL_SPMM_FIRST
               : SL_GEMM_FIRST;
}

static int gcn_aggregations(const struct sl_network *net, const struct sl_layer *layer,
                            struct sl_aggregation list[SL_AGGREGATIONS])
{
    const bool gemm_first = layer->order == SL_GEMM_FIRST;
    const int64_t width = gemm_first ? layer->out : layer->in;
    const int64_t *cut = gemm_first ? layer->out_cut : layer->in_cut;
    if (layer->order == SL_AGGREGATED)
        return 0;
    list[0] = (struct sl_aggregation){false, width, cut, net->type};
    list[1] = (struct sl_aggregation){true, width, cut, SL_FLOAT32};
    return gemm_first || layer->index > 0 ? 2 : 1; /* a first layer's input needs no gradient */
}

static int gcn_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    const bool first = layer->index == 0, sparse = sparse_input(net, layer);
    int code = 0;
    layer->order = choose_order(net, layer, wanted);
    const int from = layer->input_order, to = layer->output.row_order; /* rows */
    struct sl_aggregation list[SL_AGGREGATIONS];
    const int aggregations = gcn_aggregations(net, layer, list);
    for (int a = 0; !code && a < aggregations; a++) {
        const int64_t row = list[a].width * (int64_t)sl_type_size(list[a].type);
        layer->exchanged = row > layer->exchanged ? row : layer->exchanged;
        code = sl_partials_plan(net->rt, &net->distribution[list[a].transposed ? from : to],
                                list[a].width);
    }
    layer->gradient_factor = layer->order == SL_AGGREGATED ? SL_ROW_NONE : SL_ROW_LEFT;
    if (!code && layer->order == SL_GEMM_FIRST)
        code = sl_network_plan_scratch(net, from, net->type, layer->out, 0);
    if (!code && layer->order == SL_GEMM_FIRST)
        code = sl_network_plan_scratch(net, from, SL_FLOAT32, layer->out, 0);
    if (!code && layer->order == SL_SPMM_FIRST)
        code = sl_distribution_create_rows(net->rt, &net->distribution[to], &layer->aggregated,
                                           net->type, layer->in);
    if (!code && !first && (layer->order == SL_SPMM_FIRST || net->type != SL_FLOAT32))
        code = sl_network_plan_scratch(net, from, SL_FLOAT32, layer->in, 1);
    if (!code && layer->order != SL_SPMM_FIRST && sparse)
        code = sl_network_plan_sums(net, from, layer->out, true);
    if (!code && layer->order == SL_SPMM_FIRST)
        code = sl_network_plan_sums(net, to, layer->in, false);
    if (!code && layer->order == SL_SPMM_FIRST && !first)
        code = sl_network_plan_scratch(net, to, SL_FLOAT32, layer->in, 0);
    if (!code && first && (sparse ? layer->order == SL_SPMM_FIRST : layer->dropout > 0.0))
        code = sl_distribution_create_rows(net->rt, &net->distribution[from], &layer->dropped,
                                           net->type, layer->in);
    return code;
}

/* The dropout of the layer's input; threshold 0 where there is none. */
static struct sl_dropout input_dropout(const struct sl_network *net, const struct sl_layer *layer,
                                       bool training)
{
    return training && layer->dropout > 0.0 ? sl_network_dropout(net, layer)
                                            : (struct sl_dropout){.scale = 1.0f};
}

/* ---- Forward ---- */

/* The dense input of a first layer, after dropout when training. */
static void drop_input(struct sl_network *net, struct sl_layer *layer, bool training)
{
    const struct sl_matrix *dropped = &layer->dropped;
    struct sl_dropout drop = input_dropout(net, layer, training);
    for (int t = 0; t < dropped->tile_rows * dropped->tile_cols; t++) {
        struct sl_tile *out = &dropped->tiles[t],
                       *facts = &net->facts[dropped->row_order][t / dropped->tile_cols];
        struct sl_sparse_tile *x = net->input.sparse ? &net->input.csr.tiles[t] : NULL;
        drop.column0 = (uint32_t)dropped->col_cut[t % dropped->tile_cols];
        if (!x)
            sl_submit_dropout(net->rt, &drop, facts, 0, &net->input.dense.tiles[t], out);
        else if (x->shape.nnz)
            sl_submit_expand(net->rt, x, &drop, facts, out);
        else
            sl_submit_fill(net->rt, 0.0f, out);
    }
}

/* The dense matrix that the layer multiplies, or NULL: the sparse features. */
static const struct sl_matrix *input_of(const struct sl_network *net, const struct sl_layer *layer,
                                        bool training)
{
    if (layer->index > 0)
        return &net->layer[layer->index - 1].output;
    if (net->input.sparse)
        return layer->order == SL_SPMM_FIRST ? &layer->dropped : NULL;
    return training && layer->dropped.tiles ? &layer->dropped : &net->input.dense;
}

/* From the sum to the output: L, bias, relu, dropout of the next layer, R. */
static struct sl_epilogue_tiles activation(const struct sl_network *net, struct sl_layer *layer,
                                           bool training)
{
    struct sl_epilogue_tiles e = SL_EPILOGUE_NONE;
    e.before = layer->order == SL_AGGREGATED ? SL_ROW_NONE : SL_ROW_LEFT;
    if (layer->bias) {
        e.parameters = &layer->parameters;
        e.bias_row = layer->in;
    }
    if (!layer->last) {
        e.relu = true;
        e.drop = input_dropout(net, layer + 1, training);
        e.after = SL_ROW_RIGHT;
    }
    return e;
}

static void gcn_forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    const struct sl_matrix *h = input_of(net, layer, training);
    const struct sl_epilogue_tiles finish = activation(net, layer, training);
    const struct sl_dropout drop = input_dropout(net, layer, training);
    if (h == &layer->dropped)
        drop_input(net, layer, training);
    if (layer->order == SL_GEMM_FIRST) {
        struct sl_matrix *t = sl_network_scratch(net, layer->input_order, net->type, layer->out, 0);
        sl_product(net, layer, h, &drop, NULL, t);
        sl_network_aggregate(net, false, t, &finish, NULL, &layer->output);
        return;
    }
    if (layer->order == SL_SPMM_FIRST) {
        sl_network_aggregate(net, false, h, NULL, NULL, &layer->aggregated);
        h = &layer->aggregated;
    }
    sl_product(net, layer, h, &drop, &finish, &layer->output);
}

/* ---- Backward ---- */

/* From dH / R to G' of the layer before: R, through dropout and relu, L. */
static struct sl_epilogue_tiles activation_back(const struct sl_network *net,
                                                const struct sl_layer *layer)
{
    struct sl_epilogue_tiles e = SL_EPILOGUE_NONE;
    e.before = (layer - 1)->gradient_factor == SL_ROW_LEFT ? SL_ROW_BOTH : SL_ROW_RIGHT;
    e.scale = input_dropout(net, layer, true).scale;
    return e;
}

static struct sl_matrix *gcn_backward(struct sl_network *net, struct sl_layer *layer,
                                      struct sl_matrix *g)
{
    const struct sl_matrix *h = input_of(net, layer, true), *v = g;
    const struct sl_dropout drop = input_dropout(net, layer, true);
    if (layer->order == SL_GEMM_FIRST) {
        struct sl_matrix *sums =
            sl_network_scratch(net, layer->input_order, SL_FLOAT32, layer->out, 0);
        sl_network_aggregate(net, true, g, NULL, NULL, sums);
        v = sums;
    } else if (layer->order == SL_SPMM_FIRST) {
        h = &layer->aggregated;
    }
    if (layer->index == 0) {
        sl_product_back(net, layer, h, &drop, v, g, NULL, NULL, NULL);
        return NULL;
    }
    const struct sl_epilogue_tiles finish = activation_back(net, layer);
    const struct sl_matrix *mask = &(layer - 1)->output;
    if (layer->order == SL_SPMM_FIRST) {
        struct sl_matrix *du = sl_network_scratch(net, g->row_order, SL_FLOAT32, layer->in, 0),
                         *dh = sl_network_scratch(net, mask->row_order, SL_FLOAT32, layer->in, 1);
        sl_product_back(net, layer, h, &drop, v, g, NULL, NULL, du);
        sl_network_aggregate(net, true, du, &finish, mask, dh);
        return dh;
    }
    struct sl_matrix *gradient = sl_network_gradient(net, layer - 1);
    sl_product_back(net, layer, h, &drop, v, g, &finish, mask, gradient);
    return gradient;
}

const struct sl_layer_kind sl_layer_gcn = {
    .name = "gcn",
    .plan = gcn_plan,
    .aggregations = gcn_aggregations,
    .forward = gcn_forward,
    .backward = gcn_backward,
};
