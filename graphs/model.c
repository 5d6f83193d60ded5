#include "graphs/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/init.h"
#include "codelets/record.h"
#include "core/error.h"
#include "graphs/collective.h"
#include "graphs/network.h"

int sl_layer_shape_reach(const struct sl_layer_shape *shape)
{
    return shape->inputs > 1 ? (shape->inputs - 1) * sl_layer_shape_stride(shape) + 1 : 1;
}

int sl_layer_shape_weights(const struct sl_layer_shape *shape)
{
    return shape->kind->weights.count * sl_layer_shape_stacked(shape);
}

/* Return how many matrices (in, out) are weights of relations. */
static int64_t edge_matrices(const struct sl_layer_shape *shape)
{
    return shape->bases ? shape->bases : shape->relations;
}

/* Return how many rows have the coefficients of bases. */
static int64_t coefficients_of(const struct sl_layer_shape *shape)
{
    return shape->bases ? shape->relations : 0;
}

int sl_layer_shape_unit_weights(const struct sl_layer_shape *shape)
{
    return sl_layer_shape_weights(shape) + (int)edge_matrices(shape);
}

int64_t sl_layer_shape_edge_rows(const struct sl_layer_shape *shape)
{
    return edge_matrices(shape) * shape->in + coefficients_of(shape) + shape->edge_features;
}

bool sl_layer_shape_whole(const struct sl_layer_shape *shape)
{
    return shape->kind->weights.count == 0 || shape->kind->own;
}

/* Return how many of the vectors are biases of weights. */
static int biases_of(const struct sl_layer_kind *kind)
{
    return kind->vectors.biases ? kind->weights.count - kind->weights.splits : 0;
}

int sl_layer_shape_vectors(const struct sl_layer_shape *shape)
{
    return shape->kind->vectors.count - (shape->bias ? 0 : biases_of(shape->kind)) -
           (shape->edge_features > 0 ? 0 : shape->kind->vectors.of_edges);
}

int64_t sl_model_bias_row(const struct sl_model_layer *layer)
{
    return sl_layer_shape_weights(&layer->shape) * layer->shape.in +
           sl_layer_shape_edge_rows(&layer->shape) + sl_layer_shape_vectors(&layer->shape);
}

int sl_model_parameters(const struct sl_model_layer *layer, struct sl_parameter list[SL_PARAMETERS])
{
    const struct sl_layer_shape *shape = &layer->shape;
    const struct sl_layer_kind *kind = shape->kind;
    const int64_t cols = sl_layer_shape_columns(shape);
    const int64_t in = shape->in * sl_layer_shape_stacked(shape);
    int count = 0;
    for (int w = 0; w < kind->weights.count; w++)
        list[count++] = (struct sl_parameter){kind->weights.name[w], w * in, in, cols, true};
    const int64_t edge_rows = sl_layer_shape_edge_rows(shape),
                  coefficients = coefficients_of(shape);
    if (edge_rows > 0)
        list[count++] = (struct sl_parameter){kind->edge, kind->weights.count * in,
                                              edge_rows - coefficients, cols, false};
    if (coefficients)
        list[count++] =
            (struct sl_parameter){"comp", kind->weights.count * in + edge_rows - coefficients,
                                  coefficients, shape->bases, false};
    for (int v = 0; v < sl_layer_shape_vectors(shape); v++)
        list[count++] = (struct sl_parameter){
            kind->vectors.name[v], kind->weights.count * in + edge_rows + v, 1, cols, false};
    if (shape->bias)
        list[count++] =
            (struct sl_parameter){kind->bias, sl_model_bias_row(layer), 1, shape->out, false};
    return count;
}

int64_t sl_layer_shape_rows(const struct sl_layer_shape *shape)
{
    return sl_layer_shape_weights(shape) * shape->in + sl_layer_shape_edge_rows(shape) +
           sl_layer_shape_vectors(shape) + shape->bias;
}

/* Add a layer whose parameters each rank has as its own copy. */
static int add_copy(struct sl_model *model, struct sl_model_layer *layer)
{
    const int64_t rows = sl_layer_shape_rows(&layer->shape);
    const int64_t cols = sl_layer_shape_columns(&layer->shape);
    if (model->options.holds == SL_MODEL_HOLDS_COPIES)
        return sl_tile_create(model->rt, &layer->parameters, rows, cols, sizeof(float),
                              model->rt->rank);
    sl_tile_describe(model->rt, &layer->parameters, rows, cols, cols, sizeof(float), 0, NULL);
    return 0;
}

