#include "graphs/layer.h"

#include "codelets/accumulate.h"
#include "codelets/dropout.h"
#include "codelets/expand.h"
#include "codelets/init.h"
#include "core/error.h"
#include "graphs/cost.h"
#include "graphs/layer_jump.h"
#include "graphs/reach.h"

bool sl_layer_input_is_sparse(const struct sl_network *net, const struct sl_layer *layer)
{
    return layer->index == 0 && net->graph->input.sparse;
}

/* ---- Which product comes first ---- */

enum sl_product_order sl_layer_choose_order(const struct sl_network *net,
                                            const struct sl_layer *layer, int wanted)
{
    const double bytes = (double)sl_type_size(net->graph->type);
    const bool logits = layer->index == net->layers - 1;
    const struct sl_layer_work work = {
        .rates = net->rates ? net->rates : &sl_rates_usual,
        .n = (double)net->graph->adjacency->rows,
        .nnz = (double)net->graph->adjacency->nnz,
        .entries = sl_layer_input_is_sparse(net, layer) ? (double)net->graph->input.csr.nnz : 0.0,
        .in = (double)layer->in,
        .out = (double)layer->out,
        .weights = (double)layer->kind->weights.count,
        .kept = 1.0 - layer->dropout,
        .bytes = bytes,
        .back = {logits ? sizeof(float) : bytes, layer->reducer->linear ? bytes : sizeof(float)},
        .first = layer->index == 0,
    };
    if (layer->index == 0 && net->graph->input.aggregated)
        return SL_AGGREGATED;
    if (wanted == SL_GEMM_FIRST || wanted == SL_SPMM_FIRST)
        return (enum sl_product_order)wanted;
    return sl_cost_layer(&work, SL_SPMM_FIRST) < sl_cost_layer(&work, SL_GEMM_FIRST)
               ? SL_SPMM_FIRST
               : SL_GEMM_FIRST;
}

/* ---- Work matrices ---- */

enum sl_type sl_layer_moved_back(const struct sl_network *net, const struct sl_layer *layer)
{
    if (layer->order == SL_GEMM_FIRST)
        return layer->output.type;
    return layer->reducer->linear ? net->graph->type : SL_FLOAT32;
}

int sl_layer_aggregations(const struct sl_network *net, const struct sl_layer *layer,
                          struct sl_aggregation list[SL_AGGREGATIONS])
{
    const bool gemm_first = layer->order == SL_GEMM_FIRST;
    if (layer->kind->aggregations)
        return layer->kind->aggregations(net, layer, list);
    const int64_t width = gemm_first ? layer->out : layer->in;
    const int64_t *cut = gemm_first ? layer->columns.out_cut : layer->columns.in_cut;
    if (layer->order == SL_AGGREGATED)
        return 0;
    list[0] = (struct sl_aggregation){
        .width = width, .cut = cut, .type = net->graph->type, .reducer = layer->reducer};
    list[1] = (struct sl_aggregation){.transposed = true,
                                      .width = width,
                                      .cut = cut,
                                      .type = sl_layer_moved_back(net, layer),
                                      .operands = layer->reducer->own ? cut : NULL,
                                      .reducer = layer->reducer->back};
    return gemm_first || layer->index > 0 ? 2 : 1; /* a first layer's input needs no gradient */
}

int sl_layer_no_aggregations(const struct sl_network *net, const struct sl_layer *layer,
                             struct sl_aggregation list[SL_AGGREGATIONS])
{
    (void)net;
    (void)layer;
    (void)list;
    return 0;
}

int sl_layer_plan_aggregations(struct sl_network *net, struct sl_layer *layer)
{
    struct sl_aggregation list[SL_AGGREGATIONS];
    const int aggregations = sl_layer_aggregations(net, layer, list);
    int code = 0;
    for (int a = 0; !code && a < aggregations; a++) {
        const int order = list[a].transposed ? layer->input_order : layer->output.row_order;
        const struct sl_distribution *d = &net->graph->distribution[order];
        const int64_t row = list[a].width * (int64_t)sl_type_size(list[a].type);
        layer->rows.exchanged = row > layer->rows.exchanged ? row : layer->rows.exchanged;
        if (!d->kind->clones || list[a].transposed || !list[a].state)
            code = sl_partials_plan(net->rt, d, list[a].reducer, list[a].type,
                                    sl_aggregation_merged(&list[a], d->kind->clones));
    }
    return code;
}

