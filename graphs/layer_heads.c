#include "graphs/layer_heads.h"

#include <stdlib.h>

#include "codelets/paste.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/rates.h"
#include "graphs/layer.h"
#include "graphs/reach.h"

/* ---- Plan ---- */

/* Return 0 if attention can work on the network's matrices, and the layers around it allow the
 * layer; else SL_ERR_SYSTEM. */
static int check(const struct sl_network *net, const struct sl_layer *layer)
{
    if (net->graph->type != SL_FLOAT32 || net->graph->row_orders > 1)
        return sl_error(SL_ERR_SYSTEM, "attention on bfloat16 or two orders");
    if (!layer->last && net->model->layer[layer->index + 1].shape.kind->scaled_input)
        return sl_error(SL_ERR_SYSTEM, "a layer that scales its input after attention");
    if (layer->kind->weights.splits && layer->model->shape.mean && layer->model->shape.heads > 1)
        return sl_error(SL_ERR_SYSTEM, "a residual of the mean of several heads");
    return 0;
}

/* Describe WEIGHTS. */
static int create_weights(const struct sl_network *net, const struct sl_layer *layer,
                          struct sl_tile *weights)
{
    const int64_t count = layer->in * layer->columns.product;
    float *memory = net->rt->plans ? NULL : sl_memory_alloc((size_t)count * sizeof *memory);
    *weights = (struct sl_tile){.memory = memory,
                                .rows = layer->in,
                                .cols = layer->columns.product,
                                .ld = layer->columns.product,
                                .element_size = sizeof *memory,
                                .tag = -1,
                                .owner = net->rt->rank,
                                .place = -1.0f};
    return memory || net->rt->plans
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for %lld weights", (long long)count);
}

int sl_heads_create(struct sl_network *net, struct sl_layer *layer, struct sl_matrix *const *kept,
                    const int64_t *const *cut)
{
    struct sl_heads *heads = layer->own;
    const struct sl_tile *parameters = &layer->model->parameters;
    int code = check(net, layer);
    layer->order = SL_GEMM_FIRST;
    layer->back.gradient_factor = SL_ROW_NONE;
    layer->columns.weights = &heads->weights;
    if (!code)
        code = create_weights(net, layer, &heads->weights);
    if (!code)
        code = sl_tile_create(net->rt, &heads->gradient, parameters->rows, parameters->cols,
                              sizeof(float), 0);
    for (int k = 0; !code && k < 3; k++) {
        heads->kept[k] = kept[k];
        code = sl_distribution_describe_cut(net->rt,
                                            &net->graph->distribution[layer->output.row_order],
                                            kept[k], SL_FLOAT32, cut[k]);
        if (!code)
            code = sl_network_keep(net, layer, layer->index, kept[k]);
    }
    return code;
}

void sl_heads_destroy(struct sl_layer *layer)
{
    struct sl_heads *heads = layer->own;
    for (int k = 0; k < 3 && heads->kept[k]; k++)
        sl_matrix_destroy(heads->kept[k]);
    sl_tile_destroy(&heads->weights);
    sl_tile_destroy(&heads->vectors);
    sl_tile_destroy(&heads->gradient);
    sl_edge_sums_destroy(&heads->sums);
    free(heads);
}

struct sl_layer_memory sl_heads_memory(const struct sl_layer *layer)
{
    const struct sl_heads *heads = layer->own;
    return (struct sl_layer_memory){.matrix = {heads->kept[0], heads->kept[1], heads->kept[2]},
                                    .tile = {&heads->weights, &heads->vectors, &heads->gradient},
                                    .tiles = heads->sums.count,
                                    .of_rows = heads->sums.tile};
}

/* Make the layer of V. */
static void create_residual(struct sl_layer *layer)
{
    struct sl_layer *residual = &((struct sl_heads *)layer->own)->residual;
    *residual = (struct sl_layer){
        .kind = &sl_layer_linear,
        .reducer = layer->reducer,
        .index = layer->index,
        .input_order = layer->input_order,
        .in = layer->in,
        .out = layer->out,
        .last = layer->last,
        .dropout = layer->dropout,
        .inputs = 1,
        .columns = {.in_cut = layer->columns.in_cut,
                    .out_cut = layer->columns.out_cut,
                    .product = layer->out,
                    .product_cut = layer->columns.out_cut},
        .model = layer->model,
        .order = SL_GEMM_FIRST,
        .output = {.type = layer->output.type},
    };
    layer->beside = residual;
}

