/* GIN (Xu, Hu, Leskovec & Jegelka, ICLR 2019) with epsilon = 0: each of --layers layers is
 *
 *   H = relu(relu((A + I)·drop(H)·W + b)·V + c),   without the last relu in the last layer
 *
 * GINE (Hu, Liu, Gomes, Zitnik, Liang, Pande & Leskovec, ICLR 2020) has edge features: a layer of
 * graphs/layer_gine.c takes the place of (A + I)·drop(H).
 */
#include "graphs/network.h"

static bool has_edges(const struct sl_model_shape *shape)
{
    return shape->kind == &sl_layer_gine;
}

/* Add the sum over a vertex and its neighbours. */
static void add_sum(const struct sl_layer_shape *first, const struct sl_model_shape *shape,
                    struct sl_layer_list *list)
{
    struct sl_layer_shape sum = *first;
    sum.out = first->in;
    sum.activation = SL_ACTIVATION_NONE;
    sum.edge_features = shape->edges.features;
    sl_layer_list_add(list, &sum);
}

static void add_layer(const struct sl_model_shape *shape, int l, struct sl_layer_list *list)
{
    const bool last = l == shape->layers - 1;
    const float decay = l == 0 ? shape->decay_first : shape->decay_rest;
    struct sl_layer_shape first = {
        .kind = shape->kind,
        .reducer = shape->reducer,
        .in = l == 0 ? shape->features : shape->hidden,
        .out = shape->hidden,
        .bias = shape->bias,
        .dropout = l == 0 ? shape->input_dropout : shape->dropout,
        .decay = decay,
        .activation = shape->activation,
    };
    if (has_edges(shape)) {
        add_sum(&first, shape, list);
        first.kind = &sl_layer_linear;
        first.dropout = 0.0;
    }
    sl_layer_list_add(list, &first);
    sl_layer_list_add(list, &(struct sl_layer_shape){
                                .kind = &sl_layer_linear,
                                .reducer = shape->reducer,
                                .in = shape->hidden,
                                .out = last ? shape->classes : shape->hidden,
                                .bias = shape->bias,
                                .decay = decay,
                                .activation = last ? SL_ACTIVATION_NONE : shape->activation,
                            });
}

static void list_gin(const struct sl_model_shape *shape, struct sl_layer_list *list)
{
    for (int l = 0; l < shape->layers; l++)
        add_layer(shape, l, list);
}

const struct sl_model_kind sl_model_gin = {
    .name = "gin",
    .neighbours = &sl_layer_gcn,
    .unscaled = true,
    .inner = true,
    .list = list_gin,
};

const struct sl_model_kind sl_model_gine = {
    .name = "gine",
    .neighbours = &sl_layer_gine,
    .reducer = &sl_reduce_gine,
    .edges = SL_EDGES_NEEDED,
    .inner = true,
    .one_order = true,
    .list = list_gin,
};
