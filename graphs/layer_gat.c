/* clang-format off */
/* Graph attention: output = drop(elu(heads side by side + b)), in the last layer the mean of the
 * heads + b. H is the input of the layer after dropout.
 *
 *   forward   [P | t | s] = H·[W | W·a_src | W·a_dst]     STATE = attention(P, t, s)     output
 *   backward  [G | r] from the gradient of the output     [D | dt] = the walk back       ds
 *             d[W | W·a_src | W·a_dst] = Hᵀ·[D | dt | ds]    db = column sums of the gradient
 *             the gradient of H = [D | dt | ds]·[W | W·a_src | W·a_dst]ᵀ
 *             dW, da_src, da_dst on rank 0
 *
 * graphs/reduce_attention.c has the formulas. */
/* clang-format on */
#include <stdlib.h>
#include <string.h>

#include "codelets/attention_rows.h"
#include "core/error.h"
#include "core/memory.h"
#include "graphs/layer.h"

struct gat {
    struct sl_attention how;
    struct sl_attention_shape shape;
    struct sl_matrix projected, scores, state; /* rows of codelets/attention.h */
    struct sl_tile weights;                    // (in, projected), on this rank: it never travels
    struct sl_tile gradient;                   /* like the parameters, on rank 0 */
};

static int64_t width_of(const struct sl_layer_shape *shape)
{
    return sl_layer_shape_columns(shape) / shape->heads;
}

static int64_t gat_product(const struct sl_layer_shape *shape)
{
    return sl_layer_shape_columns(shape) + 2 * shape->heads;
}

/* ---- Plan ---- */

static int create_weights(const struct sl_network *net, const struct sl_layer *layer,
                          struct sl_tile *weights)
{
    const int64_t count = layer->in * layer->product;
    float *memory = net->rt->plans ? NULL : sl_memory_alloc((size_t)count * sizeof *memory);
    *weights = (struct sl_tile){.memory = memory,
                                .rows = layer->in,
                                .cols = layer->product,
                                .ld = layer->product,
                                .element_size = sizeof *memory,
                                .tag = -1,
                                .owner = net->rt->rank,
                                .place = -1.0f};
    return memory || net->rt->plans
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for %lld weights", (long long)count);
}

static int create_matrices(struct sl_network *net, struct sl_layer *layer, struct gat *gat)
{
    const struct sl_distribution *d = &net->graph->distribution[layer->output.row_order];
    int code = sl_distribution_create_rows(net->rt, d, &gat->projected, SL_FLOAT32,
                                           sl_attention_projected(&gat->how));
    if (!code)
        code = sl_distribution_create_rows(net->rt, d, &gat->scores, SL_FLOAT32,
                                           sl_attention_scores(&gat->how));
    if (!code)
        code = sl_distribution_create_rows(net->rt, d, &gat->state, SL_FLOAT32,
                                           sl_attention_state(&gat->how));
    if (!code)
        code = sl_network_plan_scratch(net, d->row_order, SL_FLOAT32,
                                       sl_attention_gradient(&gat->how), SL_SLOT_WORK);
    if (!code)
        code = sl_network_plan_scratch(net, d->row_order, SL_FLOAT32,
                                       sl_attention_projected(&gat->how), SL_SLOT_SUM);
    return code;
}

static int check(const struct sl_network *net, const struct sl_layer *layer)
{
    const struct sl_layer_shape *shape = &layer->model->shape;
    if (shape->heads < 1 || shape->heads > SL_ATTENTION_HEADS ||
        sl_layer_shape_columns(shape) > SL_ATTENTION_COLUMNS)
        return sl_error(SL_ERR_SYSTEM,
                        "a layer of %d heads and %lld columns (expected 1 to %d, and %d at most)",
                        shape->heads, (long long)sl_layer_shape_columns(shape), SL_ATTENTION_HEADS,
                        SL_ATTENTION_COLUMNS);
    if (net->graph->type != SL_FLOAT32 || net->graph->row_orders > 1 ||
        net->graph->distribution->grid.columns > 1)
        return sl_error(SL_ERR_SYSTEM, "attention on bfloat16, two orders or columns of a grid");
    if (!layer->last && net->model->layer[layer->index + 1].shape.kind->scaled_input)
        return sl_error(SL_ERR_SYSTEM, "a layer that scales its input after attention");
    return 0;
}

