#include "graphs/network.h"

#include <stdlib.h>
#include <string.h>

#include "codelets/spmm.h"
#include "core/error.h"
#include "core/temporary.h"
#include "graphs/collective.h"
#include "graphs/layer.h"
#include "graphs/network_places.h"
#include "graphs/product.h"
#include "graphs/reach.h"

/* ---- Work matrices ---- */

/* Return whether a matrix is cut at `cut`. NULL: an even cut of the width, which the distribution
 * makes. */
static bool is_cut(const struct sl_matrix *matrix, const int64_t *cut)
{
    return !cut || memcmp(matrix->col_cut, cut, (size_t)(matrix->tile_cols + 1) * sizeof *cut) == 0;
}

static struct sl_matrix *find_scratch(struct sl_network *net, int row_order, enum sl_type type,
                                      int64_t width, const int64_t *cut, enum sl_slot slot)
{
    for (int s = 0; s < net->memory.scratch_count; s++) {
        struct sl_matrix *matrix = &net->memory.scratch[s]->matrix;
        if (net->memory.scratch[s]->slot == slot && matrix->row_order == row_order &&
            matrix->cols == width && matrix->type == type && is_cut(matrix, cut))
            return matrix;
    }
    return NULL;
}

static struct sl_matrix *take_scratch(struct sl_network *net, struct sl_matrix *scratch,
                                      int64_t width, enum sl_slot slot, int hops)
{
    if (!scratch)
        sl_fatal("no work matrix of width %lld in slot %d was planned", (long long)width, slot);
    sl_network_take(net, scratch, hops);
    return scratch;
}

struct sl_matrix *sl_network_scratch(struct sl_network *net, int row_order, enum sl_type type,
                                     int64_t width, enum sl_slot slot, int hops)
{
    return take_scratch(net, find_scratch(net, row_order, type, width, NULL, slot), width, slot,
                        hops);
}

struct sl_matrix *sl_network_scratch_cut(struct sl_network *net, int row_order, const int64_t *cut,
                                         enum sl_slot slot, int hops)
{
    const int64_t width = cut[net->graph->distribution->grid.columns];
    return take_scratch(net, find_scratch(net, row_order, SL_FLOAT32, width, cut, slot), width,
                        slot, hops);
}

static struct sl_matrix *add_scratch(struct sl_network *net, enum sl_slot slot)
{
    struct sl_scratch *scratch = calloc(1, sizeof *scratch);
    if (!scratch) {
        sl_error(SL_ERR_SYSTEM, "no memory for a work matrix");
        return NULL;
    }
    scratch->slot = slot;
    net->memory.scratch[net->memory.scratch_count++] = scratch;
    return &scratch->matrix;
}

int sl_network_plan_scratch(struct sl_network *net, int row_order, enum sl_type type, int64_t width,
                            enum sl_slot slot)
{
    if (find_scratch(net, row_order, type, width, NULL, slot))
        return 0;
    struct sl_matrix *scratch = add_scratch(net, slot);
    if (!scratch)
        return SL_ERR_SYSTEM;
    const int code = sl_distribution_describe_rows(net->rt, &net->graph->distribution[row_order],
                                                   scratch, type, width);
    return code ? code : sl_network_share(net, SL_PLACE_SLOT, slot, scratch);
}

int sl_network_plan_scratch_cut(struct sl_network *net, int row_order, const int64_t *cut,
                                enum sl_slot slot)
{
    const int64_t width = cut[net->graph->distribution->grid.columns];
    if (find_scratch(net, row_order, SL_FLOAT32, width, cut, slot))
        return 0;
    struct sl_matrix *scratch = add_scratch(net, slot);
    if (!scratch)
        return SL_ERR_SYSTEM;
    const int code = sl_distribution_describe_cut(net->rt, &net->graph->distribution[row_order],
                                                  scratch, SL_FLOAT32, cut);
    return code ? code : sl_network_share(net, SL_PLACE_SLOT, slot, scratch);
}

static void take_place(struct sl_network *net, const struct sl_matrix *matrix)
{
    if (matrix->place)
        sl_place_take(net->rt, matrix->place, matrix);
}

struct sl_matrix *sl_network_sums(struct sl_network *net, struct sl_matrix *z)
{
    if (z->type == SL_FLOAT32)
        return z;
    struct sl_matrix *sums =
        find_scratch(net, z->row_order, SL_FLOAT32, z->cols, NULL, SL_SLOT_NARROW);
    if (sums)
        take_place(net, sums);
    if (sums)
        sl_reach_copy(net, z, sums);
    return sums;
}

