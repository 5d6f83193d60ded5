#include "graphs/model.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "graphs/collective.h"
#include "graphs/network.h"

int64_t sl_model_bias_row(const struct sl_model_layer *layer)
{
    return layer->kind->weights * layer->in;
}

int sl_model_parameters(const struct sl_model_layer *layer,
                        struct sl_parameter list[SL_WEIGHTS + 1])
{
    int count = 0;
    for (int w = 0; w < layer->kind->weights; w++, count++)
        list[w] = (struct sl_parameter){layer->kind->weight[w], w * layer->in, layer->in, true};
    if (layer->bias)
        list[count++] =
            (struct sl_parameter){layer->kind->bias, sl_model_bias_row(layer), 1, false};
    return count;
}

static int create_layer(struct sl_model *model, int l, const struct sl_model_shape *shape)
{
    struct sl_model_layer *layer = &model->layer[l];
    const bool last = l == shape->layers - 1;
    *layer = (struct sl_model_layer){
        .index = l,
        .kind = sl_layer_find(shape->layer),
        .reducer = shape->reducer,
        .in = l == 0 ? shape->features : shape->hidden,
        .out = last ? shape->classes : shape->hidden,
        .bias = shape->bias,
        .dropout = l == 0 ? shape->input_dropout : shape->dropout,
        .decay = l == 0 ? shape->decay_first : shape->decay_rest,
    };
    struct sl_tile *tiles[] = {&layer->parameters, &layer->moment1, &layer->moment2, &layer->best};
    for (int t = 0; t < (shape->keep_best ? 4 : 3); t++)
        if (sl_tile_create(model->rt, tiles[t], sl_model_bias_row(layer) + layer->bias, layer->out,
                           sizeof(float), 0))
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

int sl_model_create(struct sl_model *model, struct sl_runtime *rt,
                    const struct sl_model_shape *shape)
{
    *model = (struct sl_model){
        .rt = rt,
        .layers = shape->layers,
        .layer = calloc((size_t)shape->layers, sizeof *model->layer),
        .seed = shape->seed,
        .clip_norm = shape->clip_norm,
        .end = calloc((size_t)rt->ranks, sizeof *model->end),
    };
    if (!model->layer || !model->end)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d layers", shape->layers);
    int code = create_ends(model);
    if (!code)
        code = sl_tile_create(rt, &model->best, 1, 2, sizeof(double), 0);
    if (!code)
        code = sl_tile_create(rt, &model->norm, 1, 1, sizeof(double), 0);
    if (!code && model->best.memory)
        ((double *)model->best.memory)[0] = -1.0; /* any count beats it */
    for (int l = 0; !code && l < shape->layers; l++)
        code = create_layer(model, l, shape);
    return code;
}

void sl_model_destroy(struct sl_model *model)
{
    for (int l = 0; model->layer && l < model->layers; l++) {
        struct sl_model_layer *layer = &model->layer[l];
        sl_tile_destroy(&layer->parameters);
        sl_tile_destroy(&layer->moment1);
        sl_tile_destroy(&layer->moment2);
        sl_tile_destroy(&layer->best);
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
        sl_broadcast(model->rt, &model->layer[l].parameters, 0, model->rt->ranks);
}

void sl_model_init(struct sl_model *model)
{
    for (int l = 0; l < model->layers; l++) {
        struct sl_model_layer *layer = &model->layer[l];
        const float limit = (float)sqrt(6.0 / (double)(layer->in + layer->out));
        sl_submit_glorot(model->rt, sl_model_bias_row(layer), limit,
                         sl_rng_key(model->seed, SL_RNG_INIT, 0, (uint32_t)l), &layer->parameters);
    }
    sl_model_spread(model);
}

void sl_model_restore_best(struct sl_model *model)
{
    for (int l = 0; l < model->layers; l++)
        sl_submit_copy(model->rt, &model->layer[l].best, &model->layer[l].parameters);
    sl_model_spread(model);
}
