#include "predict/scenario.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assembly/operands.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/view.h"
#include "graphs/layer.h"
#include "graphs/product.h"
#include "predict/planned.h"

static bool is_renumbered(const struct sl_source *source)
{
    return source->order.vertex || source->order.original.data;
}

struct sl_scenario sl_scenario_of(const struct sl_source *source,
                                  const struct sl_training *training,
                                  const struct sl_partition *partition,
                                  const struct sl_tile_counts *counts, const struct sl_rates *rates,
                                  const struct sl_rates *core)
{
    return (struct sl_scenario){
        .training = training,
        .kind = &sl_distribution_block,
        .rates = rates,
        .core = core,
        .partition = partition,
        .counts = counts,
        .vertices = source->vertices,
        .numbered = is_renumbered(source) ? source->vertices : 0,
        .features = source->features,
        .classes = source->classes,
        .row_bytes = sl_operands_row_bytes(source, &training->assembly),
        .feature_entries = sl_source_feature_entries(source),
        .sums_are_read = source->selection.aggregated_from != NULL,
    };
}

/* ---- Memory ---- */

/* The first rank of the group with most rows. */
static int largest_group(const struct sl_partition *p, int columns)
{
    int64_t most = -1;
    int largest = 0;
    for (int r = 0; r < p->ranks; r += columns) {
        const int64_t rows = p->row_cut[p->rank_cut[r + columns]] - p->row_cut[p->rank_cut[r]];
        if (rows > most)
            largest = r;
        most = rows > most ? rows : most;
    }
    return largest;
}

static int64_t group_rows(const struct sl_planned *g)
{
    return g->row_cut[g->d.tiles];
}

static int64_t feature_bytes(const struct sl_planned *g, const struct sl_input *input)
{
    const int64_t n = group_rows(g), columns = g->d.grid.columns;
    const int64_t width = (input->width + columns - 1) / columns;
    const double entries =
        (double)input->csr.nnz * (double)n / (double)g->adjacency.rows / (double)columns;
    return input->sparse ? (int64_t)(entries * (width <= 65536 ? 6.0 : 8.0)) + 4 * n
                         : n * sl_leading(width, g->net.graph->type) *
                               (int64_t)sl_type_size(g->net.graph->type);
}

/* Matrices in which a rank keeps rows of other ranks, as graphs/partials.h does. */
struct kept {
    int64_t width;
    enum sl_type type;
    int output;
};

static bool is_known(const struct kept *list, int count, const struct kept *one)
{
    bool known = false;
    for (int k = 0; k < count; k++)
        known = known || (list[k].width == one->width && list[k].type == one->type &&
                          list[k].output == one->output);
    return known;
}

/* Add the matrices of a layer's aggregations that are not in the list yet. Return the bytes of a
 * row of the added ones. */
static int64_t add_kept(const struct sl_network *net, const struct sl_layer *layer, bool clones,
                        struct kept *list, int *count)
{
    struct sl_aggregation all[SL_AGGREGATIONS];
    const int aggregations = sl_layer_aggregations(net, layer, all);
    const int last = net->graph->distribution->grid.columns - 1; /* the widest column */
    int64_t bytes = 0;
    for (int a = 0; a < aggregations; a++) {
        const int64_t *merged = sl_aggregation_merged(&all[a], clones);
        if (clones && all[a].state && !all[a].transposed)
            continue; /* clones merge into the state itself */
        for (int o = 0; o < (clones ? 1 : all[a].reducer->outputs); o++) {
            const enum sl_type type =
                clones ? SL_FLOAT32 : sl_reducer_type(all[a].reducer, o, all[a].type);
            const struct kept one = {merged[last + 1], type, o};
            if (is_known(list, *count, &one))
                continue;
            list[(*count)++] = one;
            bytes += sl_leading(sl_cut_width(merged, last), type) * (int64_t)sl_type_size(type);
        }
    }
    return bytes;
}

