#include "predict/prediction.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/metrics.h"
#include "codelets/spmm.h"
#include "core/error.h"
#include "core/view.h"
#include "graphs/collective.h"
#include "graphs/columns.h"
#include "graphs/cost.h"
#include "graphs/layer.h"
#include "graphs/layer_jump.h"
#include "graphs/product.h"
#include "graphs/reach.h"
#include "predict/link_costs.h"

/* A walk and its counts (ranks). */
struct walk {
    struct sl_counted_walk is;
    struct sl_walk_counts *met;
};

struct predicting {
    const struct sl_network *net;
    const struct sl_distribution *d;
    const struct sl_tile_counts *counts;
    const struct sl_rates *rates;
    struct sl_grid grid;
    struct walk *walk; // (walks): all that differ
    int walks;
    struct sl_link_costs *links; // (ranks); NULL: there are no links
};

static int owner_of(const struct predicting *f, int i)
{
    return sl_distribution_whole_owner(f->d, i, 0);
}

/* Walks with a symmetric matrix go the same way. */
static struct sl_counted_walk walk_in(const struct predicting *f,
                                      const struct sl_aggregation *aggregation,
                                      const struct sl_layer *layer)
{
    struct sl_counted_walk is = sl_reach_of_walk(layer, f->d, aggregation->transposed);
    is.transposed = aggregation->transposed && !f->counts->symmetric;
    return is;
}

static struct walk *find_walk(const struct predicting *f, const struct sl_counted_walk *is)
{
    for (struct walk *w = f->walk; w < f->walk + f->walks; w++)
        if (w->is.transposed == is->transposed && w->is.from == is->from && w->is.to == is->to)
            return w;
    return NULL;
}

/* The tiles of S, or of its transpose where that is another matrix, on the ranks. */
static const struct sl_walk_counts *tiles_of(const struct predicting *f, bool transposed)
{
    return find_walk(f, &(struct sl_counted_walk){transposed, INT_MAX, INT_MAX})->met;
}

static int count_walk(struct predicting *f, const struct sl_counted_walk *is)
{
    struct walk *w = &f->walk[f->walks];
    if (find_walk(f, is))
        return 0;
    *w = (struct walk){*is, calloc((size_t)f->d->ranks, sizeof *w->met)};
    f->walks++;
    return w->met
               ? f->d->kind->count(f->d, f->counts, is, w->met)
               : sl_error(SL_ERR_SYSTEM, "no memory for the prediction of %d ranks", f->d->ranks);
}

/* Count the walks of all layers, and of matrices that each rank has whole. */
static int count_walks(struct predicting *f)
{
    const int layers = f->net->layers;
    f->walk = calloc((size_t)(layers * SL_AGGREGATIONS + 2), sizeof *f->walk);
    int code =
        f->walk ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for the walks of %d layers", layers);
    for (int t = 0; !code && t < (f->counts->symmetric ? 1 : 2); t++)
        code = count_walk(f, &(struct sl_counted_walk){t, INT_MAX, INT_MAX});
    for (int l = 0; !code && l < layers; l++) {
        struct sl_aggregation list[SL_AGGREGATIONS];
        const int count = sl_layer_aggregations(f->net, &f->net->layer[l], list);
        for (int a = 0; !code && a < count; a++) {
            const struct sl_counted_walk is = walk_in(f, &list[a], &f->net->layer[l]);
            code = count_walk(f, &is);
        }
    }
    return code;
}

static int count_links(struct predicting *f)
{
    if (f->net->graph->planned_links.negatives == 0)
        return 0;
    f->links = calloc((size_t)f->d->ranks, sizeof *f->links);
    return f->links
               ? sl_link_costs_count(f->net, f->d, f->counts, f->links)
               : sl_error(SL_ERR_SYSTEM, "no memory for the prediction of %d ranks", f->d->ranks);
}

