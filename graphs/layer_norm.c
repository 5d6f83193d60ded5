/* clang-format off */
/* Normalised rows (LayerNorm) or columns (BatchNorm): output = drop(activation(w·X + b)), X the input without its mean, divided by its standard deviation. codelets/norm.h has the formulas. Rank (g, c) has column tile c of the rows of group g.
 *
 *   forward    columns   sums over all vertices, each vertex once   mean, variance -> all ranks
 *              rows      moments of the own columns -> the group, which merges them
 *              all       output
 *   backward   all       dw, db: sums over all rows, which copies of a vertex share
 *              columns   dw, db -> all ranks
 *              rows      sums of wG and wG·X over the own columns -> the group, which adds them
 *              all       G of the layer before
 *
 * Whole rows stay where they are. Ranks of a group merge in the order of columns, so all have the same bits. An output that is made again keeps its statistics. An evaluation normalises columns by running averages, which the optimizer's step moves. */
/* clang-format on */
#include "graphs/layer_norm.h"

#include <stdlib.h>

#include "codelets/accumulate.h"
#include "codelets/norm_parts.h"
#include "codelets/paste.h"
#include "core/error.h"
#include "graphs/collective.h"
#include "graphs/columns.h"
#include "graphs/forward.h"
#include "graphs/layer.h"

static const float EPSILON = 1e-5f;

enum { AVERAGES = 2 };

/* Data of a layer that normalises columns. */
struct batch {
    const struct sl_groups *groups; /* groups of the network */
    int tiles, columns;
    struct sl_tile *sums;             // (T, C) tiles (2, columns) of double
    struct sl_group_sums *group_sums; // (C): these sums over the groups
    struct sl_tile statistics;        // (2, width): mean and variance, on all ranks
    struct sl_tile *summed;           /* the gradient of the parameters in this step */
};

/* Data of a layer that normalises rows that are cut. Later such layers use the `products` and parts
 * of the first. */
struct cut_rows {
    int tiles;
    struct sl_tile *moments;  // (T) tiles (SL_NORM_MOMENTS, rows) of whole rows, on this rank
    struct sl_tile *products; // (T) tiles (SL_NORM_PRODUCTS, rows) of whole rows, on this rank; the
                              // first layer's
    struct sl_tile *part_moments, *part_products; // (T, C) tiles, each for one rank's columns
    int64_t received;                             /* bytes of other ranks' parts */
};

/* ---- Plan ---- */

/* Make sums over the groups, on the ranks where the first group has its own sums. */
static int create_group_sums(struct sl_network *net, struct sl_layer *layer, struct batch *batch)
{
    const int columns = net->graph->distribution->grid.columns;
    int code = 0;
    batch->columns = columns;
    batch->group_sums = calloc((size_t)columns, sizeof *batch->group_sums);
    if (!batch->group_sums)
        code = sl_error(SL_ERR_SYSTEM, "no memory for a layer");
    code = sl_runtime_agree(net->model->rt, code);
    for (int j = 0; !code && j < columns; j++)
        code = sl_group_sums_create(net->groups, &batch->group_sums[j], &batch->sums[j]);
    return code ? code
                : sl_tile_create(net->model->rt, &batch->statistics, 2, layer->out, sizeof(float),
                                 batch->group_sums[0].of[0].owner);
}

static int create_batch(struct sl_network *net, struct sl_layer *layer)
{
    const struct sl_distribution *d = net->graph->distribution;
    const int columns = d->grid.columns;
    struct batch *batch = calloc(1, sizeof *batch);
    layer->own = batch;
    if (batch)
        batch->groups = net->groups;
    if (batch)
        batch->sums = calloc((size_t)(d->tiles * columns), sizeof *batch->sums);
    if (!batch || !batch->sums)
        return sl_error(SL_ERR_SYSTEM, "no memory for a layer");
    batch->tiles = d->tiles * columns;
    int code = 0;
    for (int t = 0; !code && t < batch->tiles; t++)
        code = sl_tile_create(net->rt, &batch->sums[t], 2,
                              sl_cut_width(layer->columns.out_cut, t % columns), sizeof(double),
                              sl_distribution_dense_owner(d, t / columns, t % columns));
    if (!net->groups)
        return code ? code
                    : sl_tile_create(net->rt, &batch->statistics, 2, layer->out, sizeof(float),
                                     sl_distribution_dense_owner(d, 0, 0));
    code = sl_runtime_agree(net->model->rt, code);
    return code ? code : create_group_sums(net, layer, batch);
}

/* Make `columns` tiles for each row tile, one on each rank of its group; `columns` 0: one tile, on
 * this rank. */