/* Rows of other groups in their stages, and states for them, or gradients of the own clones. */
static int64_t received_bytes(const struct sl_planned *g, const struct sl_runtime *rt,
                              const struct sl_distribution *d)
{
    const struct sl_tile_run own = sl_grid_group(d, rt->rank), panel = sl_grid_panel(d, rt->rank);
    const int64_t rows = d->row_cut[own.to] - d->row_cut[own.from];
    const bool clones = d->kind->clones;
    const int64_t summed = clones ? rows : d->row_cut[panel.to] - d->row_cut[panel.from] - rows;
    const size_t most = (size_t)(g->net.layers * SL_AGGREGATIONS * SL_OUTPUTS);
    struct kept *list = calloc(most, sizeof *list);
    int64_t bytes = 0;
    int count = 0;
    if (!list)
        sl_fatal("no memory for the aggregations of %d layers", g->net.layers);
    for (int l = 0; l < g->net.layers && (d->grid.depth > 1 || clones); l++)
        bytes += summed * add_kept(&g->net, &g->net.layer[l], clones, list, &count);
    free(list);
    return sl_product_received_bytes(&g->net, rt, d) + bytes;
}

/* The optimizer's state and the like, which rank 0 has. */
static int64_t first_rank_bytes(const struct sl_planned *g)
{
    int64_t bytes = 0;
    for (int l = 0; g->rt.rank > 0 && l < g->net.layers; l++) {
        const struct sl_layer *layer = &g->net.layer[l];
        bytes += (g->model.options.states + (layer->model->best.rows > 0) +
                  (layer->back.gradient.rows > 0)) *
                 layer->model->parameters.rows * layer->model->parameters.cols * 4;
    }
    return bytes;
}

/* The gradients that it receives: in each step of the tree a C-th of the weights, then the rest. */
static int64_t first_rank_gradients(const struct sl_planned *g, const struct sl_grid *grid)
{
    int64_t bytes = 0;
    int steps = 0;
    while (1 << steps < grid->rows * grid->depth)
        steps++;
    for (int l = 0; l < g->net.layers; l++) {
        const struct sl_tile *all = &g->net.layer[l].model->parameters;
        bytes += (steps + grid->columns - 1) *
                 (int64_t)sl_memory_taken((size_t)(all->rows * all->cols * 4 / grid->columns));
    }
    return bytes;
}

static void add_memory(const struct sl_planned *g, const struct sl_distribution *d, int first,
                       struct sl_prediction *out)
{
    const struct sl_runtime rt = sl_view_planned(first, d->ranks, g->rt.stages);
    struct sl_plan *plan = &out->memory;
    const int64_t received = plan->bytes[SL_PLAN_RECEIVED]; /* links have added theirs */
    sl_plan_add_network(&g->net, plan);
    plan->bytes[SL_PLAN_ADJACENCY] = out->adjacency_bytes;
    plan->bytes[SL_PLAN_FEATURES] += feature_bytes(g, &g->net.graph->input);
    if (g->net.graph->input.aggregated && g->net.layer->kind->weights.count > 1)
        plan->bytes[SL_PLAN_FEATURES] += feature_bytes(g, &g->net.graph->own);
    plan->bytes[SL_PLAN_RECEIVED] = received + received_bytes(g, &rt, d);
    plan->bytes[SL_PLAN_PARAMETERS] += first_rank_bytes(g);
    plan->bytes[SL_PLAN_GRADIENTS] += first_rank_gradients(g, &d->grid);
    for (int k = 0; k < SL_PLAN_KINDS; k++)
        plan->total += plan->bytes[k];
    if (g->net.graph->input.aggregated && !g->net.graph->input.sparse)
        sl_plan_start(plan, &rt, d,
                      feature_bytes(g, &g->net.graph->input) * 4 /
                          (int64_t)sl_type_size(g->net.graph->type),
                      g->net.graph->input.width);
}