static void free_counts(struct predicting *f)
{
    for (int w = 0; w < f->walks; w++)
        free(f->walk[w].met);
    free(f->walk);
    free(f->links);
}

/* ---- Traffic ---- */

static void add_rows(struct sl_rank_prediction *rank, int64_t bytes, int64_t messages)
{
    rank->rows += bytes;
    rank->received += bytes;
    rank->messages += messages;
}

static void add_sums(struct sl_rank_prediction *rank, int64_t bytes, int64_t messages)
{
    rank->sums += bytes;
    rank->received += bytes;
    rank->messages += messages;
}

static void add_rest(struct sl_rank_prediction *rank, int64_t bytes, int64_t messages)
{
    rank->received += bytes;
    rank->messages += messages;
}

/* The tiles of the adjacency that the others of the group own. */
static void add_adjacency(const struct predicting *f, bool t, int r,
                          struct sl_rank_prediction *rank)
{
    const struct sl_walk_counts *tiles = tiles_of(f, t);
    const int first = r - sl_grid_column(&f->grid, r);
    for (int other = first; other < first + f->grid.columns; other++)
        if (other != r) {
            rank->adjacency += tiles[other].own_bytes;
            add_rest(rank, tiles[other].own_bytes, tiles[other].own_tiles);
        }
}

static int64_t times(double count, int64_t factor)
{
    return llround(count * (double)factor);
}

/* Bytes of a row of all moved matrices on a column of the grid. */
static int64_t moved_bytes(const struct sl_aggregation *aggregation, int column)
{
    const int64_t size = (int64_t)sl_type_size(aggregation->type);
    const int64_t own = sl_cut_width(aggregation->cut, column) * size;
    return aggregation->state
               ? own + sl_cut_width(aggregation->others, column) * (int64_t)sizeof(float)
               : aggregation->reducer->moved * own;
}

/* Columns of what ranks merge on a column of the grid. */
static int64_t merged_columns(const struct predicting *f, const struct sl_aggregation *aggregation,
                              int column)
{
    return sl_cut_width(sl_aggregation_merged(aggregation, f->d->kind->clones), column);
}

/* The bytes that a rank receives in all passes of an aggregation: rows and row operands, from the
 * start; sums, and rows that replace others, once they are made. */
struct payload {
    int64_t bytes, messages;
};

struct flow {
    struct payload rows, sums, replaced;
};

static struct payload payload_of(double share, const struct sl_flow *rows, int64_t bytes,
                                 int64_t matrices)
{
    return (struct payload){times(share * rows->rows, bytes),
                            times(share * rows->messages, matrices)};
}

static double passes_of(const struct predicting *f, const struct sl_layer *layer,
                        const struct sl_aggregation *aggregation)
{
    return aggregation->transposed || aggregation->again ? 1.0 : sl_network_passes(f->net, layer);
}

static const struct sl_walk_counts *walk_of(const struct predicting *f,
                                            const struct sl_layer *layer,
                                            const struct sl_aggregation *aggregation, int r)
{
    const struct sl_counted_walk is = walk_in(f, aggregation, layer);
    return &find_walk(f, &is)->met[r];
}

static struct flow flow_of(const struct predicting *f, const struct sl_layer *layer,
                           const struct sl_aggregation *aggregation, int r)
{
    const struct sl_walk_counts *m = walk_of(f, layer, aggregation, r);
    const int column = sl_grid_column(&f->grid, r);
    const struct sl_reducer *reducer = aggregation->reducer;
    const int64_t merged = merged_columns(f, aggregation, column);
    const struct sl_states_size states =
        sl_distribution_states(f->d, reducer, aggregation->type, aggregation->transposed);
    const double passes = passes_of(f, layer, aggregation);
    const double share = passes * f->d->kind->share(f->d, aggregation->transposed);
    struct flow flow = {
        .rows = payload_of(share, &m->moved, moved_bytes(aggregation, column), reducer->moved),
    };
    if (merged > 0) {
        flow.sums = payload_of(share, &m->merged, merged * states.element, states.matrices);
        flow.replaced = payload_of(share, &m->replaced, merged * states.element, states.matrices);
    }
    if (aggregation->operands && !f->d->kind->clones) {
        const struct payload operands = payload_of(
            passes, &m->made, sl_cut_width(aggregation->operands, column) * (int64_t)sizeof(float),
            reducer->row_operands);
        flow.rows.bytes += operands.bytes;
        flow.rows.messages += operands.messages;
    }
    return flow;
}

