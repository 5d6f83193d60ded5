/* clang-format off */
/* Normalised rows (LayerNorm) or columns (BatchNorm): output = drop(activation(w·X + b)), X the
 * input without its mean, divided by its standard deviation. codelets/norm.h has the formulas.
 *
 *   forward    columns   sums over all vertices, each vertex once   mean, variance -> all ranks
 *              all       output
 *   backward   all       dw, db: sums over all rows, which copies of a vertex share
 *              columns   dw, db -> all ranks
 *              all       G of the layer before
 *
 * An evaluation normalises columns by running averages, which the optimizer's step moves. */
/* clang-format on */
#include <stdlib.h>

#include "codelets/accumulate.h"
#include "codelets/norm.h"
#include "core/error.h"
#include "graphs/collective.h"
#include "graphs/layer.h"

static const float EPSILON = 1e-5f;

enum { AVERAGES = 2 };

/* Of normalised columns. */
struct batch {
    const struct sl_groups *groups;  /* the network's */
    struct sl_tile *sums;            // T tiles (2, width) of double
    struct sl_group_sums group_sums; /* of these over the groups */
    struct sl_tile statistics;       // (2, width): mean and variance, on all ranks
    struct sl_tile *summed;          /* the gradient of the parameters in this step */
};

/* ---- Plan ---- */

static int create_batch(struct sl_network *net, struct sl_layer *layer)
{
    const struct sl_distribution *d = net->graph->distribution;
    struct batch *batch = calloc(1, sizeof *batch);
    layer->own = batch;
    if (batch)
        batch->groups = net->groups;
    if (batch)
        batch->sums = calloc((size_t)d->tiles, sizeof *batch->sums);
    if (!batch || !batch->sums)
        return sl_error(SL_ERR_SYSTEM, "no memory for a layer");
    int code = 0;
    for (int i = 0; !code && i < d->tiles; i++)
        code = sl_tile_create(net->rt, &batch->sums[i], 2, layer->out, sizeof(double),
                              sl_distribution_whole_owner(d, i, 0));
    const int owner = sl_distribution_whole_owner(d, 0, 0);
    if (!net->groups)
        return code ? code
                    : sl_tile_create(net->rt, &batch->statistics, 2, layer->out, sizeof(float),
                                     owner);
    code = sl_runtime_agree(net->model->rt, code);
    if (!code)
        code = sl_group_sums_create(net->groups, &batch->group_sums, 2, layer->out, sizeof(double),
                                    owner);
    return code ? code
                : sl_tile_create(net->model->rt, &batch->statistics, 2, layer->out, sizeof(float),
                                 batch->group_sums.of[0].owner);
}

static int plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    (void)wanted;
    layer->order = SL_GEMM_FIRST;
    layer->gradient_factor = SL_ROW_NONE;
    if (layer->index == 0 || layer->in != layer->out ||
        (layer - 1)->activation != SL_ACTIVATION_NONE || net->graph->distribution->grid.columns > 1)
        return sl_error(SL_ERR_SYSTEM,
                        "layer %d normalises its input (expected a layer of its width without "
                        "activation before it, and whole rows)",
                        layer->index + 1);
    return layer->kind->averages ? create_batch(net, layer) : 0;
}

static struct sl_layer_memory batch_memory(const struct sl_layer *layer)
{
    const struct batch *batch = layer->own;
    return (struct sl_layer_memory){
        .tile = {&batch->statistics}, .tiles = layer->output.tile_rows, .of_rows = batch->sums};
}

static void batch_destroy(struct sl_layer *layer)
{
    struct batch *batch = layer->own;
    if (batch->groups)
        sl_group_sums_destroy(batch->groups, &batch->group_sums);
    sl_tile_destroy(&batch->statistics);
    for (int i = 0; batch->sums && i < layer->output.tile_rows; i++)
        sl_tile_destroy(&batch->sums[i]);
    free(batch->sums);
    free(batch);
}

static void start(struct sl_runtime *rt, struct sl_model_layer *layer)
{
    struct sl_tile *tile = &layer->parameters;
    if (tile->owner != rt->rank)
        return;
    float *w = sl_tile_acquire(rt, tile, true);
    for (int64_t j = 0; j < tile->cols; j++) {
        w[j] = 1.0f;
        if (layer->shape.kind->averages)
            w[3 * tile->ld + j] = 1.0f;
    }
    sl_tile_release(tile);
}

/* ---- Forward ---- */