int sl_scenario_predict(const struct sl_scenario *scenario, const struct sl_grid *grid,
                        struct sl_prediction *out)
{
    const struct sl_partition *p = scenario->partition;
    const struct sl_distribution d = {
        .kind = scenario->kind,
        .own = scenario->own,
        .ranks = p->ranks,
        .grid = *grid,
        .broadcast = scenario->training->assembly.owners.broadcast,
        .own_first = scenario->training->assembly.owners.own_first,
        .tiles_alone = scenario->training->assembly.reducer->alone,
        .drops_adjacency = scenario->training->assembly.drops_adjacency,
        .tiles = p->tiles,
        .rank_cut = p->rank_cut,
        .row_cut = p->row_cut,
        .hop = p->hop,
    };
    struct sl_planned group;
    const int first = largest_group(p, grid->columns);
    *out = (struct sl_prediction){.grid = *grid};
    int code = sl_planned_create(&group, scenario, first, grid->columns);
    if (!code)
        code = sl_predict_network(&group.net, &d, scenario->counts, scenario->rates, out);
    if (!code)
        add_memory(&group, &d, first, out);
    sl_planned_destroy(&group);
    return code;
}

/* ---- All grids ---- */

static int64_t narrowest(const struct sl_scenario *scenario)
{
    const int64_t least =
        scenario->features < scenario->classes ? scenario->features : scenario->classes;
    const struct sl_assembly *assembly = &scenario->training->assembly;
    const int64_t hidden = assembly->model.heads > 0
                               ? assembly->model.heads
                               : assembly->model.hidden; /* heads are not cut */
    if (assembly->model.whole_rows)
        return 1;
    if (assembly->reducer->again && assembly->model.out_heads > 0)
        return 1; /* the last layer's mean of heads is not cut */
    if (assembly->reducer->whole)
        return 1;
    return assembly->model.inner && hidden < least ? hidden : least;
}

static int predict_next(const struct sl_scenario *scenario, const struct sl_grid *grid,
                        struct sl_prediction **list, int *count)
{
    struct sl_prediction *longer = realloc(*list, (size_t)(*count + 1) * sizeof **list);
    if (!longer)
        return sl_error(SL_ERR_SYSTEM, "no memory for the predictions of %d grids", *count + 1);
    *list = longer;
    return sl_scenario_predict(scenario, grid, &longer[(*count)++]);
}

static int predict_halo(const struct sl_scenario *scenario, struct sl_scenario_halo *halo,
                        struct sl_prediction **list, int *count)
{
    const struct sl_grid grid = {halo->partition.ranks, 1, 1};
    struct sl_scenario with_halo = *scenario;
    with_halo.partition = &halo->partition;
    with_halo.counts = &halo->counts;
    with_halo.kind = &sl_distribution_halo;
    with_halo.own = halo->halo.halo;
    if (is_renumbered(&halo->ordered))
        with_halo.numbered = scenario->vertices;
    int code = predict_next(&with_halo, &grid, list, count);
    with_halo.counts = &halo->cover.tiles;
    with_halo.kind = &sl_distribution_cover;
    with_halo.own = halo->cover.rows.halo;
    if (!code && halo->has_cover)
        code = predict_next(&with_halo, &grid, list, count);
    return code;
}

/* Training would ask for more --tiles. */
static bool has_large_tiles(const struct sl_scenario *scenario, const struct sl_partition *p)
{
    int64_t rows = 0;
    for (int t = 0; t < p->tiles; t++)
        rows = p->row_cut[t + 1] - p->row_cut[t] > rows ? p->row_cut[t + 1] - p->row_cut[t] : rows;
    return rows * scenario->row_bytes > INT32_MAX;
}

static int predict_cut(const struct sl_scenario *scenario, struct sl_scenario_cut *cut,
                       struct sl_vertex_cut *own, struct sl_prediction **list, int *count)
{
    const struct sl_cut_counts *clones = &cut->clones;
    struct sl_scenario with_cut = *scenario;
    with_cut.partition = &cut->partition;
    with_cut.counts = &cut->counts;
    with_cut.kind = &sl_distribution_vertex_cut;
    with_cut.own = own;
    with_cut.numbered = scenario->vertices;
    with_cut.vertices = clones->bounds[clones->ranks];
    with_cut.feature_entries = scenario->feature_entries ? clones->feature_entries : 0;
    return predict_next(&with_cut, &(struct sl_grid){cut->partition.ranks, 1, 1}, list, count);
}