/* Plan no matrix of sums on one rank: it works row tile by row tile, with temporary sums
 * (graphs/reduce_sum.c). */
int sl_network_plan_sums(struct sl_network *net, int row_order, int64_t width)
{
    const bool needed = net->graph->type != SL_FLOAT32 && net->rt->ranks > 1;
    net->memory.widest_sum = width > net->memory.widest_sum ? width : net->memory.widest_sum;
    return needed ? sl_network_plan_scratch(net, row_order, SL_FLOAT32, width, SL_SLOT_NARROW) : 0;
}

static bool has_blocks(const struct sl_sparse_matrix *a)
{
    bool blocks = false;
    for (int64_t t = 0; t < (int64_t)a->tile_rows * a->tile_cols; t++) {
        const struct sl_sparse_tile *tile = &a->tiles[t];
        const bool whole = tile->span == a->tile_cols && tile->span <= SL_SPMM_TILES &&
                           tile->shape.block_cols >= a->cols;
        blocks = blocks || (tile->shape.nnz && !whole);
    }
    return blocks;
}

/* Count one temporary sum for each worker. */
int64_t sl_network_temporary_bytes(const struct sl_network *net)
{
    const struct sl_graph *graph = net->graph;
    const struct sl_distribution *d = graph->distribution;
    const int workers = net->rt->ranks == 1 && net->rt->process ? net->rt->process->workers : 0;
    bool blocks = false;
    int64_t rows = 0;
    for (int o = 0; o < graph->row_orders; o++)
        blocks = blocks || has_blocks(&graph->adjacency[o]) ||
                 has_blocks(&graph->adjacency_transposed[o]);
    for (int i = 0; i < d->tiles; i++)
        rows = d->row_cut[i + 1] - d->row_cut[i] > rows ? d->row_cut[i + 1] - d->row_cut[i] : rows;
    return graph->type != SL_FLOAT32 && blocks
               ? (workers < d->tiles ? workers : d->tiles) * rows *
                     sl_leading(net->memory.widest_sum, SL_FLOAT32) * (int64_t)sizeof(float)
               : 0;
}

/* ---- Places ---- */

void sl_network_take(struct sl_network *net, const struct sl_matrix *matrix, int hops)
{
    take_place(net, matrix);
    sl_reach_set(net, matrix, hops);
}

int sl_network_passes(const struct sl_network *net, const struct sl_layer *layer)
{
    (void)net;
    return layer->rows.twice ? 2 : 1;
}

/* ---- Layers ---- */

static int64_t tags_at_a_time(const struct sl_network *net)
{
    return (int64_t)net->graph->distribution->tiles * net->rt->ranks;
}

/* Return the most takings of tags in SL_EPOCHS_IN_FLIGHT epochs. An epoch takes tags for each
 * weight forward, again, back and in the evaluation, and for the loss. */
static int64_t most_taken(const struct sl_network *net)
{
    int64_t weights = 0;
    for (int l = 0; l < net->layers; l++)
        weights += SL_WEIGHTS + net->model->layer[l].shape.inputs;
    return SL_EPOCHS_IN_FLIGHT * (4 * weights + 1);
}

int64_t sl_network_tags(struct sl_network *net)
{
    return net->step.tags + net->step.tags_taken++ % most_taken(net) * tags_at_a_time(net);
}

/* Return 0 if the layers before it allow the layer, else SL_ERR_SYSTEM. */
static int check_layer(const struct sl_network *net, const struct sl_layer *layer)
{
    const struct sl_layer_shape *shape = &layer->model->shape;
    if (shape->back < 0 || shape->back > layer->index ||
        (shape->back && (net->graph->row_orders > 1 || layer->activation != SL_ACTIVATION_NONE ||
                         layer->residual.earlier->activation != SL_ACTIVATION_NONE ||
                         layer->residual.earlier->out != layer->out)))
        return sl_error(SL_ERR_SYSTEM,
                        "layer %d adds the output of the layer %d before (expected one of its "
                        "width, both without activation, and one vertex order)",
                        layer->index + 1, shape->back);
    return 0;
}

/* Cut the layer's output as the next layer cuts its output. The next layer adds the two. */
static int cut_as_next(struct sl_layer *layer, const struct sl_grid *grid)
{
    const struct sl_layer_shape *next = &(layer->model + 1)->shape;
    struct sl_layer_columns *columns = &layer->columns;
    const int code = next->kind->cut(next, grid, columns->out_cut, columns->product_cut);
    for (int c = 0; c <= grid->columns; c++)
        columns->product_cut[c] = columns->out_cut[c];
    return code;
}