static int create_row_tiles(struct sl_network *net, int64_t rows, int columns,
                            struct sl_tile *tiles)
{
    const struct sl_distribution *d = net->graph->distribution;
    const int own = sl_grid_column(&d->grid, net->rt->rank), each = columns ? columns : 1;
    int code = 0;
    for (int t = 0; !code && t < d->tiles * each; t++) {
        const int i = t / each;
        code = sl_tile_create(net->rt, &tiles[t], rows, d->row_cut[i + 1] - d->row_cut[i],
                              sizeof(float),
                              sl_distribution_dense_owner(d, i, columns ? t % each : own));
    }
    return code;
}

/* Return the data of the first layer that normalises rows. */
static struct cut_rows *first_rows(const struct sl_network *net)
{
    const struct sl_layer *layer = net->layer;
    while (layer->kind != &sl_layer_row_norm)
        layer++;
    return layer->own;
}

static int create_rows(struct sl_network *net, struct sl_layer *layer)
{
    const struct sl_distribution *d = net->graph->distribution;
    const int columns = d->grid.columns;
    struct cut_rows *rows = calloc(1, sizeof *rows);
    layer->own = rows;
    if (!rows)
        return sl_error(SL_ERR_SYSTEM, "no memory for a layer");
    const bool first = first_rows(net) == rows;
    const int count = d->tiles * (first ? 2 + 2 * columns : 1);
    rows->moments = calloc((size_t)count, sizeof *rows->moments);
    if (!rows->moments)
        return sl_error(SL_ERR_SYSTEM, "no memory for a layer");
    rows->tiles = count;
    int code = create_row_tiles(net, SL_NORM_MOMENTS, 0, rows->moments);
    if (!first)
        return code;
    rows->products = rows->moments + d->tiles;
    rows->part_moments = rows->products + d->tiles;
    rows->part_products = rows->part_moments + d->tiles * columns;
    rows->received =
        (columns - 1) *
        (sl_distribution_taken(d, sl_grid_group(d, net->rt->rank), SL_NORM_MOMENTS * 4) +
         sl_distribution_taken(d, sl_grid_group(d, net->rt->rank), SL_NORM_PRODUCTS * 4));
    if (!code)
        code = create_row_tiles(net, SL_NORM_PRODUCTS, 0, rows->products);
    if (!code)
        code = create_row_tiles(net, SL_NORM_MOMENTS, columns, rows->part_moments);
    return code ? code : create_row_tiles(net, SL_NORM_PRODUCTS, columns, rows->part_products);
}

static int plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    (void)wanted;
    layer->order = SL_GEMM_FIRST;
    layer->back.gradient_factor = SL_ROW_NONE;
    if (layer->index == 0 || layer->in != layer->out ||
        (layer - 1)->activation != SL_ACTIVATION_NONE)
        return sl_error(SL_ERR_SYSTEM,
                        "layer %d normalises its input (expected a layer of its width without "
                        "activation before it)",
                        layer->index + 1);
    if (layer->kind->vectors.averages)
        return create_batch(net, layer);
    return net->graph->distribution->grid.columns > 1 ? create_rows(net, layer) : 0;
}

static struct sl_layer_memory batch_memory(const struct sl_layer *layer)
{
    const struct batch *batch = layer->own;
    return (struct sl_layer_memory){
        .tile = {&batch->statistics}, .tiles = batch->tiles, .of_rows = batch->sums};
}

static struct sl_layer_memory rows_memory(const struct sl_layer *layer)
{
    const struct cut_rows *rows = layer->own;
    return rows ? (struct sl_layer_memory){.tiles = rows->tiles,
                                           .of_rows = rows->moments,
                                           .received = rows->received}
                : (struct sl_layer_memory){.tiles = 0};
}

static void batch_destroy(struct sl_layer *layer)
{
    struct batch *batch = layer->own;
    for (int j = 0; batch->group_sums && j < batch->columns; j++)
        sl_group_sums_destroy(batch->groups, &batch->group_sums[j]);
    free(batch->group_sums);
    sl_tile_destroy(&batch->statistics);
    for (int t = 0; t < batch->tiles; t++)
        sl_tile_destroy(&batch->sums[t]);
    free(batch->sums);
    free(batch);
}

static void rows_destroy(struct sl_layer *layer)
{
    struct cut_rows *rows = layer->own;
    for (int t = 0; t < rows->tiles; t++)
        sl_tile_destroy(&rows->moments[t]);
    free(rows->moments);
    free(rows);
}