static struct sl_norm_tiles norm_of(const struct sl_network *net, struct sl_layer *layer, int i,
                                    bool training)
{
    struct batch *batch = layer->own;
    return (struct sl_norm_tiles){
        .facts = &net->graph->facts[0][i],
        .h = sl_matrix_tile(&(layer - 1)->output, i, 0),
        .parameters = &layer->model->parameters,
        .statistics = batch && training ? &batch->statistics : NULL,
        .running = batch && !training,
        .epsilon = EPSILON,
    };
}

static void take_statistics(struct sl_network *net, struct sl_layer *layer)
{
    struct batch *batch = layer->own;
    const struct sl_matrix *h = &(layer - 1)->output;
    const int tiles = net->graph->distribution->tiles;
    for (int i = 0; i < tiles; i++) {
        batch->sums[i].idle = sl_matrix_tile(h, i, 0)->idle;
        sl_submit_norm_sums(net->rt, &net->graph->facts[0][i], sl_matrix_tile(h, i, 0),
                            &batch->sums[i]);
    }
    sl_reduce(net->rt, batch->sums, tiles, 1, sl_submit_norm_sums_add);
    struct sl_tile *sums = &batch->sums[0];
    if (net->groups)
        sums = sl_groups_sum(net->groups, &batch->group_sums, sums, sl_submit_norm_sums_add);
    sl_submit_norm_statistics(net->model->rt, net->graph->vertices, sums, &batch->statistics);
    sl_network_broadcast(net, &batch->statistics);
}

static void forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    const struct sl_row_epilogue finish = {sl_layer_activation(net, layer, training),
                                           net->graph->facts[0], NULL};
    if (layer->own && training && !net->again)
        take_statistics(net, layer);
    for (int i = 0; i < layer->output.tile_rows; i++) {
        const struct sl_norm_tiles norm = norm_of(net, layer, i, training);
        const struct sl_epilogue_tiles tiles = sl_row_epilogue_at(&finish, i, &layer->output, 0);
        sl_submit_norm(net->rt, &norm, &tiles, sl_matrix_tile(&layer->output, i, 0));
    }
}

/* ---- Backward ---- */

static void sum_batch(struct sl_network *net, struct sl_layer *layer)
{
    struct batch *batch = layer->own;
    batch->summed = sl_product_sum_gradients(net, layer);
    if (net->groups)
        batch->summed =
            sl_groups_sum(net->groups, &layer->group_sums, batch->summed, sl_submit_accumulate);
    sl_submit_norm_averages(net->model->rt, net->graph->vertices, &batch->statistics,
                            batch->summed);
    sl_network_broadcast(net, batch->summed);
}

static struct sl_matrix *backward(struct sl_network *net, struct sl_layer *layer,
                                  struct sl_matrix *g)
{
    struct batch *batch = layer->own;
    struct sl_matrix *y = &(layer - 1)->output;
    for (int i = 0; i < g->tile_rows; i++) {
        const struct sl_norm_tiles norm = norm_of(net, layer, i, true);
        sl_submit_norm_gradient(net->rt, &norm, sl_matrix_tile(g, i, 0),
                                sl_matrix_tile(&layer->gradients, i, 0));
    }
    if (batch)
        sum_batch(net, layer);
    for (int i = 0; i < g->tile_rows; i++) {
        const struct sl_norm_tiles norm = norm_of(net, layer, i, true);
        sl_submit_norm_back(net->rt, &norm, sl_matrix_tile(g, i, 0), batch ? batch->summed : NULL,
                            net->graph->vertices, (layer - 1)->gradient_factor,
                            sl_matrix_tile(y, i, 0));
    }
    return y;
}

static struct sl_tile *batch_sum(struct sl_network *net, struct sl_layer *layer)
{
    (void)net;
    return ((struct batch *)layer->own)->summed;
}

const struct sl_layer_kind sl_layer_row_norm = {
    .name = "row-norm",
    .vectors = 2,
    .vector = {"weight", "bias"},
    .alone = true,
    .start = start,
    .plan = plan,
    .forward = forward,
    .backward = backward,
    .aggregations = sl_layer_no_aggregations,
};

const struct sl_layer_kind sl_layer_batch_norm = {
    .name = "batch-norm",
    .vectors = 2 + AVERAGES,
    .vector = {"weight", "bias", "running_mean", "running_var"}, /* PyTorch's names */
    .averages = AVERAGES,
    .alone = true,
    .start = start,
    .plan = plan,
    .forward = forward,
    .backward = backward,
    .sum = batch_sum,
    .aggregations = sl_layer_no_aggregations,
    .memory = batch_memory,
    .destroy = batch_destroy,
};
