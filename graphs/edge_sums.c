#include "graphs/edge_sums.h"

#include <stdlib.h>
#include <string.h>

#include "codelets/accumulate.h"
#include "codelets/init.h"
#include "core/error.h"
#include "graphs/layer.h"
#include "graphs/reach.h"

int sl_edge_sums_create(struct sl_network *net, struct sl_edge_sums *sums, int64_t rows,
                        int64_t cols)
{
    const struct sl_tile_run run = sl_grid_group(net->graph->distribution, net->rt->rank);
    const int own = run.to - run.from, count = own > 0 ? 2 * own : 2;
    if (net->evaluates)
        return 0;
    *sums = (struct sl_edge_sums){.first = run.from,
                                  .own = own,
                                  .count = count,
                                  .tile = calloc((size_t)count, sizeof *sums->tile),
                                  .met = calloc((size_t)count, sizeof *sums->met)};
    if (!sums->tile || !sums->met)
        return sl_error(SL_ERR_SYSTEM, "no memory for a layer");
    int code = 0;
    /* ranks have unlike numbers of tiles, and take equally many tags */
    struct sl_runtime alone = *net->rt;
    alone.next_tag = sl_temporary_tags(net->rt, 2 * (int64_t)net->graph->distribution->tiles + 2);
    for (int i = 0; !code && i < count; i++)
        code = sl_tile_create(&alone, &sums->tile[i], rows, cols, sizeof(float), net->rt->rank);
    return code;
}

void sl_edge_sums_destroy(struct sl_edge_sums *sums)
{
    for (int i = 0; sums->tile && i < sums->count; i++)
        sl_tile_destroy(&sums->tile[i]);
    free(sums->tile);
    free(sums->met);
    *sums = (struct sl_edge_sums){0};
}

void sl_edge_sums_begin(struct sl_edge_sums *sums)
{
    memset(sums->met, 0, (size_t)sums->count * sizeof *sums->met);
}

struct sl_tile *sl_edge_sums_at(struct sl_edge_sums *sums, int i, bool part, bool *accumulate)
{
    const int half = sums->count / 2;
    const bool own = !part && i >= sums->first && i < sums->first + sums->own;
    const int at = own ? i - sums->first : half + i % half;
    *accumulate = sums->met[at];
    sums->met[at] = true;
    return &sums->tile[at];
}

void sl_edge_sums_end(struct sl_network *net, const struct sl_layer *layer,
                      struct sl_edge_sums *sums)
{
    int first = 0;
    while (first + 1 < sums->own && sl_product_further(net, layer, sums->first + first)->idle)
        first++;
    for (int t = 0; t < sums->own; t++) {
        if (!sums->met[t])
            sl_submit_fill(net->rt, 0.0f, &sums->tile[t]);
        sums->met[t] = true;
    }
    for (int t = 0; t < sums->count; t++) {
        const bool stays = t < sums->own && !sl_product_further(net, layer, sums->first + t)->idle;
        if (sums->met[t] && !stays && t != first)
            sl_submit_accumulate(net->rt, &sums->tile[t], &sums->tile[first]);
    }
}

/* ---- Layers ---- */

/* Sparse features are expanded, as for a layer whose SpMM comes first. */
int sl_edge_layer_plan(struct sl_network *net, struct sl_layer *layer, int64_t rows, int64_t cols,
                       bool weighs)
{
    struct sl_edge_layer *own = layer->own;
    const int columns = net->graph->distribution->grid.columns;
    layer->order = SL_SPMM_FIRST;
    layer->back.gradient_factor = SL_ROW_NONE;
    own->d_cut = calloc((size_t)columns + 1, sizeof *own->d_cut);
    if (!own->d_cut)
        return sl_error(SL_ERR_SYSTEM, "no memory for a layer");
    for (int c = 0; c <= columns; c++)
        own->d_cut[c] = layer->index > 0 ? layer->columns.in_cut[c] : c;
    int code = sl_edge_sums_create(net, &own->sums, rows, cols);
    if (!code && weighs)
        code = sl_tile_create(net->rt, &own->weight, rows, cols, sizeof(float), net->rt->rank);
    if (!code)
        code = sl_network_plan_scratch_cut(net, layer->input_order, own->d_cut, SL_SLOT_SUM);
    if (!code)
        code = sl_layer_plan_aggregations(net, layer);
    return code ? code : sl_layer_plan_dropped(net, layer);
}

void sl_edge_layer_destroy(struct sl_layer *layer)
{
    struct sl_edge_layer *own = layer->own;
    free(own->d_cut);
    sl_tile_destroy(&own->weight);
    sl_edge_sums_destroy(&own->sums);
    free(own);
}

struct sl_layer_memory sl_edge_layer_memory(const struct sl_layer *layer)
{
    const struct sl_edge_layer *own = layer->own;
    return (struct sl_layer_memory){
        .tile = {&own->weight}, .tiles = own->sums.count, .of_rows = own->sums.tile};
}

struct sl_matrix *sl_edge_layer_back(struct sl_network *net, struct sl_layer *layer,
                                     const struct sl_matrix *g, const void *pass)
{
    struct sl_edge_layer *own = layer->own;
    struct sl_matrix *const d = sl_network_scratch_cut(net, layer->input_order, own->d_cut,
                                                       SL_SLOT_SUM, sl_reach_of_input(layer));
    sl_edge_sums_begin(&own->sums);
    sl_network_walk(net, layer, SL_WALK_BACK,
                    &(struct sl_reduction){.moved = {g},
                                           .row = {sl_layer_dense_input(net, layer, true)},
                                           .out = {d},
                                           .parameters = pass});
    sl_edge_sums_end(net, layer, &own->sums);
    return d;
}