/* Cut the layer's columns: the input as the output of the layer before. A layer without products
 * keeps this cut, which attention makes between heads. A layer has the cut of the attention that
 * adds the layer's output. */
static int cut_layer(struct sl_layer *layer, const struct sl_distribution *d)
{
    const int columns = d->grid.columns;
    layer->columns.in_cut = layer->index ? sl_cut_copy(columns, (layer - 1)->columns.out_cut)
                                         : sl_grid_cut(&d->grid, layer->in);
    const bool keeps_cut = layer->index && sl_layer_shape_whole(&layer->model->shape);
    layer->columns.product_cut = keeps_cut ? sl_cut_copy(columns, (layer - 1)->columns.out_cut)
                                           : sl_grid_cut(&d->grid, layer->out);
    layer->columns.out_cut = keeps_cut ? sl_cut_copy(columns, (layer - 1)->columns.out_cut)
                                       : sl_grid_cut(&d->grid, layer->out);
    if (!layer->columns.in_cut || !layer->columns.out_cut || !layer->columns.product_cut)
        return SL_ERR_SYSTEM;
    const struct sl_layer_shape *next = layer->last ? NULL : &(layer->model + 1)->shape;
    int code = 0;
    if (layer->kind->cut)
        code = layer->kind->cut(&layer->model->shape, &d->grid, layer->columns.out_cut,
                                layer->columns.product_cut);
    else if (!keeps_cut && next && next->identity && next->kind->cut)
        code = cut_as_next(layer, &d->grid);
    layer->columns.product = layer->columns.product_cut[columns];
    return code;
}

static int create_layer(struct sl_network *net, int l, int wanted)
{
    struct sl_layer *layer = &net->layer[l];
    struct sl_model_layer *model = &net->model->layer[l];
    const struct sl_graph *graph = net->graph;
    const int order = l == 0 ? graph->input.row_order : (layer - 1)->output.row_order;
    const bool aggregates = !model->shape.kind->alone && (l > 0 || !graph->input.aggregated);
    const struct sl_distribution *d =
        &graph->distribution[aggregates ? sl_row_order_after(graph->row_orders, order) : order];
    *layer = (struct sl_layer){
        .kind = model->shape.kind,
        .reducer = model->shape.reducer,
        .index = l,
        .input_order = order,
        .in = model->shape.in,
        .out = model->shape.out,
        .bias = model->shape.bias,
        .edge_features = model->shape.edge_features,
        .edge_rows = sl_layer_shape_edge_rows(&model->shape),
        .last = l == net->layers - 1,
        .dropout = model->shape.dropout,
        .activation = model->shape.activation,
        .residual = {.identity = model->shape.identity,
                     .earlier = model->shape.back ? layer - model->shape.back : NULL,
                     .weight = model->shape.weight},
        .inputs = model->shape.inputs > 1 ? model->shape.inputs : 1,
        .model = model,
    };
    int code = cut_layer(layer, d);
    if (!code)
        code = check_layer(net, layer);
    if (!code)
        code = sl_distribution_describe_cut(net->rt, d, &layer->output,
                                            layer->last ? SL_FLOAT32 : graph->type,
                                            layer->columns.out_cut);
    if (!code && layer->last && d->grid.columns > 1 && !net->unmeasured)
        code = sl_distribution_create_whole(net->rt, d, &net->logits, SL_FLOAT32, layer->out);
    if (!code)
        code = layer->kind->plan(net, layer, wanted);
    for (struct sl_layer *of = layer; !code && of && !net->evaluates; of = of->beside)
        code = sl_product_create_gradients(net, of); /* gradients follow from the order */
    struct sl_tile summed =
        model->parameters; /* the groups sum a tile shaped as the parameters, or */
    summed.owner = 0;
    if (!layer->kind->differentiate && !layer->back.gradient.rows && layer->back.gradients.tiles)
        summed.ld = layer->back.gradients.tiles[0].ld; /* a tile of the gradients themselves */
    if (net->groups)
        code = sl_runtime_agree(net->model->rt, code);
    if (!code && net->groups && sl_model_learns(model) && !net->evaluates)
        code = sl_group_sums_create(net->groups, &layer->back.group_sums, &summed);
    return code;
}