static void add_aggregations(const struct predicting *f, const struct sl_layer *layer, int r,
                             struct sl_rank_prediction *rank)
{
    struct sl_aggregation list[SL_AGGREGATIONS];
    const int count = sl_layer_aggregations(f->net, layer, list);
    for (int a = 0; a < count; a++) {
        const struct flow flow = flow_of(f, layer, &list[a], r);
        add_rows(rank, flow.rows.bytes, flow.rows.messages);
        add_sums(rank, flow.sums.bytes, flow.sums.messages);
        add_rows(rank, flow.replaced.bytes, flow.replaced.messages);
        const bool t = list[a].transposed && !f->counts->symmetric;
        for (int p = 0; f->d->drops_adjacency && p < (int)passes_of(f, layer, &list[a]); p++)
            add_adjacency(f, t, r, rank);
    }
}

/* Add the bytes that ranks of one grid row receive from one another: for products with weights, and
 * for the logits, which become whole and are cut again. */
static void add_columns(const struct predicting *f, int r, struct sl_rank_prediction *rank)
{
    const struct sl_network *net = f->net;
    struct sl_product_flow flow = {0};
    for (int l = 0; l < net->layers; l++)
        for (const struct sl_layer *of = &net->layer[l]; of; of = of->beside)
            for (int w = 0; w < sl_layer_product_count(of); w++)
                sl_product_count(net, of, w, f->d, r, &flow);
    add_rows(rank, flow.rows, flow.messages);
    add_sums(rank, flow.sums, 0);
    int64_t messages = 0;
    const int64_t logits =
        sl_columns_count(f->d, net->layer[net->layers - 1].columns.out_cut, r, &messages);
    add_rest(rank, 4 * logits, messages);
}

static void add_weights(struct sl_rank_prediction *rank, int64_t bytes, int64_t messages)
{
    rank->weights += bytes;
    rank->weight_messages += messages;
    add_rest(rank, bytes, messages);
}

/* Gradients go to rank 0, and parameters come back to all. */
static void add_gradients(const struct predicting *f, const struct sl_layer *layer,
                          struct sl_product_flow *flow, struct sl_rank_prediction *rank)
{
    memset(flow, 0, (size_t)f->d->ranks * sizeof *flow);
    for (const struct sl_layer *of = layer; of; of = of->beside)
        sl_product_count_gradients(f->net, of, f->d, flow);
    for (int r = 0; r < f->d->ranks; r++)
        add_weights(&rank[r], flow[r].sums, flow[r].messages);
    for (int r = 1; r < f->d->ranks; r++)
        add_weights(&rank[r], layer->model->parameters.rows * layer->model->parameters.cols * 4, 1);
}

/* Sums of metrics go to rank 0, which then tells all ranks. */
static void add_metrics(const struct predicting *f, struct sl_rank_prediction *rank)
{
    const int64_t bytes = SL_METRICS * (int64_t)sizeof(double);
    int *tile;
    const int tiles =
        sl_distribution_tiles(f->d, f->net->layer[f->net->layers - 1].rows.hops, &tile);
    for (struct sl_reduce_step s = {0}; sl_reduce_next(&s, tiles);)
        if (owner_of(f, tile[s.to]) != owner_of(f, tile[s.from]))
            add_rest(&rank[owner_of(f, tile[s.to])], bytes, 1);
    free(tile);
    if (owner_of(f, 0) > 0)
        add_rest(&rank[0], bytes, 1);
    for (int r = 1; r < f->d->ranks; r++)
        add_rest(&rank[r], bytes, 1);
}