static void start(struct sl_runtime *rt, const struct sl_layer_kind *kind, struct sl_tile *tile)
{
    if (tile->owner != rt->rank)
        return;
    float *w = sl_tile_acquire(rt, tile, true);
    for (int64_t j = 0; j < tile->cols; j++) {
        w[j] = 1.0f;
        if (kind->vectors.averages)
            w[3 * tile->ld + j] = 1.0f;
    }
    sl_tile_release(tile);
}

/* ---- Own tiles ---- */

/* The tiles of this rank: row tiles from … to - 1 of column `column`. */
struct own {
    const struct sl_distribution *d;
    struct sl_tile_run rows;
    int column;
};

static struct own own_of(const struct sl_network *net)
{
    const struct sl_distribution *d = net->graph->distribution;
    return (struct own){d, sl_grid_group(d, net->rt->rank),
                        sl_grid_column(&d->grid, net->rt->rank)};
}

static struct sl_norm_tiles norm_of(const struct sl_network *net, struct sl_layer *layer, int i,
                                    bool training)
{
    const int c = sl_grid_column(&net->graph->distribution->grid, net->rt->rank);
    struct batch *batch = layer->kind->vectors.averages ? layer->own : NULL;
    struct cut_rows *rows = layer->kind->vectors.averages ? NULL : layer->own;
    return (struct sl_norm_tiles){
        .scales = &net->graph->scales[0][i],
        .h = sl_matrix_tile(&(layer - 1)->output, i, c),
        .parameters = &layer->model->parameters,
        .statistics = batch && training ? &batch->statistics : NULL,
        .moments = rows ? &rows->moments[i] : NULL,
        .column = layer->columns.out_cut[c],
        .running = batch && !training,
        .epsilon = EPSILON,
    };
}

/* ---- Forward ---- */

static void take_statistics(struct sl_network *net, struct sl_layer *layer)
{
    struct batch *batch = layer->own;
    const struct own own = own_of(net);
    const int columns = own.d->grid.columns;
    struct sl_runtime *all = net->model->rt;
    for (int t = 0; t < batch->tiles; t++)
        batch->sums[t].idle = (layer - 1)->output.tiles[t].idle;
    for (int i = own.rows.from; i < own.rows.to; i++)
        sl_submit_norm_sums(net->rt, &net->graph->scales[0][i],
                            sl_matrix_tile(&(layer - 1)->output, i, own.column),
                            &batch->sums[i * columns + own.column]);
    for (int j = 0; j < columns; j++) {
        struct sl_tile *sums = &batch->sums[j];
        sl_reduce(net->rt, sums, own.d->tiles, columns, sl_submit_norm_sums_add);
        if (net->groups)
            sums = sl_groups_sum(net->groups, &batch->group_sums[j], sums, sl_submit_norm_sums_add);
        sl_tile_send(all, sums, sums->owner, batch->statistics.owner);
        sl_submit_norm_statistics(all, net->graph->vertices, sums, layer->columns.out_cut[j],
                                  &batch->statistics);
        sl_tile_drop(all, sums);
    }
    sl_network_broadcast(net, &batch->statistics);
}

/* Send the parts of row tile i to the group, and merge them in the order of columns, which are cut
 * at `cut`. */
static void combine(struct sl_network *net, const int64_t *cut, int i, struct sl_tile *parts,
                    struct sl_tile *whole)
{
    const struct sl_distribution *d = net->graph->distribution;
    const int columns = d->grid.columns;
    struct sl_tile *const part = parts + i * columns;
    for (int j = 0; j < columns; j++)
        sl_columns_share(net->rt, d, &part[j]);
    sl_submit_paste(net->rt, &(struct sl_paste_tiles){.x = &part[0], .y = whole});
    for (int j = 1; j < columns; j++)
        if (whole->rows == SL_NORM_MOMENTS)
            sl_submit_norm_merge(net->rt, cut[j], sl_cut_width(cut, j), &part[j], whole);
        else
            sl_submit_accumulate(net->rt, &part[j], whole);
    for (int j = 0; j < columns; j++)
        sl_tile_drop(net->rt, &part[j]);
}

static void take_moments(struct sl_network *net, struct sl_layer *layer)
{
    struct cut_rows *rows = layer->own, *first = first_rows(net);
    const struct own own = own_of(net);
    for (int i = own.rows.from; i < own.rows.to; i++)
        sl_submit_norm_moments(net->rt, sl_matrix_tile(&(layer - 1)->output, i, own.column),
                               &first->part_moments[i * own.d->grid.columns + own.column]);
    for (int i = own.rows.from; i < own.rows.to; i++)
        combine(net, layer->columns.out_cut, i, first->part_moments, &rows->moments[i]);
}