/* Refresh copies after every few layers that aggregate in an epoch, but not after the last one. */
static void plan_refreshing(struct sl_network *net)
{
    int done = 0;
    struct sl_layer *last = NULL;
    for (int l = 0; net->copies && l < net->layers; l++) {
        struct sl_layer *layer = &net->layer[l];
        if (layer->kind->alone || layer->order == SL_AGGREGATED)
            continue;
        layer->rows.refreshed = ++done % net->copies->hops == 0;
        layer->rows.refreshing = done / net->copies->hops - 1;
        last = layer;
    }
    if (last)
        last->rows.refreshed = false;
}

static int create_metrics(struct sl_network *net)
{
    const struct sl_distribution *d = net->graph->distribution;
    net->metrics = calloc((size_t)d->tiles, sizeof *net->metrics);
    if (!net->metrics)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d small tiles", d->tiles);
    for (int t = 0; t < d->tiles; t++)
        if (sl_tile_create(net->rt, &net->metrics[t], 1, SL_METRICS, sizeof(double),
                           sl_distribution_whole_owner(d, t, 0)))
            return SL_ERR_SYSTEM;
    return 0;
}

int sl_network_aggregations(const struct sl_network *net, struct sl_aggregation *list)
{
    int count = 0;
    for (int back = 0; back < 2; back++)
        for (int l = 0; l < net->layers; l++) {
            const struct sl_layer *layer = &net->layer[back ? net->layers - 1 - l : l];
            struct sl_aggregation all[SL_AGGREGATIONS];
            const int aggregations = sl_layer_aggregations(net, layer, all);
            for (int a = 0; a < aggregations; a++)
                if ((all[a].transposed || all[a].again) == back) {
                    list[count] = all[a];
                    list[count++].layer = layer;
                }
        }
    return count;
}

/* Return whether the graph has the features as the first layer needs them. */
static bool fits_first_layer(const struct sl_network *net)
{
    const struct sl_layer_kind *first = net->model->layer[0].shape.kind;
    const struct sl_graph *graph = net->graph;
    const bool own = graph->own.dense.tiles || graph->own.csr.tiles || net->rt->plans;
    return (first->scaled_input || !graph->scaled) &&
           (first->weights.count == 1 || !graph->input.aggregated || own);
}

int sl_network_create(struct sl_network *net, int order, const int *orders)
{
    const int layers = net->model->layers;
    if (net->groups ? net->groups->own != net->rt || net->groups->all != net->model->rt
                    : net->rt != net->model->rt)
        return sl_error(SL_ERR_SYSTEM, "a network on other ranks than its model");
    if (!fits_first_layer(net))
        return sl_error(SL_ERR_SYSTEM, "a first layer of kind %s on features for another kind",
                        net->model->layer[0].shape.kind->name);
    net->layers = layers;
    net->step.aggregations = -1;
    net->memory.places = net->memory.places ? net->memory.places : &net->memory.own_places;
    net->layer = calloc((size_t)layers, sizeof *net->layer);
    net->memory.scratch = calloc((size_t)(SL_SCRATCH * layers), sizeof(struct sl_scratch *));
    if (!net->layer || !net->memory.scratch)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d layers", layers);
    net->step.tags = sl_temporary_tags(net->rt, most_taken(net) * tags_at_a_time(net));
    int code = create_metrics(net);
    if (!code && net->metrics[0].owner != 0)
        code = sl_tile_create(net->rt, &net->total, 1, SL_METRICS, sizeof(double), 0);
    if (net->groups)
        code = sl_runtime_agree(net->model->rt, code);
    if (!code && net->groups)
        code = sl_group_sums_create(net->groups, &net->group_metrics,
                                    net->total.rows ? &net->total : &net->metrics[0]);
    if (!code && !net->unmeasured)
        code = sl_evaluation_create(net);
    net->rt->shapes_alone =
        net->logits_only; /* without forward pass, only the size of matrices counts */
    for (int l = 0; !code && l < layers; l++)
        code = create_layer(net, l, orders ? orders[l] : order);
    net->rt->shapes_alone = false;
    if (code)
        return code;
    plan_refreshing(net);
    sl_reach_plan(net);
    return sl_network_allocate(net);
}