/* Columns that are normalised. The owner of a grid column's first row tile gets the sums of this
 * grid column. The owner of the first row tile of all gets them from these owners. All ranks get
 * the statistics and the gradient of the parameters. */
static void add_statistics(const struct predicting *f, const struct sl_layer *layer,
                           struct sl_rank_prediction *rank)
{
    const int64_t width = layer->out, rows = layer->model->parameters.rows;
    const int first = sl_distribution_dense_owner(f->d, 0, 0);
    int *tile;
    const int tiles = sl_distribution_tiles(f->d, layer->rows.hops, &tile);
    for (int c = 0; c < f->grid.columns; c++) {
        const int64_t sums = 2 * sl_cut_width(layer->columns.out_cut, c) * (int64_t)sizeof(double);
        for (struct sl_reduce_step s = {0}; sl_reduce_next(&s, tiles);) {
            const int to = sl_distribution_dense_owner(f->d, tile[s.to], c);
            if (to != sl_distribution_dense_owner(f->d, tile[s.from], c))
                add_rest(&rank[to], sums, 1);
        }
        if (c > 0)
            add_rest(&rank[first], sums, 1);
    }
    free(tile);
    for (int r = 0; r < f->d->ranks; r++) {
        if (r != first)
            add_rest(&rank[r], 2 * width * (int64_t)sizeof(float), 1);
        if (r > 0)
            add_weights(&rank[r], rows * width * (int64_t)sizeof(float), 1);
    }
}

/* Rows that are normalised. */
static void add_parts(const struct predicting *f, struct sl_rank_prediction *rank)
{
    for (int r = 0; r < f->d->ranks; r++) {
        int64_t messages = 0;
        const int64_t bytes = sl_layer_count_norm(f->d, r, &messages);
        add_rest(&rank[r], bytes, messages);
    }
}

/* ---- Links ---- */

/* All rows of embeddings come to each rank. Blocks of pairs come to the owners of their targets. */
static void add_links(const struct predicting *f, int r, struct sl_rank_prediction *rank)
{
    const int others = f->d->tiles - f->links[r].tiles;
    const double row = 4.0 * (double)f->net->layer[f->net->layers - 1].out;
    add_rows(rank, llround(f->links[r].rows * row), others);
    add_rest(rank, llround(f->links[r].training), others);
}

/* Scores, gradients of sources and of targets read a row for each pair, with a task for each row
 * tile and rank. Lists and losses take so many seconds for a pair on a core. */
static double links_seconds(const struct predicting *f, int r)
{
    static const double SECONDS = 1e-7, PASSES = 3.0;
    const struct sl_link_costs *links = &f->links[r];
    const double row = 4.0 * (double)f->net->layer[f->net->layers - 1].out;
    return PASSES * sl_rates_gather_seconds(f->rates, links->pairs, row,
                                            row * (double)f->d->row_cut[f->d->tiles]) +
           (links->pairs * SECONDS + PASSES * links->tiles * f->d->ranks * f->rates->task) /
               f->rates->cores;
}

static int add_traffic(const struct predicting *f, struct sl_rank_prediction *rank)
{
    struct sl_product_flow *flow = calloc((size_t)f->d->ranks, sizeof *flow);
    if (!flow)
        return sl_error(SL_ERR_SYSTEM, "no memory for the prediction of %d ranks", f->d->ranks);
    for (int r = 0; r < f->d->ranks; r++) {
        for (int l = 0; l < f->net->layers; l++)
            add_aggregations(f, &f->net->layer[l], r, &rank[r]);
        if (f->grid.columns > 1)
            add_columns(f, r, &rank[r]);
        if (f->links)
            add_links(f, r, &rank[r]);
    }
    add_metrics(f, rank);
    for (int l = 0; l < f->net->layers; l++)
        if (sl_model_learns(f->net->layer[l].model))
            add_gradients(f, &f->net->layer[l], flow, rank);
    for (int l = 0; l < f->net->layers; l++)
        if (f->net->layer[l].kind->vectors.averages)
            add_statistics(f, &f->net->layer[l], rank);
        else if (f->net->layer[l].kind == &sl_layer_row_norm)
            add_parts(f, rank);
    free(flow);
    return 0;
}