static void forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    const struct sl_row_epilogue finish = {sl_layer_activation(net, layer, training),
                                           net->graph->scales[0], NULL};
    const struct own own = own_of(net);
    if (layer->own && layer->kind->vectors.averages && training && !net->step.again)
        take_statistics(net, layer);
    if (layer->own && !layer->kind->vectors.averages && !net->step.again)
        take_moments(net, layer);
    for (int i = own.rows.from; i < own.rows.to; i++) {
        const struct sl_norm_tiles norm = norm_of(net, layer, i, training);
        const struct sl_epilogue_tiles tiles =
            sl_row_epilogue_at(&finish, i, &layer->output, own.column);
        sl_submit_norm(net->rt, &norm, &tiles, sl_matrix_tile(&layer->output, i, own.column));
    }
}

/* ---- Backward ---- */

/* Return the summed gradient of the parameters, broadcast to all ranks, which need it. */
static struct sl_tile *sum_batch(struct sl_network *net, struct sl_layer *layer)
{
    struct batch *batch = layer->own;
    batch->summed = sl_product_sum_gradients(net, layer);
    if (net->groups)
        batch->summed = sl_groups_sum(net->groups, &layer->back.group_sums, batch->summed,
                                      sl_submit_accumulate);
    sl_submit_norm_averages(net->model->rt, net->graph->vertices, &batch->statistics,
                            batch->summed);
    sl_network_broadcast(net, batch->summed);
    return batch->summed;
}

/* Return the products of whole rows (T). */
static struct sl_tile *sum_products(struct sl_network *net, struct sl_layer *layer,
                                    const struct sl_matrix *g)
{
    struct cut_rows *first = first_rows(net);
    const struct own own = own_of(net);
    for (int i = own.rows.from; i < own.rows.to; i++) {
        const struct sl_norm_tiles norm = norm_of(net, layer, i, true);
        sl_submit_norm_products(net->rt, &norm, sl_matrix_tile(g, i, own.column),
                                &first->part_products[i * own.d->grid.columns + own.column]);
    }
    for (int i = own.rows.from; i < own.rows.to; i++)
        combine(net, layer->columns.out_cut, i, first->part_products, &first->products[i]);
    return first->products;
}

/* Count the parts of the group's other ranks, forward and back. */
int64_t sl_layer_count_norm(const struct sl_distribution *d, int rank, int64_t *messages)
{
    const struct sl_tile_run run = sl_grid_group(d, rank);
    const int64_t others = d->grid.columns - 1, rows = d->row_cut[run.to] - d->row_cut[run.from];
    *messages += 2 * others * (run.to - run.from);
    return others * rows * (SL_NORM_MOMENTS + SL_NORM_PRODUCTS) * (int64_t)sizeof(float);
}

static struct sl_matrix *backward(struct sl_network *net, struct sl_layer *layer,
                                  struct sl_matrix *g)
{
    struct sl_matrix *y = &(layer - 1)->output;
    struct sl_tile *summed = NULL, *products = NULL;
    const struct own own = own_of(net);
    if (layer->own && !layer->kind->vectors.averages)
        products = sum_products(net, layer, g);
    const bool along = !layer->own; /* the gradient is made along with that of H */
    for (int i = own.rows.from; !along && i < own.rows.to; i++) {
        const struct sl_norm_tiles norm = norm_of(net, layer, i, true);
        sl_submit_norm_gradient(net->rt, &norm, sl_matrix_tile(g, i, own.column),
                                sl_matrix_tile(&layer->back.gradients, i, own.column));
    }
    if (layer->kind->vectors.averages)
        summed = sum_batch(net, layer);
    for (int i = own.rows.from; i < own.rows.to; i++) {
        struct sl_norm_tiles norm = norm_of(net, layer, i, true);
        norm.gradient = along ? sl_matrix_tile(&layer->back.gradients, i, own.column) : NULL;
        sl_submit_norm_back(net->rt, &norm, sl_matrix_tile(g, i, own.column),
                            products ? &products[i] : summed, net->graph->vertices,
                            (layer - 1)->back.gradient_factor, sl_matrix_tile(y, i, own.column));
    }
    return y;
}

/* ---- Blocks of columns ---- */