int sl_layer_plan_dropped(struct sl_network *net, struct sl_layer *layer)
{
    const bool sparse = sl_layer_input_is_sparse(net, layer);
    if (layer->index > 0 || !(sparse ? layer->order == SL_SPMM_FIRST : layer->dropout > 0.0))
        return 0;
    return sl_distribution_describe_rows(net->rt, &net->graph->distribution[layer->input_order],
                                         &layer->dropped, net->graph->type, layer->in);
}

/* ---- Input and output ---- */

struct sl_dropout sl_layer_dropout(const struct sl_network *net, const struct sl_layer *layer,
                                   bool training)
{
    return training && layer->dropout > 0.0 ? sl_network_dropout(net, layer)
                                            : (struct sl_dropout){.scale = 1.0f};
}

void sl_layer_drop_input(struct sl_network *net, struct sl_layer *layer, bool training)
{
    const struct sl_matrix *dropped = &layer->dropped;
    struct sl_dropout drop = sl_layer_dropout(net, layer, training);
    sl_network_take(net, dropped, sl_reach_of_input(layer));
    for (int t = 0; t < dropped->tile_rows * dropped->tile_cols; t++) {
        struct sl_tile *out = &dropped->tiles[t],
                       *scales = &net->graph->scales[dropped->row_order][t / dropped->tile_cols];
        struct sl_sparse_tile *x =
            net->graph->input.sparse ? &net->graph->input.csr.tiles[t] : NULL;
        drop.column0 = (uint32_t)dropped->col_cut[t % dropped->tile_cols];
        if (!x)
            sl_submit_dropout(net->rt, &drop, scales, 0, &net->graph->input.dense.tiles[t], out);
        else if (x->shape.nnz)
            sl_submit_expand(net->rt, x, &drop, scales, out);
        else
            sl_submit_fill(net->rt, 0.0f, out);
    }
}

/* If the SpMM comes first, only a vertex's own weight needs dense features again, and a layer
 * without weights or with relations. A weight multiplies sparse features as they are, unless such a
 * layer has expanded them. */
void sl_layer_drop_again(struct sl_network *net, struct sl_layer *layer)
{
    const bool first = layer->order == SL_SPMM_FIRST, edges = first && layer->edge_rows > 0,
               read = !first || layer->kind->weights.count != 1 || edges;
    if (!read || (sl_layer_input_is_sparse(net, layer) && layer->kind->weights.count > 0 && !edges))
        return;
    if (layer->dropped.place && !layer->dropped.place->apart &&
        sl_layer_dense_input(net, layer, true) == &layer->dropped)
        sl_layer_drop_input(net, layer, true);
}

const struct sl_matrix *sl_layer_dense_input(const struct sl_network *net,
                                             const struct sl_layer *layer, bool training)
{
    if (layer->index > 0)
        return &net->layer[layer->index - 1].output;
    if (net->graph->input.sparse)
        return layer->order == SL_SPMM_FIRST ? &layer->dropped : NULL;
    return training && layer->dropped.tiles ? &layer->dropped : &net->graph->input.dense;
}

struct sl_product_input sl_layer_product_input(const struct sl_network *net,
                                               const struct sl_layer *layer, bool training)
{
    return (struct sl_product_input){
        .dense = layer->order == SL_SPMM_FIRST ? &layer->aggregated
                                               : sl_layer_dense_input(net, layer, training),
        .sparse = &net->graph->input.csr,
        .drop = sl_layer_dropout(net, layer, training),
    };
}

struct sl_epilogue_tiles sl_layer_activation(const struct sl_network *net, struct sl_layer *layer,
                                             bool training)
{
    return layer->residual.identity ? SL_EPILOGUE_NONE : sl_layer_finish(net, layer, training);
}