int sl_model_add(struct sl_model *model, const struct sl_layer_shape *shape)
{
    const int l = model->layers;
    const int64_t rows = sl_layer_shape_rows(shape);
    if (l == model->options.layers)
        return sl_error(SL_ERR_SYSTEM, "a model of %d layers got another one", l);
    struct sl_model_layer *layer = &model->layer[model->layers++];
    *layer = (struct sl_model_layer){.index = l, .shape = *shape};
    struct sl_tile *tiles[SL_STATES + 3] = {&layer->parameters};
    int count = 1;
    if (rows == 0)
        return 0;
    if (model->options.holds != SL_MODEL_HOLDS_ALL)
        return add_copy(model, layer);
    for (int s = 0; s < model->options.states; s++)
        tiles[count++] = &layer->state[s];
    if (model->options.keep_best)
        tiles[count++] = &layer->best;
    if (shape->counted)
        tiles[count++] = &layer->counts;
    for (int t = 0; t < count; t++)
        if (sl_tile_create(model->rt, tiles[t], rows, sl_layer_shape_columns(shape), sizeof(float),
                           0))
            return SL_ERR_SYSTEM;
    return 0;
}

static int create_ends(struct sl_model *model)
{
    int code = 0;
    for (int r = 0; !code && r < model->rt->ranks; r++)
        code = sl_tile_create(model->rt, &model->end[r], 1, 1, sizeof(double), r);
    return code;
}

int sl_model_open(struct sl_model *model, struct sl_runtime *rt,
                  const struct sl_model_options *options)
{
    *model = (struct sl_model){.rt = rt};
    if (options->states < 1 || options->states > SL_STATES)
        return sl_error(SL_ERR_SYSTEM, "%d numbers of optimizer state (expected 1 to %d)",
                        options->states, SL_STATES);
    *model = (struct sl_model){
        .rt = rt,
        .options = *options,
        .layer = calloc((size_t)options->layers, sizeof *model->layer),
        .end = calloc((size_t)rt->ranks, sizeof *model->end),
    };
    if (!model->layer || !model->end)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d layers", options->layers);
    int code = create_ends(model);
    if (!code)
        code = sl_tile_create(rt, &model->best, 1, 2, sizeof(double), 0);
    if (!code)
        code = sl_tile_create(rt, &model->norm, 1, 1, sizeof(double), 0);
    if (!code && model->best.memory)
        ((double *)model->best.memory)[0] = -1.0; /* smaller than any count */
    return code;
}

/* ---- Lists of layers ---- */

#define ADDRESS(name) &sl_model_##name,
static const struct sl_model_kind *const kinds[] = {SL_MODELS(ADDRESS)};
#undef ADDRESS

const struct sl_model_kind *sl_model_find(const char *name)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strcmp(kinds[k]->name, name) == 0)
            return kinds[k];
    return NULL;
}

void sl_layer_list_add(struct sl_layer_list *list, const struct sl_layer_shape *layer)
{
    if (list->count == list->room) {
        const int room = 2 * list->room + 8;
        struct sl_layer_shape *longer = realloc(list->layer, (size_t)room * sizeof *longer);
        list->failed = list->failed || !longer;
        if (!longer)
            return;
        list->layer = longer;
        list->room = room;
    }
    list->layer[list->count++] = *layer;
}

/* Append the layer without its activation, and a norm with it. */
static void add_normalized(const struct sl_model_shape *shape, const struct sl_layer_shape *layer,
                           struct sl_layer_list *list)
{
    struct sl_layer_shape sums = *layer;
    sums.activation = SL_ACTIVATION_NONE;
    sums.bias_cancels = shape->norm->vectors.averages > 0;
    sl_layer_list_add(list, &sums);
    sl_layer_list_add(list, &(struct sl_layer_shape){
                                .kind = shape->norm,
                                .reducer = layer->reducer,
                                .in = layer->out,
                                .out = layer->out,
                                .activation = layer->activation,
                            });
}

/* List the layers without norms. */
static void list_plain(const struct sl_model_shape *shape, struct sl_layer_list *list)
{
    struct sl_model_shape after = *shape;
    if (!shape->encoder) {
        shape->model->list(shape, list);
        return;
    }
    after.features = sl_model_hidden(shape);
    after.input_dropout = shape->dropout;
    after.decay_first = shape->decay_rest;
    sl_layer_list_add(list, &(struct sl_layer_shape){
                                .kind = &sl_layer_linear,
                                .reducer = shape->reducer,
                                .in = shape->features,
                                .out = after.features,
                                .bias = shape->bias,
                                .dropout = shape->input_dropout,
                                .decay = shape->decay_first,
                            });
    shape->model->list(&after, list);
}