/* ---- Time ---- */

/* Rows of a rank that are at most `hops` hops away, where hops are known. */
static double rows_within(const struct predicting *f, struct sl_tile_run run, int hops)
{
    int64_t rows = 0;
    for (int i = run.from; i < run.to; i++)
        if (!f->d->hop || f->d->hop[i] <= hops)
            rows += f->d->row_cut[i + 1] - f->d->row_cut[i];
    return (double)rows;
}

/* Return the tasks of an aggregation: one per row tile and stage, with two stages per rank, but at
 * most one per tile. A task takes at most SL_SPMM_PARTS tiles. */
static double aggregation_tasks(const struct predicting *f, const struct sl_walk_counts *m)
{
    const double runs = 2.0 * f->grid.rows, tiles = (double)m->tiles;
    return fmax(fmin(tiles, (double)m->row_tiles * runs), tiles / SL_SPMM_PARTS);
}

/* Seconds in which messages travel and no processor is at work on them. */
static double travel_seconds(const struct sl_link *link, struct payload payload)
{
    const double bytes = (double)payload.bytes, messages = (double)payload.messages;
    return sl_link_seconds(link, bytes, messages) - sl_link_busy_seconds(link, bytes, messages);
}

/* Messages of a rank whose workers work travel at half their rate: the threads share cores
 * (measured: docs/GROUPS.md). So half of what could be hidden is. */
static const double HIDDEN = 0.5;

/* Return how much of the messages and sparse products of an aggregation, in seconds, goes on at the
 * same time. `met` are the seconds of all products. Rows of other ranks travel from the start. Sums
 * travel when the ranks that make them have made them. Received rows are worked on in stages. */
static double hidden_seconds(const struct predicting *f, const struct sl_walk_counts *m,
                             const struct flow *flow, const struct sl_link *link, double met)
{
    const double entry = met / fmax((double)sl_counts_nnz(m), 1.0);
    const double last = f->d->own_first ? 0.0 : entry * (double)m->own_last;
    const double made = entry * (double)m->others.early, made_late = entry * (double)m->others.late,
                 early = made + entry * (double)m->own.early - last, late = met - early;
    const double rows = travel_seconds(link, flow->rows),
                 sums = travel_seconds(link, flow->sums) + travel_seconds(link, flow->replaced);
    const double stages = fmax(fmin((double)flow->rows.messages, (double)f->net->rt->stages), 1.0);
    const double sent = made_late > 0.0 ? fmax(rows, early) + made_late : made;
    const double worked = fmax(rows + late / stages, early + late);
    const double elapsed = fmax(fmax(rows, sent) + sums, worked);
    return f->net->rt->stages > 1 ? fmax(HIDDEN * (rows + sums + met - elapsed), 0.0) : 0.0;
}

static enum sl_walk_way way_of(const struct sl_aggregation *aggregation)
{
    return aggregation->again        ? SL_WALK_AGAIN
           : aggregation->transposed ? SL_WALK_BACK
                                     : SL_WALK_FORWARD;
}

