/* clang-format off */
/* Graph convolution (Kipf & Welling): output = drop(relu(Â·H·W + b)), H the input of the layer after
 * dropout; the last layer without relu and dropout.
 *
 *   forward   GEMM first   T = H·W        Z = Â·T
 *             SpMM first   U = Â·H        Z = U·W
 *             aggregated                  Z = (ÂX)·W
 *   backward  GEMM first   S = Âᵀ·G       dW = Hᵀ·S     dH = S·Wᵀ      G = dZ
 *             SpMM first   dW = Uᵀ·G      dU = G·Wᵀ     dH = Âᵀ·dU
 *             aggregated   dW = (ÂX)ᵀ·G
 *             all          db = column sums of G
 *
 * The order that moves fewer bytes is chosen from the widths and the sparsity. Sparse features are made
 * dense, after dropout, where the SpMM comes first. MG-GCN (section 4.4) drops the aggregation from dW
 * where the GEMM comes first; here dW always has it. */
/* clang-format on */
#include "graphs/network.h"

static bool sparse_input(const struct sl_network *net, const struct sl_layer *layer)
{
    return layer->index == 0 && net->input.sparse;
}

/* ---- Which product comes first ---- */

enum { ENTRY_BYTES = 8 }; /* column and value */

/* Bytes that a product of a sparse matrix moves: for each entry itself and the row of `width`
 * floats that it meets, and the result. */
static double sparse_product_bytes(double entries, double rows, double width)
{
    return entries * (ENTRY_BYTES + 4.0 * width) + 4.0 * rows * width;
}

/* Bytes that a training step of the layer moves in that order. */
static double step_bytes(const struct sl_network *net, const struct sl_layer *layer,
                         enum sl_product_order order)
{
    const bool first = layer->index == 0, sparse = sparse_input(net, layer);
    const double n = (double)net->adjacency->rows, in = (double)layer->in, out = (double)layer->out;
    const double nnz = (double)net->adjacency->nnz, gemm = 4.0 * n * (in + out);
    /* A first layer needs no gradient of its input. */
    const double gemms = (first ? 2.0 : 3.0) * gemm;
    if (order == SL_GEMM_FIRST) {
        const double x = (double)net->input.csr.nnz;
        return 2.0 * sparse_product_bytes(nnz, n, out) +
               (sparse ? 2.0 * sparse_product_bytes(x, n, out) : gemms);
    }
    const double expansion = sparse ? (double)net->input.csr.nnz * ENTRY_BYTES + 4.0 * n * in : 0.0;
    return (first ? 1.0 : 2.0) * sparse_product_bytes(nnz, n, in) + gemms + expansion;
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

static int gcn_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    const bool first = layer->index == 0, sparse = sparse_input(net, layer);
    int code = 0;
    layer->order = choose_order(net, layer, wanted);
    if (layer->order == SL_GEMM_FIRST)
        code = sl_network_plan_scratch(net, layer->out, 0);
    if (layer->order == SL_SPMM_FIRST)
        code = sl_network_create_rows(net, &layer->aggregated, layer->in, layer->in_cut);
    if (!code && layer->order == SL_SPMM_FIRST && !first)
        code = sl_network_plan_scratch(net, layer->in, 0);
    if (!code && first && (sparse ? layer->order == SL_SPMM_FIRST : layer->dropout > 0.0))
        code = sl_network_create_rows(net, &layer->dropped, layer->in, layer->in_cut);
    return code;
}

/* ---- Products ---- */

/* Dropout on the values of X's tile i; threshold 0 where there is none. */
static struct sl_sparse_dropout tile_dropout(const struct sl_network *net,
                                             const struct sl_layer *layer, int i, bool training)
{
    struct sl_sparse_dropout drop = {.row0 = (uint32_t)net->distribution->row_cut[i]};
    if (training && layer->dropout > 0.0)
        drop.drop = sl_network_dropout(net, layer);
    return drop;
}

/* Y(i) = H(i)·W for every row tile, H dense or sparse. */
static void multiply(struct sl_network *net, struct sl_layer *layer, const struct sl_matrix *h,
                     struct sl_matrix *y, bool training)
{
    for (int i = 0; i < net->distribution->tiles; i++) {
        struct sl_tile *out = sl_matrix_tile(y, i, 0);
        if (h) {
            sl_submit_gemm(net->rt, false, false, out->rows, layer->out, layer->in,
                           sl_matrix_tile(h, i, 0), &layer->parameters, false, out);
        } else {
            const struct sl_sparse_dropout drop = tile_dropout(net, layer, i, training);
            struct sl_sparse_tile *x = sl_sparse_matrix_tile(&net->input.csr, i, 0);
            if (x->nnz)
                sl_submit_spmm(net->rt, false, x, &drop, &layer->parameters, false, out);
            else
                sl_submit_fill(net->rt, 0.0f, out);
        }
    }
}