int sl_scenario_predict_all(const struct sl_scenario *scenario, struct sl_scenario_counts *counts,
                            struct sl_prediction **list, int *count)
{
    struct sl_scenario_cut *cut = &counts->cut;
    const int ranks = scenario->partition->ranks;
    const int64_t most = narrowest(scenario);
    int code = 0;
    *list = NULL;
    *count = 0;
    for (int layers = 1; !code && layers <= ranks; layers++)
        for (int columns = 1; !code && ranks % layers == 0 && columns <= ranks / layers; columns++)
            if (ranks / layers % columns == 0 && columns <= most)
                code = predict_next(scenario,
                                    &(struct sl_grid){ranks / layers / columns, columns, layers},
                                    list, count);
    if (!code && counts->has_halo)
        code = predict_halo(scenario, &counts->halo, list, count);
    const bool cuts = counts->has_cut && !has_large_tiles(scenario, &cut->partition);
    if (!code && cuts)
        code = predict_cut(scenario, cut, &cut->exact, list, count);
    if (!code && cuts && cut->has_late)
        code = predict_cut(scenario, cut, &cut->late, list, count);
    return code;
}

void sl_scenario_free_all(struct sl_prediction *list, int count)
{
    for (int i = 0; i < count; i++)
        sl_prediction_free(&list[i]);
    free(list);
}

/* ---- The choice ---- */

static const double GAIN = 0.1;

/* The fastest that fits; where nothing fits, what takes least; NULL where there is none. */
static const struct sl_prediction *find_fastest(const struct sl_prediction *list, int count,
                                                int64_t space, bool exact)
{
    const struct sl_prediction *best = NULL, *least = NULL;
    for (const struct sl_prediction *f = list; f < list + count; f++) {
        if (f->exact != exact)
            continue;
        const bool fits = !space || f->memory.total <= space;
        if (fits && (!best || f->seconds < best->seconds))
            best = f;
        if (!least || f->memory.total < least->memory.total)
            least = f;
    }
    return best ? best : least;
}

static bool is_hardly_slower(const struct sl_prediction *f, const struct sl_prediction *fastest,
                             int64_t space)
{
    return (!space || f->memory.total <= space) && f->seconds <= fastest->seconds * (1.0 + GAIN);
}

/* 1D, the first of the list, if it is hardly slower than the fastest; else the halo or the cover,
 * likewise: these begin with own rows, and hide more than grids do. */
static const struct sl_prediction *find_exact(const struct sl_prediction *list, int count,
                                              int64_t space)
{
    const struct sl_prediction *fastest = find_fastest(list, count, space, true);
    if (is_hardly_slower(&list[0], fastest, space))
        return &list[0];
    const struct sl_prediction *best = fastest;
    for (const struct sl_prediction *f = list; f < list + count; f++)
        if (f->kind->parts && is_hardly_slower(f, fastest, space) &&
            (!best->kind->parts || f->seconds < best->seconds))
            best = f;
    return best;
}

static const struct sl_prediction *find_best(const struct sl_prediction *list, int count,
                                             int64_t space, bool inexact)
{
    const struct sl_prediction *exact = find_exact(list, count, space),
                               *late = find_fastest(list, count, space, false);
    if (!inexact || !late)
        return exact;
    if (space && late->memory.total > space)
        return exact->memory.total <= space || exact->memory.total <= late->memory.total ? exact
                                                                                         : late;
    return is_hardly_slower(exact, late, space) ? exact : late;
}

