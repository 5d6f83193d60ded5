/* Count the bytes and messages of products with weights (graphs/product.c), and the memory they
 * take. Nothing is submitted. */
#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/memory.h"
#include "graphs/collective.h"
#include "graphs/product.h"
#include "graphs/reach.h"

static int64_t width_of(const int64_t *cut, int j)
{
    return cut[j + 1] - cut[j];
}

void sl_product_count(const struct sl_network *net, const struct sl_layer *layer, int weight,
                      const struct sl_distribution *d, int rank, struct sl_product_flow *flow)
{
    const struct sl_tile_run run = sl_grid_group(d, rank);
    const int64_t n = d->row_cut[run.to] - d->row_cut[run.from];
    const int64_t others = d->grid.columns - 1, messages = others * (run.to - run.from);
    const int64_t size = (int64_t)sl_type_size(net->graph->type);
    const int c = sl_grid_column(&d->grid, rank);
    const int64_t in = width_of(layer->columns.in_cut, c),
                  out = width_of(layer->columns.product_cut, c);
    const bool sends_input = sl_product_sends_input(net, layer, weight),
               sends_gradient = sl_product_sends_gradient(net, layer, weight),
               terms_back = !sends_gradient && layer->index > 0;
    const int64_t passes = sl_network_passes(net, layer);
    flow->rows += (sends_input ? passes * n * (layer->in - in) * size : 0) +
                  (sends_gradient ? n * (layer->columns.product - out) *
                                        sl_product_gradient_size(net, layer, weight)
                                  : n * (layer->in - in) * size);
    flow->sums +=
        (sends_input ? 0 : passes * others * n * out * 4) + (terms_back ? others * n * in * 4 : 0);
    flow->messages += messages * (passes + 1 + terms_back);
}

/* Blocks of gradients that sum the same rows, on one column of the grid. */
struct blocks {
    int64_t bytes, messages;
    int column, hops; /* column of the grid; hops of the furthest summed rows */
};

/* Count what ranks receive in the tree over row tiles, whose owners share a column of the grid.
 * Then count what the first rank receives: the sum. */
static void count_tree(const struct sl_distribution *d, const struct blocks *b,
                       struct sl_product_flow *flow)
{
    const int columns = d->grid.columns;
    int *tile;
    const int tiles = sl_distribution_tiles(d, b->hops, &tile);
    for (struct sl_reduce_step s = {0}; sl_reduce_next(&s, tiles);) {
        const int to = sl_distribution_whole_owner(d, tile[s.to], 0) / columns,
                  from = sl_distribution_whole_owner(d, tile[s.from], 0) / columns;
        if (to != from) {
            flow[to * columns + b->column].sums += b->bytes;
            flow[to * columns + b->column].messages += b->messages;
        }
    }
    if (sl_distribution_whole_owner(d, 0, 0) / columns * columns + b->column > 0) {
        flow[0].sums += b->bytes;
        flow[0].messages += b->messages;
    }
    free(tile);
}

/* Count the blocks of one weight. On one column of ranks, the last weight's tile has the bias. */
static void count_weight(const struct sl_network *net, const struct sl_layer *layer, int weight,
                         const struct sl_distribution *d, struct blocks b,
                         struct sl_product_flow *flow)
{
    const int64_t in = width_of(layer->columns.in_cut, b.column),
                  out = width_of(layer->columns.product_cut, b.column);
    const int columns = d->grid.columns;
    const bool last = weight == sl_layer_weight_count(layer) - 1;
    b.bytes = 4 * (sl_product_sends_gradient(net, layer, weight) ? in * layer->columns.product
                                                                 : layer->in * out);
    b.bytes += columns == 1 && last ? 4 * out * sl_layer_further_rows(layer) : 0;
    b.messages = columns;
    b.hops = sl_reach_of_gradient(layer, weight * columns, columns);
    count_tree(d, &b, flow);
}

void sl_product_count_gradients(const struct sl_network *net, const struct sl_layer *layer,
                                const struct sl_distribution *d, struct sl_product_flow *flow)
{
    const bool whole = sl_layer_shape_whole(&layer->model->shape);
    const int64_t further = sl_layer_further_rows(layer),
                  rows = whole ? sl_layer_shape_rows(&layer->model->shape) : further;
    for (int c = 0; c < d->grid.columns; c++) {
        const int64_t bytes = rows * width_of(layer->columns.product_cut, c) * 4;
        const struct blocks all = {bytes, sl_product_blocks(net, layer), c,
                                   sl_reach_of_gradient(layer, 0, d->grid.columns)},
                            bias = {bytes, 1, c,
                                    sl_reach_of_gradient(
                                        layer, sl_layer_weight_count(layer) * d->grid.columns,
                                        d->grid.columns)};
        for (int w = 0; !whole && w < sl_layer_weight_count(layer); w++)
            count_weight(net, layer, w, d, all, flow);
        if (whole)
            count_tree(d, &all, flow);
        else if (further > 0 && d->grid.columns > 1)
            count_tree(d, &bias, flow);
    }
}

