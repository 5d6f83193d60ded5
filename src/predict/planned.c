#include "predict/planned.h"

#include <stdlib.h>

#include "assembly/operands.h"
#include "core/error.h"
#include "core/view.h"

/* ---- Features ---- */

/* The features as they are. */
static struct sl_input features_of(const struct sl_scenario *scenario)
{
    return (struct sl_input){
        .sparse = scenario->feature_entries > 0,
        .width = scenario->features,
        .csr = {.nnz = scenario->feature_entries},
    };
}

/* The network's input, as src/assembly/operands_input.c will make it. */
static struct sl_input input_of(const struct sl_scenario *scenario)
{
    const struct sl_distribution d = {.kind = scenario->kind, .own = scenario->own};
    struct sl_input input = features_of(scenario);
    const bool whole = !input.sparse || scenario->sums_are_read;
    input.aggregated =
        scenario->training->assembly.aggregates && sl_operands_can_aggregate(whole, &d);
    if (input.sparse && input.aggregated) {
        input.csr.nnz = (int64_t)sl_operands_aggregated_entries(
            (double)scenario->vertices, (double)scenario->counts->entries,
            (double)scenario->features, (double)scenario->feature_entries);
        input.sparse =
            sl_operands_stay_sparse(input.csr.nnz, scenario->vertices, scenario->features);
    }
    return input;
}

/* ---- One group ---- */

static int cut_group(struct sl_planned *g, const struct sl_partition *p, int first, int columns)
{
    const int from = p->rank_cut[first], tiles = p->rank_cut[first + columns] - from;
    g->rank_cut = malloc((size_t)(columns + 1) * sizeof *g->rank_cut);
    g->row_cut = malloc((size_t)(tiles + 1) * sizeof *g->row_cut);
    if (!g->rank_cut || !g->row_cut)
        return sl_error(SL_ERR_SYSTEM, "no memory for the prediction of %d tiles", tiles);
    for (int c = 0; c <= columns; c++)
        g->rank_cut[c] = p->rank_cut[first + c] - from;
    for (int t = 0; t <= tiles; t++)
        g->row_cut[t] = p->row_cut[from + t] - p->row_cut[from];
    g->d = (struct sl_distribution){
        .kind = &sl_distribution_block,
        .ranks = columns,
        .grid = {1, columns, 1},
        .partials = &g->partials,
        .tiles = tiles,
        .rank_cut = g->rank_cut,
        .row_cut = g->row_cut,
        .hop = p->hop ? p->hop + from : NULL,
    };
    return 0;
}

int sl_planned_create(struct sl_planned *g, const struct sl_scenario *scenario, int first,
                      int columns)
{
    *g = (struct sl_planned){
        .rt = sl_view_planned(columns - 1, scenario->partition->ranks, scenario->training->stages),
        .adjacency = {.rows = scenario->vertices,
                      .cols = scenario->vertices,
                      .nnz = scenario->counts->entries},
    };
    g->graph = (struct sl_graph){
        .row_orders = 1,
        .distribution = &g->d,
        .adjacency = &g->adjacency,
        .adjacency_transposed = &g->adjacency,
        .scales = &g->scales,
        .objective = scenario->training->assembly.objective,
        .planned_links = scenario->training->links,
        .target = &g->target,
        .type = scenario->training->assembly.type,
        .input = input_of(scenario),
        .own = features_of(scenario),
    };
    g->net = (struct sl_network){
        .rt = &g->rt,
        .graph = &g->graph,
        .model = &g->model,
        .rates = scenario->core,
    };
    g->graph.planned_links.numbered = scenario->numbered;
    int code = cut_group(g, scenario->partition, first, columns);
    g->scales = code ? NULL : calloc((size_t)g->d.tiles, sizeof *g->scales);
    g->target = code ? NULL : calloc((size_t)g->d.tiles, sizeof *g->target);
    if (!code && (!g->scales || !g->target))
        return sl_error(SL_ERR_SYSTEM, "no memory for the prediction of %d tiles", g->d.tiles);
    for (int i = 0; !code && i < g->d.tiles; i++) {
        const int owner = sl_distribution_whole_owner(&g->d, i, 0);
        const int64_t rows = g->row_cut[i + 1] - g->row_cut[i];
        sl_tile_create(&g->rt, &g->scales[i], SL_ROW_SCALES, rows, sizeof(float), owner);
        sl_tile_create(
            &g->rt, &g->target[i], rows,
            sl_target_width(g->graph.objective.loss->form, scenario->training->shape.classes),
            sizeof(int32_t), owner);
    }
    if (!code)
        code = sl_model_create(&g->model, &g->rt, &scenario->training->shape);
    struct sl_copies copies = {.hops = scenario->refresh}; /* only while layers are planned */
    g->net.copies = scenario->refresh > 0 ? &copies : NULL;
    if (!code)
        code = sl_network_create(&g->net, scenario->training->product_order, NULL);
    g->net.copies = NULL;
    return code;
}

void sl_planned_destroy(struct sl_planned *g)
{
    sl_network_destroy(&g->net);
    sl_model_destroy(&g->model);
    free(g->scales);
    free(g->target);
    free(g->rank_cut);
    free(g->row_cut);
}