/* Name the resource of which the winner takes less than 1D. */
static const char *advantage(const struct sl_prediction *best, const struct sl_prediction *one)
{
    const double bytes =
        (double)(one->most.received - best->most.received) / (double)(one->most.received + 1);
    const double work = (one->most.compute - best->most.compute) / one->most.compute;
    return bytes > work                                   ? "it receives fewer bytes"
           : best->most.messages < one->most.messages / 2 ? "it receives fewer messages"
                                                          : "its work is more even";
}

const struct sl_prediction *sl_scenario_choose(const struct sl_prediction *list, int count,
                                               int64_t space, bool inexact, char reason[256])
{
    const double MIB = 1 << 20;
    const struct sl_prediction *one = &list[0], *best = find_best(list, count, space, inexact);
    const bool one_fits = !space || one->memory.total <= space;
    if (count == 1)
        snprintf(reason, 256, "1d is all that there is for these ranks");
    else if (best == one && one_fits)
        snprintf(reason, 256,
                 "1d: nothing else is predicted to be over %.0f %% faster, and its results are "
                 "bitwise the same on any number of ranks",
                 100.0 * GAIN);
    else if (space && best->memory.total > space)
        snprintf(reason, 256, "%s: it takes least memory, and nothing fits", best->name);
    else if (!one_fits)
        snprintf(
            reason, 256,
            "%s: 1d does not fit, and nothing that fits is predicted to be over %.0f %% faster",
            best->name, 100.0 * GAIN);
    else
        snprintf(reason, 256,
                 "%s: %s (%.1f MiB in %lld messages where 1d has %.1f in %lld), %.3g ms per epoch "
                 "where 1d takes %.3g",
                 best->name, advantage(best, one), (double)best->most.received / MIB,
                 (long long)best->most.messages, (double)one->most.received / MIB,
                 (long long)one->most.messages, 1e3 * best->seconds, 1e3 * one->seconds);
    return best;
}

/* ---- On the ranks that there are ---- */

static int decide(const struct sl_runtime *rt, const struct sl_source *source,
                  const struct sl_training *training, struct sl_scenario_counts *counts,
                  struct sl_decision *out)
{
    struct sl_rates rates, core;
    struct sl_prediction *list;
    int entries;
    sl_rates_of_machine(sl_runtime_computing_cores(rt), rt->process->ranks_here, rt->cache_bytes,
                        &rates);
    sl_rates_of_core(rt->cache_bytes, &core);
    const struct sl_scenario scenario =
        sl_scenario_of(source, training, &counts->partition, &counts->counts, &rates, &core);
    const int code = sl_scenario_predict_all(&scenario, counts, &list, &entries);
    if (!code) {
        const struct sl_prediction *chosen =
            sl_scenario_choose(list, entries, counts->space, training->inexact, out->reason);
        out->grid = chosen->grid;
        out->exact = chosen->exact;
        out->named =
            (int)(sl_distribution_name_of(chosen->kind, &chosen->grid) - sl_distribution_names);
    }
    sl_scenario_free_all(list, entries);
    return code;
}

int sl_scenario_decide(struct sl_runtime *rt, struct sl_source *source,
                       const struct sl_training *training, struct sl_decision *decision)
{
    const struct sl_partition_options cuts = sl_operands_cut(rt, &training->assembly);
    struct sl_scenario_counts counts;
    *decision = (struct sl_decision){.reason = ""};
    int code = sl_scenario_counts_create(rt, source, training, &cuts, &counts);
    memcpy(decision->parts, counts.halo.why, sizeof decision->parts);
    if (!code && rt->rank == 0)
        code = decide(rt, source, training, &counts, decision);
    code = sl_runtime_agree(rt, code);
    if (!code)
        sl_runtime_broadcast(rt, 0, decision, sizeof *decision);
    const struct sl_distribution_kind *kind = sl_distribution_names[decision->named].kind;
    if (!code && kind->parts)
        sl_scenario_halo_hand_over(&counts.halo, source);
    if (!code && kind->clones)
        sl_scenario_cut_hand_over(rt, &counts.cut, source);
    sl_scenario_counts_destroy(&counts);
    return code;
}