static void add_aggregation_times(const struct predicting *f, const struct sl_layer *layer, int r,
                                  const struct sl_link *link, struct sl_rank_prediction *rank)
{
    struct sl_aggregation list[SL_AGGREGATIONS];
    const int count = sl_layer_aggregations(f->net, layer, list);
    const struct sl_tile_run own = sl_grid_group(f->d, r);
    for (int a = 0; a < count; a++) {
        const struct sl_walk_counts *m = walk_of(f, layer, &list[a], r);
        const struct flow flow = flow_of(f, layer, &list[a], r);
        const double row = (double)moved_bytes(&list[a], sl_grid_column(&f->grid, r));
        const struct sl_counted_walk is = walk_in(f, &list[a], layer);
        const double states =
            f->d->kind->clones && !list[a].transposed ? list[a].reducer->outputs : 1.0;
        const bool packs = !(f->d->kind->clones && list[a].again);
        const double packed = packs ? f->d->kind->share(f->d, list[a].transposed) * m->packed : 0.0;
        const double nnz = (double)sl_counts_nnz(m);
        const struct sl_walk_size walk = {.rates = f->rates,
                                          .way = way_of(&list[a]),
                                          .first = layer->index == 0,
                                          .columns = f->grid.columns,
                                          .entries = nnz,
                                          .rows = rows_within(f, own, is.to)};
        const double met = sl_cost_walk(&layer->model->shape, &walk, row, m->table);
        const double passes = passes_of(f, layer, &list[a]);
        rank->compute +=
            passes * (met + aggregation_tasks(f, m) * f->rates->task / f->rates->cores +
                      states * sl_rates_gather_seconds(f->rates, packed, row, packed * row));
        rank->own_last += nnz > 0.0 ? met * (double)m->own_last / nnz : 0.0;
        rank->hidden += hidden_seconds(f, m, &flow, link, passes * met);
    }
}

/* Products with weights, and passes over what the layer hands on. Columns of the grid share rows.
 */
static double product_seconds(const struct predicting *f, const struct sl_layer *layer, int r)
{
    enum { PASSES = 6, PRODUCTS = 3 };
    const struct sl_tile_run run = sl_grid_group(f->d, r);
    const int hops = layer->order == SL_GEMM_FIRST ? sl_reach_of_input(layer) : layer->rows.hops;
    const double n = rows_within(f, run, hops) / f->grid.columns;
    const int weights = sl_layer_product_count(layer);
    const struct sl_layer_shape *shape = &layer->model->shape;
    const double tasks = (double)(run.to - run.from) *
                             (f->grid.columns * PRODUCTS * weights + sl_jump_max_tasks(shape)) +
                         PASSES;
    double seconds = tasks * f->rates->task / f->rates->cores +
                     sl_cost_passes(f->rates, shape, n, sizeof(float));
    for (int w = 0; w < weights; w++) {
        const struct sl_input *input = sl_network_input(f->net, layer, w);
        const bool sparse = layer->index == 0 && input->sparse && layer->order != SL_SPMM_FIRST;
        const double share = n / (double)f->net->graph->adjacency->rows;
        const struct sl_layer_work weight = {
            .rates = f->rates,
            .n = n,
            .entries = sparse ? fmax(share * (double)input->csr.nnz, 1.0) : 0.0, /* 0: dense */
            .in = (double)layer->in,
            .out = (double)layer->columns.product,
            .kept = 1.0 - layer->dropout,
            .first = layer->index == 0,
        };
        seconds += sl_cost_weight(&weight, sparse ? 1 : sl_network_passes(f->net, layer));
    }
    return seconds + (layer->beside ? product_seconds(f, layer->beside, r) : 0.0);
}

/* All ranks wait for the trees of gradients and parameters. */
static void add_times(const struct predicting *f, struct sl_prediction *out)
{
    const struct sl_link link = sl_rates_link(f->rates, f->d->ranks);
    double trees = 0.0;
    for (int l = 0; l < f->net->layers; l++)
        trees += sl_cost_trees(&f->net->layer[l].model->shape, &link, f->d->ranks);
    for (int r = 0; r < f->d->ranks; r++) {
        struct sl_rank_prediction *rank = &out->rank[r];
        for (int l = 0; l < f->net->layers; l++) {
            add_aggregation_times(f, &f->net->layer[l], r, &link, rank);
            rank->compute += product_seconds(f, &f->net->layer[l], r);
        }
        if (f->links)
            rank->compute += links_seconds(f, r);
        rank->communication = sl_link_seconds(&link, (double)(rank->received - rank->weights),
                                              (double)(rank->messages - rank->weight_messages)) +
                              trees;
        out->seconds = fmax(out->seconds, rank->compute + rank->communication - rank->hidden);
    }
}