/* Count all tiles that sl_product_sum_gradients receives: it asks for all before any arrives. */
int64_t sl_product_gradient_bytes(const struct sl_network *net, const struct sl_layer *layer)
{
    const struct sl_distribution *d = net->graph->distribution;
    const int blocks = sl_product_blocks(net, layer), columns = d->grid.columns;
    const int stride = blocks * columns, rank = net->rt->rank;
    int64_t bytes = 0;
    for (int b = 0; b < stride; b++) {
        const struct sl_tile *block =
            sl_matrix_tile(&layer->back.gradients, b / columns, b % columns);
        const int64_t size = (int64_t)sl_memory_taken(
            (size_t)(block->rows * block->cols * (int64_t)block->element_size));
        for (struct sl_reduce_step s = {0}; sl_reduce_next(&s, d->tiles);)
            if (block[s.to * stride].owner == rank && block[s.from * stride].owner != rank)
                bytes += size;
        if (rank == 0 && block->owner != 0)
            bytes += size;
    }
    return bytes;
}

/* Return the bytes of sums, of terms for other ranks, and of stages in flight, on the last and
 * widest column of the grid. Products with two weights may overlap, so both count. Going back, sums
 * of up to SL_TEMPORARY_REST inputs of a jump may exist; forward, terms of one input. Where an
 * aggregation comes between two products, one stage of the next product is in flight. */
static int64_t product_bytes(const struct sl_network *net, const struct sl_layer *layer,
                             const struct sl_grid *grid)
{
    const struct sl_distribution *d = net->graph->distribution;
    const struct sl_tile_run run = sl_grid_group(d, net->rt->rank);
    const int weights = sl_layer_product_count(layer), columns = d->grid.columns,
              others = columns - 1;
    const int64_t in = sl_leading(width_of(layer->columns.in_cut, others), SL_FLOAT32) * 4,
                  out = sl_leading(width_of(layer->columns.product_cut, others), SL_FLOAT32) * 4,
                  less = in < out ? in : out;
    const bool first = layer->index == 0;
    const int between = weights * others + 1, most = net->rt->stages;
    const int stages = grid->rows * grid->depth > 1 && between < most ? between : most;
    int64_t bytes = stages * sl_distribution_taken(d, run, less);
    for (int w = 0; w < weights && w < SL_TEMPORARY_REST; w++) {
        const bool other = w >= layer->kind->weights.count; /* further input of a jump */
        int64_t terms = other || sl_product_sends_input(net, layer, w) ? 0 : out;
        terms = first || sl_product_sends_gradient(net, layer, w) || in < terms ? terms : in;
        bytes += sl_distribution_taken(d, run, first || out > in ? out : in) +
                 others * sl_distribution_taken(d, run, terms);
    }
    return others ? bytes : 0;
}

/* Return the sizes of rows that travel in an aggregation, on the last column of the grid, which is
 * the widest. */
static struct sl_passage passage_of(const struct sl_distribution *d,
                                    const struct sl_aggregation *aggregation)
{
    const struct sl_layer *layer = aggregation->layer;
    const struct sl_states_size states =
        sl_distribution_states(d, aggregation->reducer, aggregation->type, aggregation->transposed);
    const int columns = d->grid.columns, last = columns - 1;
    const int64_t *merged = sl_aggregation_merged(aggregation, d->kind->clones);
    const int64_t moved =
        (sl_cut_width(aggregation->cut, last) + sl_cut_width(aggregation->others, last)) *
        (int64_t)sizeof(float);
    return (struct sl_passage){
        .transposed = aggregation->transposed,
        .row = aggregation->state ? moved : layer->rows.exchanged / columns,
        .matrices = aggregation->state ? 1 : aggregation->reducer->moved,
        .operands = sl_cut_width(aggregation->operands, last) * (int64_t)sizeof(float),
        .state = sl_cut_width(merged, last) * states.element,
    };
}

/* Return how many aggregations of a step have rows that travel, weighted by width: the widest
 * counts 1. */
static double count_widest(const struct sl_distribution *d, const struct sl_aggregation *list,
                           int count)
{
    double sum = 0.0, widest = 1.0;
    for (int a = 0; a < count; a++) {
        const int64_t *merged = sl_aggregation_merged(&list[a], d->kind->clones);
        const double width = merged ? (double)merged[d->grid.columns] : 0.0;
        sum += d->kind->share(d, list[a].transposed) > 0.0 ? width : 0.0;
        widest = fmax(widest, width);
    }
    return sum / widest;
}

/* Return the peak bytes of received and packed rows in the aggregations of a training step. Steps
 * follow one another, so the last aggregation precedes the first. */
static int64_t aggregation_bytes(const struct sl_network *net, const struct sl_runtime *rt,
                                 const struct sl_distribution *d)
{
    struct sl_aggregation *list = calloc((size_t)(net->layers * SL_AGGREGATIONS), sizeof *list);
    if (!list)
        sl_fatal("no memory for the aggregations of %d layers", net->layers);
    const int count = sl_network_aggregations(net, list);
    int64_t most = 0;
    for (int p = 0; p < count; p++) {
        struct sl_passage now = passage_of(d, &list[p]);
        const struct sl_passage before = passage_of(d, &list[(p + count - 1) % count]);
        now.aggregations = count_widest(d, list, count);
        const int64_t bytes = d->kind->received_bytes(rt, d, &now, &before);
        most = bytes > most ? bytes : most;
    }
    free(list);
    return most;
}

int64_t sl_product_received_bytes(const struct sl_network *net, const struct sl_runtime *rt,
                                  const struct sl_distribution *d)
{
    int64_t products = 0;
    for (int l = 0; l < net->layers; l++) {
        int64_t product = 0;
        for (const struct sl_layer *of = &net->layer[l]; of; of = of->beside)
            product += product_bytes(net, of, &d->grid);
        products = product > products ? product : products;
    }
    const int64_t rows = aggregation_bytes(net, rt, d);
    return rows > products ? rows : products;
}