static void list_normalized(const struct sl_model_shape *shape, struct sl_layer_list *list)
{
    struct sl_layer_list plain = {0};
    if (!shape->norm) {
        list_plain(shape, list);
        return;
    }
    list_plain(shape, &plain);
    for (int l = 0; l < plain.count; l++) {
        plain.layer[l].stride = 2; /* norms lie between inputs of a jump */
        if (plain.layer[l].activation == SL_ACTIVATION_NONE)
            sl_layer_list_add(list, &plain.layer[l]);
        else
            add_normalized(shape, &plain.layer[l], list);
    }
    list->failed = list->failed || plain.failed;
    free(plain.layer);
}

void sl_model_list(const struct sl_model_shape *shape, struct sl_layer_list *list)
{
    list_normalized(shape, list);
    if (shape->decoder)
        sl_layer_list_add(list, &(struct sl_layer_shape){.kind = shape->decoder,
                                                         .reducer = shape->reducer,
                                                         .in = shape->classes,
                                                         .out = shape->classes});
}

int sl_model_create(struct sl_model *model, struct sl_runtime *rt,
                    const struct sl_model_shape *shape)
{
    struct sl_model_options options = shape->options;
    struct sl_layer_list list = {0};
    sl_model_list(shape, &list);
    options.layers = list.count;
    int code = list.failed ? sl_error(SL_ERR_SYSTEM, "no memory for a list of layers") : 0;
    if (code)
        *model = (struct sl_model){.rt = rt};
    else
        code = sl_model_open(model, rt, &options);
    code = rt->plans ? code : sl_runtime_agree(rt, code);
    for (int l = 0; !code && l < list.count; l++)
        code = sl_model_add(model, &list.layer[l]);
    free(list.layer);
    return code;
}

void sl_model_destroy(struct sl_model *model)
{
    for (int l = 0; model->layer && l < model->layers; l++) {
        struct sl_model_layer *layer = &model->layer[l];
        sl_tile_destroy(&layer->parameters);
        for (int s = 0; s < SL_STATES; s++)
            sl_tile_destroy(&layer->state[s]);
        sl_tile_destroy(&layer->best);
        sl_tile_destroy(&layer->counts);
    }
    for (int r = 0; model->end && r < model->rt->ranks; r++)
        sl_tile_destroy(&model->end[r]);
    sl_tile_destroy(&model->best);
    sl_tile_destroy(&model->norm);
    free(model->layer);
    free(model->end);
    *model = (struct sl_model){0};
}

void sl_model_spread(struct sl_model *model)
{
    for (int l = 0; l < model->layers; l++)
        if (sl_model_learns(&model->layer[l]))
            sl_broadcast(model->rt, &model->layer[l].parameters, 0, model->rt->ranks);
}

void sl_model_init_rows(struct sl_model *model, int layer, int64_t first, struct sl_tile *tile)
{
    const struct sl_layer_shape *shape = &model->layer[layer].shape;
    const int64_t cols = sl_layer_shape_columns(shape);
    const int64_t in = shape->in * sl_layer_shape_stacked(shape),
                  coefficients = coefficients_of(shape);
    const int64_t linear = model->options.linear_init == SL_LINEAR_PYTORCH
                               ? shape->kind->weights.linear
                               : 0,
                  zero = shape->bias ? biases_of(shape->kind) : 0;
    const float own = (float)(1.0 / sqrt((double)in));
    const struct sl_glorot glorot = {
        .key = sl_rng_key(model->options.seed, SL_RNG_INIT, 0, (uint32_t)layer),
        .first = first,
        .part = {{linear * in, own},
                 {(shape->kind->weights.count - linear) * in,
                  (float)sqrt(6.0 / (double)(in + cols))},
                 {sl_layer_shape_edge_rows(shape) - coefficients,
                  (float)sqrt(6.0 / (double)((shape->relations ? shape->in : shape->edge_features) +
                                             cols))},
                 /* a vector turns a head's columns into one number */
                 {coefficients + sl_layer_shape_vectors(shape) - zero,
                  shape->heads   ? (float)sqrt(6.0 / (double)(cols / shape->heads + 1))
                  : coefficients ? (float)sqrt(6.0 / (double)(coefficients + shape->bases))
                                 : 0.0f},
                 {zero, linear == shape->kind->weights.count ? own : 0.0f},
                 {shape->bias && linear > 0 && !shape->bias_cancels, own}},
    };
    if (shape->kind->weights.count || !shape->kind->start)
        sl_submit_glorot(model->rt, &glorot, tile);
    if (shape->kind->start)
        shape->kind->start(model->rt, shape->kind, tile);
}