/* dW(i) = H(i)ᵀ·S(i), and db(i) = column sums of G(i), for every row tile. */
static void differentiate(struct sl_network *net, struct sl_layer *layer, const struct sl_matrix *h,
                          const struct sl_matrix *s, const struct sl_matrix *g)
{
    for (int i = 0; i < net->distribution->tiles; i++) {
        struct sl_tile *gradient = sl_matrix_tile(&layer->gradients, i, 0),
                       *part = sl_matrix_tile(s, i, 0);
        if (h) {
            sl_submit_gemm(net->rt, true, false, layer->in, layer->out, part->rows,
                           sl_matrix_tile(h, i, 0), part, false, gradient);
        } else {
            const struct sl_sparse_dropout drop = tile_dropout(net, layer, i, true);
            struct sl_sparse_tile *x = sl_sparse_matrix_tile(&net->input.csr, i, 0);
            if (x->nnz)
                sl_submit_spmm(net->rt, true, x, &drop, part, false, gradient);
            else
                sl_submit_fill(net->rt, 0.0f, gradient);
        }
        if (layer->bias)
            sl_submit_bias_gradient(net->rt, sl_matrix_tile(g, i, 0), layer->in, gradient);
    }
}

/* Y(i) = G(i)·Wᵀ for every row tile. */
static void multiply_back(struct sl_network *net, struct sl_layer *layer, const struct sl_matrix *g,
                          struct sl_matrix *y)
{
    for (int i = 0; i < net->distribution->tiles; i++) {
        struct sl_tile *out = sl_matrix_tile(y, i, 0);
        sl_submit_gemm(net->rt, false, true, out->rows, layer->in, layer->out,
                       sl_matrix_tile(g, i, 0), &layer->parameters, false, out);
    }
}

static void activate(struct sl_network *net, struct sl_layer *layer, bool training)
{
    for (int i = 0; i < net->distribution->tiles; i++) {
        struct sl_tile *z = sl_matrix_tile(&layer->output, i, 0);
        if (layer->bias)
            sl_submit_bias(net->rt, &layer->parameters, layer->in, z);
        if (layer->last)
            continue;
        sl_submit_relu(net->rt, z);
        const struct sl_layer *next = layer + 1;
        if (training && next->dropout > 0.0) {
            const struct sl_dropout drop = sl_network_dropout(net, next);
            sl_submit_dropout_inplace(net->rt, &drop, net->distribution->row_cut[i], 0, z);
        }
    }
}

/* The dense input of a first layer, after dropout when training. */
static void drop_input(struct sl_network *net, struct sl_layer *layer, bool training)
{
    const struct sl_dropout drop = sl_network_dropout(net, layer);
    for (int i = 0; i < net->distribution->tiles; i++) {
        struct sl_tile *out = sl_matrix_tile(&layer->dropped, i, 0);
        if (!net->input.sparse) {
            sl_submit_dropout(net->rt, &drop, net->distribution->row_cut[i], 0,
                              sl_matrix_tile(&net->input.dense, i, 0), out);
            continue;
        }
        const struct sl_sparse_dropout tile_drop = tile_dropout(net, layer, i, training);
        struct sl_sparse_tile *x = sl_sparse_matrix_tile(&net->input.csr, i, 0);
        if (x->nnz)
            sl_submit_expand(net->rt, x, &tile_drop, out);
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

static void gcn_forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    const struct sl_matrix *h = input_of(net, layer, training);
    if (h == &layer->dropped)
        drop_input(net, layer, training);
    if (layer->order == SL_GEMM_FIRST) {
        struct sl_matrix *t = sl_network_scratch(net, layer->out, 0);
        multiply(net, layer, h, t, training);
        sl_network_aggregate(net, false, t, &layer->output);
    } else if (layer->order == SL_SPMM_FIRST) {
        sl_network_aggregate(net, false, h, &layer->aggregated);
        multiply(net, layer, &layer->aggregated, &layer->output, training);
    } else {
        multiply(net, layer, h, &layer->output, training);
    }
    activate(net, layer, training);
}

/* dZ of the layer before, from dH: through its dropout and relu. */
static void activate_back(struct sl_network *net, struct sl_layer *layer, struct sl_matrix *dh)
{
    const float scale = layer->dropout > 0.0 ? sl_network_dropout(net, layer).scale : 1.0f;
    for (int i = 0; i < net->distribution->tiles; i++)
        sl_submit_relu_backward(net->rt, scale,
                                sl_matrix_tile(&net->layer[layer->index - 1].output, i, 0),
                                sl_matrix_tile(dh, i, 0));
}

static struct sl_matrix *gcn_backward(struct sl_network *net, struct sl_layer *layer,
                                      struct sl_matrix *g)
{
    const struct sl_matrix *h = input_of(net, layer, true);
    const bool first = layer->index == 0;
    /* The slot that does not hold G: gradients alternate between slots 1 and 2 going back. */
    struct sl_matrix *dh =
        first ? NULL : sl_network_scratch(net, layer->in, 1 + (layer->index + 1) % 2);
    if (layer->order == SL_GEMM_FIRST) {
        struct sl_matrix *s = sl_network_scratch(net, layer->out, 0);
        sl_network_aggregate(net, true, g, s);
        differentiate(net, layer, h, s, g);
        if (!first)
            multiply_back(net, layer, s, dh);
    } else if (layer->order == SL_SPMM_FIRST) {
        differentiate(net, layer, &layer->aggregated, g, g);
        if (!first) {
            struct sl_matrix *du = sl_network_scratch(net, layer->in, 0);
            multiply_back(net, layer, g, du);
            sl_network_aggregate(net, true, du, dh);
        }
    } else {
        differentiate(net, layer, h, g, g);
    }
    if (!first)
        activate_back(net, layer, dh);
    return dh;
}

const struct sl_layer_kind sl_layer_gcn = {
    .name = "gcn",
    .plan = gcn_plan,
    .forward = gcn_forward,
    .backward = gcn_backward,
};