static int gat_plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    const struct sl_layer_shape *shape = &layer->model->shape;
    struct gat *gat = calloc(1, sizeof *gat);
    (void)wanted;
    layer->own = gat;
    if (!gat)
        return sl_error(SL_ERR_SYSTEM, "no memory for a layer");
    int code = check(net, layer);
    if (code)
        return code;
    layer->order = SL_GEMM_FIRST;
    layer->gradient_factor = SL_ROW_NONE;
    gat->how = (struct sl_attention){
        .heads = shape->heads, .width = width_of(shape), .slope = shape->slope};
    gat->shape = (struct sl_attention_shape){layer->in, layer->out, layer->bias};
    code = create_weights(net, layer, &gat->weights);
    layer->weights = &gat->weights;
    if (!code)
        code = sl_tile_create(net->rt, &gat->gradient, layer->model->parameters.rows,
                              layer->model->parameters.cols, sizeof(float), 0);
    if (!code)
        code = create_matrices(net, layer, gat);
    if (!code)
        code = sl_layer_plan_aggregations(net, layer);
    return code ? code : sl_layer_plan_dropped(net, layer);
}

static void gat_destroy(struct sl_layer *layer)
{
    struct gat *gat = layer->own;
    sl_matrix_destroy(&gat->projected);
    sl_matrix_destroy(&gat->scores);
    sl_matrix_destroy(&gat->state);
    sl_tile_destroy(&gat->weights);
    sl_tile_destroy(&gat->gradient);
    free(gat);
}

static struct sl_layer_memory gat_memory(const struct sl_layer *layer)
{
    const struct gat *gat = layer->own;
    return (struct sl_layer_memory){.matrix = {&gat->projected, &gat->scores, &gat->state},
                                    .tile = {&gat->weights, &gat->gradient}};
}

static int gat_aggregations(const struct sl_network *net, const struct sl_layer *layer,
                            struct sl_aggregation list[SL_AGGREGATIONS])
{
    const struct gat *gat = layer->own;
    (void)net;
    list[0] = (struct sl_aggregation){
        .width = sl_attention_projected(&gat->how),
        .cut = layer->product_cut,
        .type = SL_FLOAT32,
        .reducer = layer->reducer,
        .state = sl_attention_state(&gat->how),
        .operands = sl_attention_scores(&gat->how),
    };
    list[1] = (struct sl_aggregation){
        .transposed = true,
        .width = sl_attention_gradient(&gat->how),
        .cut = NULL,
        .type = SL_FLOAT32,
        .reducer = layer->reducer->back,
        .others = sl_attention_scores(&gat->how),
        .state = sl_attention_projected(&gat->how),
        .operands = sl_attention_projected(&gat->how),
    };
    return 2;
}

/* ---- Forward ---- */

/* What this pass is: the layer's dropout of attention, where it trains. */
static struct sl_attention pass_of(const struct sl_network *net, const struct sl_layer *layer,
                                   bool training)
{
    struct sl_attention how = ((const struct gat *)layer->own)->how;
    how.training = training;
    how.drop = (struct sl_dropout){.scale = 1.0f};
    if (training && layer->model->shape.attention_dropout > 0.0)
        how.drop = sl_dropout_make(layer->model->shape.attention_dropout,
                                   sl_rng_key(net->model->options.seed, SL_RNG_ATTENTION,
                                              net->epoch, (uint32_t)layer->index));
    return how;
}

static void project(struct sl_network *net, struct sl_layer *layer, const struct sl_attention *how,
                    bool training)
{
    struct gat *gat = layer->own;
    const struct sl_product_input input = sl_layer_product_input(net, layer, training);
    const struct sl_tile_run own = sl_grid_group(net->graph->distribution, net->rt->rank);
    sl_submit_attention_weights(net->rt, how, &gat->shape, &layer->model->parameters,
                                &gat->weights);
    sl_product(net, layer, &input, NULL, NULL, &gat->projected);
    for (int i = own.from; i < own.to; i++)
        sl_submit_attention_scores(net->rt, how, &net->graph->facts[0][i],
                                   sl_matrix_tile(&gat->projected, i, 0),
                                   sl_matrix_tile(&gat->scores, i, 0));
}