int sl_heads_plan(struct sl_network *net, struct sl_layer *layer)
{
    int code = 0;
    if (layer->kind->weights.splits)
        create_residual(layer);
    if (layer->index > 0 && (layer->kind->weights.splits || sl_layer_leaves_sums(net, layer)))
        code = sl_network_plan_scratch_cut(net, 0, layer->columns.in_cut, SL_SLOT_GRADIENT);
    if (!code)
        code = sl_layer_plan_aggregations(net, layer);
    return code ? code : sl_layer_plan_dropped(net, layer);
}

/* ---- Steps ---- */

void sl_heads_add_residual(struct sl_network *net, struct sl_layer *layer, bool training,
                           const struct sl_epilogue_tiles *epilogue)
{
    const struct sl_product_input own = sl_layer_product_input(net, layer, training);
    if (layer->beside)
        sl_product(net, layer->beside, &own, &layer->output, epilogue, &layer->output);
}

struct sl_matrix *sl_heads_products_back(struct sl_network *net, struct sl_layer *layer,
                                         const struct sl_matrix *v, struct sl_matrix *g, bool after)
{
    const struct sl_product_input input = sl_layer_product_input(net, layer, true);
    const bool first = layer->index == 0, sums = !first && sl_layer_leaves_sums(net, layer);
    struct sl_matrix *d = NULL;
    if (sums || (layer->beside && !first))
        d = sl_network_scratch_cut(net, 0, layer->columns.in_cut, SL_SLOT_GRADIENT,
                                   sl_reach_of_input(layer));
    if (layer->beside)
        sl_product_back(net, layer->beside,
                        &(struct sl_product_gradient){.h = &input, .v = g, .y = d});
    struct sl_product_gradient back = {.h = &input, .v = v, .g = g, .after_bias = after};
    const struct sl_epilogue_tiles finish =
        first ? SL_EPILOGUE_NONE : sl_layer_activation_back(net, layer);
    if (!first) {
        back.added = layer->beside ? d : NULL;
        back.epilogue = sums ? NULL : &finish;
        back.mask = sums ? NULL : sl_layer_mask(layer);
        back.y = sums ? d : &(layer - 1)->output;
    }
    sl_product_back(net, layer, &back);
    sl_layer_add_gradient(net, layer, g, back.y);
    return back.y;
}

struct sl_tile *sl_heads_residual_back(struct sl_network *net, struct sl_layer *layer)
{
    struct sl_tile *gradient = &((struct sl_heads *)layer->own)->gradient;
    if (layer->beside)
        sl_submit_paste(net->rt,
                        &(struct sl_paste_tiles){.x = sl_product_sum_gradients(net, layer->beside),
                                                 .y = gradient});
    return gradient;
}

/* ---- The forward program ---- */

int sl_heads_describe(const struct sl_forward *forward, int heads)
{
    const struct sl_layer_shape *shape = forward->shape;
    int value = heads;
    if (shape->mean && shape->heads > 1)
        value = sl_forward_step(forward, heads,
                                (struct sl_step){.kind = SL_STEP_MEAN_HEADS, .heads = shape->heads},
                                NULL);
    if (shape->kind->weights.splits)
        value = sl_forward_add(forward, 1.0, value, 1.0,
                               sl_forward_product(forward, sl_forward_input(forward), 0, 0));
    return sl_forward_finish(forward, value);
}

/* ---- Prediction ---- */

/* Walks of attention prefetch no rows: a core waits for the row that an entry meets. A score takes
 * exponentials, and sums over columns. Columns of a grid share heads, but each of them has all
 * heads of a mean, and part of their columns. */
double sl_heads_seconds(const struct sl_layer_shape *shape, const struct sl_walk_size *walk,
                        struct sl_heads_work work)
{
    static const double WAIT = 30e-9, SCORE = 160.0;
    const double heads = walk->entries * (double)shape->heads / (shape->mean ? 1 : walk->columns),
                 columns = walk->entries * (double)sl_layer_shape_columns(shape) / walk->columns,
                 numbers = heads * (double)shape->edge_features;
    return walk->entries * WAIT / walk->rates->cores +
           (heads * SCORE + columns * work.column + numbers * work.number) / walk->rates->features +
           (shape->attention_dropout > 0.0 ? heads / walk->rates->draws : 0.0);
}
