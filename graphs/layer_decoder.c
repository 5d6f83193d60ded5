/* clang-format off */
/* The parameters of a decoder of links (codelets/links.h). The layer hands its input on: rows of both ends meet in the loss (graphs/links.c), which also makes the gradient of the parameters.
 *
 *   forward    Y = X
 *   backward   dw(i) = links->parameters(i);  G of the layer before = G */
/* clang-format on */
#include <math.h>

#include "codelets/record.h"
#include "core/error.h"
#include "graphs/forward.h"
#include "graphs/layer.h"
#include "graphs/links.h"

static int plan(struct sl_network *net, struct sl_layer *layer, int wanted)
{
    (void)wanted;
    layer->order = SL_GEMM_FIRST;
    layer->back.gradient_factor = SL_ROW_NONE;
    if (layer->index == 0 || layer->in != layer->out || net->graph->distribution->grid.columns > 1)
        return sl_error(SL_ERR_USAGE,
                        "--decoder %s: expected a distribution that keeps rows whole "
                        "(1d, 1.5d, halo, cover or vertex-cut)",
                        layer->kind->name);
    return 0;
}

static void forward(struct sl_network *net, struct sl_layer *layer, bool training)
{
    const struct sl_epilogue_tiles none = SL_EPILOGUE_NONE;
    (void)training;
    sl_network_finish(net, &none, NULL, &(layer - 1)->output, &layer->output);
}

static struct sl_matrix *backward(struct sl_network *net, struct sl_layer *layer,
                                  struct sl_matrix *g)
{
    struct sl_matrix *y = &(layer - 1)->output;
    const struct sl_epilogue_tiles finish = sl_layer_activation_back(net, layer);
    struct sl_links *links = net->graph->links;
    for (int i = 0; i < net->graph->distribution->tiles; i++)
        sl_submit_copy(net->rt, &links->parameters[i],
                       sl_matrix_tile(&layer->back.gradients, i, 0));
    sl_network_finish(net, &finish, sl_layer_mask(layer), g, y);
    return y;
}

static void start_at_one(struct sl_runtime *rt, const struct sl_layer_kind *kind,
                         struct sl_tile *tile)
{
    (void)kind;
    if (tile->owner != rt->rank)
        return;
    float *w = sl_tile_acquire(rt, tile, true);
    for (int64_t j = 0; j < tile->cols; j++)
        w[j] = 1.0f;
    sl_tile_release(tile);
}

/* Weights of both signs, as large as those of Glorot and Bengio (AISTATS 2010) are on average; the
 * product before them is random. b is 0. With weights of 0, the first step would leave the
 * embeddings as they are. */
static void start_on_both_sides(struct sl_runtime *rt, const struct sl_layer_kind *kind,
                                struct sl_tile *tile)
{
    const int64_t h = tile->cols / 2;
    const float size = (float)sqrt(2.0 / (double)(h + 1));
    (void)kind;
    if (tile->owner != rt->rank)
        return;
    float *w = sl_tile_acquire(rt, tile, true);
    for (int64_t j = 0; j < tile->cols; j++)
        w[j] = j >= h ? 0.0f : j % 2 ? -size : size;
    sl_tile_release(tile);
}

/* A forward program ends with the rows that the decoder reads. */
static int describe(const struct sl_forward *forward)
{
    return sl_forward_input(forward);
}

const struct sl_layer_kind sl_layer_distmult = {
    .name = "distmult",
    .vectors = {.count = 1, .name = {"weight"}},
    .alone = true,
    .start = start_at_one,
    .plan = plan,
    .forward = forward,
    .backward = backward,
    .aggregations = sl_layer_no_aggregations,
    .describe = describe,
};

const struct sl_layer_kind sl_layer_link_mlp = {
    .name = "mlp",
    .vectors = {.count = 1, .name = {"weight"}},
    .alone = true,
    .start = start_on_both_sides,
    .plan = plan,
    .forward = forward,
    .backward = backward,
    .aggregations = sl_layer_no_aggregations,
    .describe = describe,
};