static void gat_forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    struct gat *gat = layer->own;
    const struct sl_attention how = pass_of(net, layer, training);
    const struct sl_tile_run own = sl_grid_group(net->graph->distribution, net->rt->rank);
    if (sl_layer_dense_input(net, layer, training) == &layer->dropped)
        sl_layer_drop_input(net, layer, training);
    project(net, layer, &how, training);
    sl_network_walk(
        net, layer, false,
        &(struct sl_reduction){
            .moved = {&gat->projected}, .row = {&gat->scores}, .out = {&gat->state}, .how = &how});
    const struct sl_row_epilogue finish = {sl_layer_activation(net, layer, training),
                                           net->graph->facts[0], NULL};
    for (int i = own.from; i < own.to; i++) {
        const struct sl_epilogue_tiles tiles = sl_row_epilogue_at(&finish, i, &layer->output, 0);
        sl_submit_attention_output(net->rt, &how, &tiles, sl_matrix_tile(&gat->state, i, 0),
                                   sl_matrix_tile(&layer->output, i, 0));
    }
}

/* ---- Backward ---- */

/* [D | dt | ds] from g, the gradient of the output before bias and activation. */
static struct sl_matrix *walk_back(struct sl_network *net, struct sl_layer *layer,
                                   const struct sl_matrix *g)
{
    struct gat *gat = layer->own;
    const struct sl_attention how = pass_of(net, layer, true);
    const struct sl_tile_run own = sl_grid_group(net->graph->distribution, net->rt->rank);
    struct sl_matrix *gradient =
        sl_network_scratch(net, 0, SL_FLOAT32, sl_attention_gradient(&gat->how), SL_SLOT_WORK);
    struct sl_matrix *to =
        sl_network_scratch(net, 0, SL_FLOAT32, sl_attention_projected(&gat->how), SL_SLOT_SUM);
    for (int i = own.from; i < own.to; i++)
        sl_submit_attention_gradient(net->rt, &how, sl_matrix_tile(g, i, 0),
                                     sl_matrix_tile(&gat->state, i, 0),
                                     sl_matrix_tile(gradient, i, 0));
    sl_network_walk(
        net, layer, true,
        &(struct sl_reduction){
            .moved = {gradient, &gat->scores}, .row = {&gat->projected}, .out = {to}, .how = &how});
    for (int i = own.from; i < own.to; i++)
        sl_submit_attention_own(net->rt, &how, sl_matrix_tile(gradient, i, 0),
                                sl_matrix_tile(&gat->state, i, 0), sl_matrix_tile(to, i, 0));
    return to;
}

static struct sl_matrix *gat_backward(struct sl_network *net, struct sl_layer *layer,
                                      struct sl_matrix *g)
{
    sl_layer_drop_again(net, layer);
    const struct sl_product_input input = sl_layer_product_input(net, layer, true);
    const struct sl_matrix *v = walk_back(net, layer, g);
    struct sl_product_gradient back = {.h = &input, .v = v, .g = g};
    if (layer->index == 0) {
        sl_product_back(net, layer, &back);
        return NULL;
    }
    const struct sl_epilogue_tiles finish = sl_layer_activation_back(net, layer);
    back.epilogue = &finish;
    back.mask = sl_layer_mask(layer);
    back.y = &(layer - 1)->output;
    sl_product_back(net, layer, &back);
    return back.y;
}

static struct sl_tile *gat_differentiate(struct sl_network *net, struct sl_layer *layer,
                                         struct sl_tile *summed)
{
    struct gat *gat = layer->own;
    sl_submit_attention_weights_back(net->rt, &gat->how, &gat->shape, &layer->model->parameters,
                                     summed, &gat->gradient);
    return &gat->gradient;
}

const struct sl_layer_kind sl_layer_gat = {
    .name = "gat",
    .weights = 1,
    .weight = {"lin.weight"}, /* PyG's names */
    .vectors = 2,
    .vector = {"att_src", "att_dst"},
    .bias = "bias",
    .loops = true,
    .product = gat_product,
    .plan = gat_plan,
    .forward = gat_forward,
    .backward = gat_backward,
    .aggregations = gat_aggregations,
    .differentiate = gat_differentiate,
    .memory = gat_memory,
    .destroy = gat_destroy,
};