struct sl_epilogue_tiles sl_layer_finish(const struct sl_network *net, struct sl_layer *layer,
                                         bool training)
{
    struct sl_epilogue_tiles e = SL_EPILOGUE_NONE;
    if (layer->bias) {
        e.parameters = &layer->model->parameters;
        e.bias_row = sl_layer_bias_row(layer);
    }
    e.relu = layer->activation == SL_ACTIVATION_RELU;
    e.elu = layer->activation == SL_ACTIVATION_ELU;
    if (!layer->last) {
        e.drop = sl_layer_dropout(net, layer + 1, training);
        e.after = (layer + 1)->kind->scaled_input ? SL_ROW_RIGHT : SL_ROW_NONE;
    }
    return e;
}

struct sl_epilogue_tiles sl_layer_activation_back(const struct sl_network *net,
                                                  const struct sl_layer *layer)
{
    struct sl_epilogue_tiles e = SL_EPILOGUE_NONE;
    const enum sl_row_scale before = (layer - 1)->back.gradient_factor;
    const bool right = layer->kind->scaled_input;
    e.before = !right                           ? before
               : before == SL_ROW_LEFT          ? SL_ROW_BOTH
               : before == SL_ROW_INVERSE_RIGHT ? SL_ROW_NONE
                                                : SL_ROW_RIGHT;
    const struct sl_dropout drop = sl_layer_dropout(net, layer, true);
    if ((layer - 1)->activation == SL_ACTIVATION_NONE) {
        e.drop = drop; /* no output is a mask */
        return e;
    }
    e.scale = drop.scale;
    e.elu_back = (layer - 1)->activation == SL_ACTIVATION_ELU ? 1.0f / e.scale : 0.0f;
    if (right && e.elu_back > 0.0f)
        e.mask_scale = SL_ROW_INVERSE_RIGHT;
    return e;
}

void sl_layer_add_rows(struct sl_network *net, const struct sl_layer *layer,
                       const struct sl_matrix *x, const struct sl_matrix *y)
{
    for (int t = 0; t < y->tile_rows * y->tile_cols; t++)
        sl_submit_add_scaled(
            net->rt, &(struct sl_add_scaled){
                         .scale = 1.0f,
                         .scales = &net->graph->scales[0][t / y->tile_cols],
                         .factor = layer->kind->scaled_input ? SL_ROW_INVERSE_RIGHT : SL_ROW_NONE,
                         .x = &x->tiles[t],
                         .y = &y->tiles[t],
                     });
}

void sl_layer_add_gradient(struct sl_network *net, const struct sl_layer *layer,
                           const struct sl_matrix *g, const struct sl_matrix *d)
{
    struct sl_epilogue_tiles plain = SL_EPILOGUE_NONE;
    plain.before = SL_ROW_INVERSE_LEFT;
    if (!layer->residual.identity)
        return;
    if (layer->back.gradient_factor == SL_ROW_INVERSE_RIGHT)
        sl_fatal("a layer that adds its input has a gradient with the factor 1 / R");
    if (layer->back.gradient_factor == SL_ROW_LEFT)
        sl_network_finish(net, &plain, NULL, g, g);
    sl_layer_add_rows(net, layer, g, d);
}

bool sl_layer_leaves_sums(const struct sl_network *net, const struct sl_layer *layer)
{
    return layer->residual.identity || sl_jump_reads(net, layer->index - 1);
}

struct sl_matrix *sl_layer_mask(const struct sl_layer *layer)
{
    struct sl_layer *before = (struct sl_layer *)layer - 1;
    return before->activation == SL_ACTIVATION_NONE ? NULL : &before->output;
}

struct sl_matrix *sl_layer_finish_sums(struct sl_network *net, const struct sl_layer *layer,
                                       const struct sl_matrix *d)
{
    struct sl_matrix *y = &net->layer[layer->index - 1].output;
    const struct sl_epilogue_tiles finish = sl_layer_activation_back(net, layer);
    sl_network_finish(net, &finish, sl_layer_mask(layer), d, y);
    return y;
}