int sl_norm_blocks_create(struct sl_network *net, struct sl_norm_blocks *b)
{
    const struct sl_distribution *d = net->graph->distribution;
    const int columns = d->grid.columns;
    *b = (struct sl_norm_blocks){
        .tiles = d->tiles * (2 + columns),
        .moments = calloc((size_t)(d->tiles * (2 + columns)), sizeof *b->moments),
    };
    if (!b->moments)
        return sl_error(SL_ERR_SYSTEM, "no memory for the moments of %d tiles", d->tiles);
    b->block = b->moments + d->tiles;
    b->parts = b->block + d->tiles;
    int code = create_row_tiles(net, SL_NORM_MOMENTS, 0, b->moments);
    if (!code)
        code = create_row_tiles(net, SL_NORM_MOMENTS, 0, b->block);
    return code ? code : create_row_tiles(net, SL_NORM_MOMENTS, columns, b->parts);
}

void sl_norm_blocks_destroy(struct sl_norm_blocks *b)
{
    for (int t = 0; b->moments && t < b->tiles; t++)
        sl_tile_destroy(&b->moments[t]);
    free(b->moments);
    *b = (struct sl_norm_blocks){0};
}

int64_t sl_norm_blocks_bytes(const struct sl_network *net, const struct sl_norm_blocks *b)
{
    const struct own own = own_of(net);
    int64_t bytes = 0;
    for (int i = own.rows.from; b->moments && i < own.rows.to; i++)
        bytes += (2 + own.d->grid.columns) * sl_tile_bytes(&b->moments[i]);
    return bytes;
}

void sl_norm_blocks_add(struct sl_network *net, struct sl_norm_blocks *b, const struct sl_matrix *h)
{
    const struct own own = own_of(net);
    for (int i = own.rows.from; i < own.rows.to; i++)
        sl_submit_norm_moments(net->rt, sl_matrix_tile(h, i, own.column),
                               &b->parts[i * own.d->grid.columns + own.column]);
    for (int i = own.rows.from; i < own.rows.to; i++) {
        combine(net, h->col_cut, i, b->parts, b->cols ? &b->block[i] : &b->moments[i]);
        if (b->cols)
            sl_submit_norm_merge(net->rt, b->cols, h->cols, &b->block[i], &b->moments[i]);
    }
    b->cols += h->cols;
}

void sl_norm_block(struct sl_network *net, const struct sl_norm_blocks *b,
                   struct sl_tile *parameters, const struct sl_epilogue_tiles *epilogue,
                   const struct sl_matrix *h, const struct sl_matrix *z)
{
    const struct sl_row_epilogue finish = {*epilogue, net->graph->scales[0], NULL};
    const struct own own = own_of(net);
    for (int i = own.rows.from; i < own.rows.to; i++) {
        const struct sl_norm_tiles norm = {
            .scales = &net->graph->scales[0][i],
            .h = sl_matrix_tile(h, i, own.column),
            .parameters = parameters,
            .moments = b ? &b->moments[i] : NULL,
            .column = h->col_cut[own.column],
            .running = !b,
            .epsilon = EPSILON,
        };
        const struct sl_epilogue_tiles tiles = sl_row_epilogue_at(&finish, i, z, own.column);
        sl_submit_norm(net->rt, &norm, &tiles, sl_matrix_tile(z, i, own.column));
    }
}

static struct sl_tile *batch_sum(struct sl_network *net, struct sl_layer *layer)
{
    (void)net;
    return ((struct batch *)layer->own)->summed;
}

/* Steps of kinds without running averages are of rows. */
static int describe(const struct sl_forward *forward)
{
    const struct sl_layer_kind *kind = forward->shape->kind;
    const struct sl_step step = {.kind =
                                     kind->vectors.averages ? SL_STEP_BATCH_NORM : SL_STEP_ROW_NORM,
                                 .epsilon = (double)EPSILON};
    return sl_forward_finish(
        forward, sl_forward_step(forward, sl_forward_input(forward), step, kind->vectors.name));
}

const struct sl_layer_kind sl_layer_row_norm = {
    .name = "row-norm",
    .vectors = {.count = 2, .name = {"weight", "bias"}},
    .alone = true,
    .start = start,
    .plan = plan,
    .forward = forward,
    .backward = backward,
    .aggregations = sl_layer_no_aggregations,
    .memory = rows_memory,
    .destroy = rows_destroy,
    .describe = describe,
};

const struct sl_layer_kind sl_layer_batch_norm = {
    .name = "batch-norm",
    .vectors = {.count = 2 + AVERAGES,
                .name = {"weight", "bias", "running_mean", "running_var"}, /* names in PyTorch */
                .averages = AVERAGES},
    .alone = true,
    .start = start,
    .plan = plan,
    .forward = forward,
    .backward = backward,
    .sum = batch_sum,
    .aggregations = sl_layer_no_aggregations,
    .memory = batch_memory,
    .destroy = batch_destroy,
    .describe = describe,
};