/* ---- One distribution ---- */

static void take_most(struct sl_rank_prediction *most, const struct sl_rank_prediction *rank)
{
#define SL_TAKE(figure) most->figure = most->figure > rank->figure ? most->figure : rank->figure
    SL_TAKE(rows);
    SL_TAKE(sums);
    SL_TAKE(adjacency);
    SL_TAKE(received);
    SL_TAKE(messages);
    SL_TAKE(compute);
    SL_TAKE(communication);
    SL_TAKE(hidden);
    SL_TAKE(own_last);
#undef SL_TAKE
}

static void add_mean(struct sl_prediction *out, int ranks)
{
    struct sl_rank_prediction *mean = &out->mean;
    for (int r = 0; r < ranks; r++) {
        const struct sl_rank_prediction *rank = &out->rank[r];
        take_most(&out->most, rank);
        mean->rows += rank->rows;
        mean->sums += rank->sums;
        mean->adjacency += rank->adjacency;
        mean->received += rank->received;
        mean->messages += rank->messages;
        mean->compute += rank->compute / ranks;
        mean->communication += rank->communication / ranks;
        mean->hidden += rank->hidden / ranks;
        mean->own_last += rank->own_last / ranks;
    }
    mean->rows /= ranks, mean->sums /= ranks, mean->adjacency /= ranks;
    mean->received /= ranks, mean->messages /= ranks;
}

/* All columns of a group keep its tiles, or have them in turns. */
static int64_t adjacency_bytes(const struct predicting *f, int stages)
{
    const struct sl_runtime rt = sl_view_planned(0, f->d->ranks, stages);
    const int turns = sl_distribution_visits(&rt, f->d);
    int64_t most = 0;
    for (int r = 0; r < f->d->ranks; r++) {
        int64_t bytes = 0;
        for (int t = 0; t < (f->counts->symmetric ? 1 : 2); t++) {
            const struct sl_walk_counts *tiles = &tiles_of(f, t)[r];
            bytes += tiles->own_bytes + (tiles->bytes - tiles->own_bytes) / turns;
        }
        most = bytes > most ? bytes : most;
    }
    return most;
}

int sl_predict_network(const struct sl_network *net, const struct sl_distribution *d,
                       const struct sl_tile_counts *counts, const struct sl_rates *rates,
                       struct sl_prediction *out)
{
    struct predicting f = {
        .net = net,
        .d = d,
        .counts = counts,
        .rates = rates,
        .grid = d->grid,
    };
    *out = (struct sl_prediction){.kind = d->kind, .grid = d->grid, .exact = d->kind->exact(d)};
    d->kind->describe(d, out->name);
    out->rank = calloc((size_t)d->ranks, sizeof *out->rank);
    int code = count_walks(&f);
    if (!code)
        code = count_links(&f);
    if (!code && !out->rank)
        code = sl_error(SL_ERR_SYSTEM, "no memory for the prediction of %d ranks", d->ranks);
    if (!code)
        code = add_traffic(&f, out->rank);
    if (!code) {
        add_times(&f, out);
        add_mean(out, d->ranks);
        out->adjacency_bytes = adjacency_bytes(&f, net->rt->stages);
        if (f.links)
            sl_link_costs_plan(net, f.links, d->ranks, &out->memory);
    }
    free_counts(&f);
    return code;
}

void sl_prediction_free(struct sl_prediction *prediction)
{
    free(prediction->rank);
    *prediction = (struct sl_prediction){0};
}