void sl_network_destroy(struct sl_network *net)
{
    if (net->memory.places != &net->memory.own_places)
        sl_network_leave_places(net);
    for (int l = 0; net->layer && l < net->layers; l++) {
        struct sl_layer *layer = &net->layer[l];
        if (net->groups)
            sl_group_sums_destroy(net->groups, &layer->back.group_sums);
        for (struct sl_layer *of = layer; of; of = of->beside) {
            sl_matrix_destroy(&of->back.gradients);
            sl_tile_destroy(&of->back.gradient);
        }
        sl_matrix_destroy(&layer->output);
        sl_matrix_destroy(&layer->aggregated);
        sl_matrix_destroy(&layer->argmax);
        sl_matrix_destroy(&layer->dropped);
        free(layer->columns.in_cut);
        free(layer->columns.out_cut);
        free(layer->columns.product_cut);
        if (layer->own)
            layer->kind->destroy(layer);
    }
    for (int s = 0; s < net->memory.scratch_count; s++) {
        sl_matrix_destroy(&net->memory.scratch[s]->matrix);
        free(net->memory.scratch[s]);
    }
    sl_places_free(&net->memory.own_places);
    free(net->memory.kept);
    net->memory.kept = NULL;
    net->memory.kept_count = net->memory.kept_room = 0;
    if (net->groups)
        sl_group_sums_destroy(net->groups, &net->group_metrics);
    for (int t = 0; net->metrics && t < net->graph->distribution->tiles; t++)
        sl_tile_destroy(&net->metrics[t]);
    free(net->metrics);
    sl_tile_destroy(&net->total);
    sl_evaluation_destroy(net);
    sl_matrix_destroy(&net->logits);
    free(net->memory.scratch);
    free(net->layer);
    net->layer = NULL;
    net->metrics = NULL;
    net->memory.scratch = NULL;
    net->memory.scratch_count = 0;
}

const struct sl_input *sl_network_input(const struct sl_network *net, const struct sl_layer *layer,
                                        int weight)
{
    const bool own = weight < sl_layer_kind_products(layer->kind) - 1;
    return own && net->graph->input.aggregated ? &net->graph->own : &net->graph->input;
}

struct sl_dropout sl_network_dropout(const struct sl_network *net, const struct sl_layer *layer)
{
    return sl_dropout_make(layer->dropout, sl_rng_key(net->model->options.seed, SL_RNG_DROPOUT,
                                                      net->step.update, (uint32_t)layer->index));
}

/* Return the scales where rows are clones: only scales know the vertex of a clone. Else return
 * NULL.
 */
static struct sl_tile *vertices_of(const struct sl_network *net, const struct sl_matrix *z)
{
    return net->graph->distribution->kind->clones ? net->graph->scales[z->row_order] : NULL;
}

void sl_network_walk(struct sl_network *net, const struct sl_layer *layer, enum sl_walk_way way,
                     struct sl_reduction *reduction)
{
    const int rows = reduction->out[0]->row_order;
    const bool back = way == SL_WALK_BACK;
    const struct sl_distribution *d = &net->graph->distribution[rows];
    const struct sl_walk_step step = {
        .way = way,
        .number = net->step.aggregations < 0 ? -1 : net->step.aggregations++,
        .before = net->step.late_steps,
        .exact = net->step.exact,
    };
    reduction->reducer = way == SL_WALK_FORWARD ? layer->reducer
                         : back                 ? layer->reducer->back
                                                : layer->reducer->again;
    reduction->vertices = reduction->reducer->numbered ? vertices_of(net, reduction->out[0]) : NULL;
    reduction->a = back ? &net->graph->adjacency_transposed[rows] : &net->graph->adjacency[rows];
    d->kind->walk(net->rt, d, &step, reduction);
}

void sl_network_aggregate(struct sl_network *net, const struct sl_layer *layer, bool transposed,
                          const struct sl_matrix *h, const struct sl_epilogue_tiles *epilogue,
                          const struct sl_matrix *mask, struct sl_matrix *z)
{
    const struct sl_matrix *sum = sl_network_sums(net, z);
    struct sl_row_epilogue rows = {.scales = net->graph->scales[z->row_order], .mask = mask};
    if (epilogue)
        rows.common = *epilogue;
    sl_network_walk(net, layer, transposed ? SL_WALK_BACK : SL_WALK_FORWARD,
                    &(struct sl_reduction){
                        .moved = {h},
                        .out = {z},
                        .state = {sum},
                        .epilogue = epilogue ? &rows : NULL,
                    });
}

void sl_network_finish(struct sl_network *net, const struct sl_epilogue_tiles *epilogue,
                       const struct sl_matrix *mask, const struct sl_matrix *sum,
                       const struct sl_matrix *z)
{
    const struct sl_row_epilogue rows = {*epilogue, net->graph->scales[z->row_order], mask};
    for (int i = 0; i < z->tile_rows; i++)
        for (int j = 0; j < z->tile_cols; j++) {
            const struct sl_epilogue_tiles tiles = sl_row_epilogue_at(&rows, i, z, j);
            sl_submit_epilogue(net->rt, &tiles, sl_matrix_tile(sum, i, j), sl_matrix_tile(z, i, j));
        }
}
