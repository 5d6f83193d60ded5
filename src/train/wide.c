#include "train/wide.h"

#include <stdlib.h>

#include "codelets/accumulate.h"
#include "codelets/record.h"
#include "codelets/units.h"
#include "core/error.h"
#include "predict/plan.h"

/* Bytes of a block's activations. */
static const double BLOCK_BYTES = 64 << 20;

static bool is_separable(const struct sl_layer_list *list)
{
    bool alike = list->count == 2;
    for (int l = 0; alike && l < list->count; l++)
        alike = list->layer[l].kind->weights > 0 && list->layer[l].heads == 0 &&
                list->layer[l].back == 0 && list->layer[l].inputs == 0;
    return alike;
}

static int blocks_of(const struct sl_layer_list *list, int64_t vertices, enum sl_type type)
{
    const int64_t hidden = list->layer[0].out;
    const double blocks =
        (double)vertices * (double)hidden * (double)sl_type_size(type) / BLOCK_BYTES;
    const double most = (double)(hidden < SL_MOST_PARTS ? hidden : SL_MOST_PARTS) - 1.0;
    return (int)(blocks < most ? blocks : most) + 1;
}

bool sl_wide_fits(const struct sl_model_shape *shape, int64_t vertices, enum sl_type type)
{
    struct sl_layer_list list = {0};
    shape->model->list(shape, &list);
    const bool fits = !list.failed && is_separable(&list) && blocks_of(&list, vertices, type) > 1;
    free(list.layer);
    return fits;
}

/* The narrow network of a block: blocks have the width of the first one, or another one. */
static int shape_of(const struct sl_wide *wide, int block)
{
    const int axis = wide->axes.out[0];
    return sl_rounds_size(&wide->blocks, axis, block) != sl_rounds_size(&wide->blocks, axis, 0);
}

static int create_network(struct sl_wide *wide, int block, struct sl_places *places,
                          const struct sl_model_options *options, const struct sl_config *config)
{
    struct sl_model *model = &wide->model[wide->shapes];
    struct sl_network *net = &wide->net[wide->shapes++];
    const int64_t width = sl_rounds_size(&wide->blocks, wide->axes.out[0], block);
    int code = sl_model_open(model, wide->pass->network.rt, options);
    for (int l = 0; !code && l < wide->list.count; l++) {
        struct sl_layer_shape shape = wide->list.layer[l];
        *(l ? &shape.in : &shape.out) = width;
        code = sl_model_add(model, &shape);
    }
    *net = (struct sl_network){.rt = wide->pass->network.rt,
                               .graph = &wide->pass->graph,
                               .model = model,
                               .places = places,
                               .rates = wide->pass->network.rates,
                               .evaluates = true};
    return code ? code : sl_network_create(net, sl_config_product_order(config), NULL);
}

int sl_wide_create(struct sl_wide *wide, struct sl_pass *pass, struct sl_places *places,
                   const struct sl_model_shape *shape, const struct sl_config *config)
{
    struct sl_model_options options = shape->options;
    *wide = (struct sl_wide){.pass = pass};
    shape->model->list(shape, &wide->list);
    if (wide->list.failed)
        return sl_error(SL_ERR_SYSTEM, "no memory for a list of layers");
    const int blocks =
        blocks_of(&wide->list, pass->operands.partition->row_cut[pass->operands.partition->tiles],
                  pass->graph.type);
    options.layers = wide->list.count;
    options.keep_best = false;
    options.store = NULL;
    options.states = 1;
    int code = sl_axes_find(&wide->list, &wide->axes);
    if (!code)
        code = sl_rounds_create(&wide->blocks, &wide->axes, SL_ROUNDS_FIXED, blocks, 1, 0, NULL);
    if (code)
        return code;
    sl_rounds_draw(&wide->blocks, 0);
    for (int b = 0; !code && b < blocks; b++)
        if (shape_of(wide, b) >= wide->shapes)
            code = create_network(wide, b, places, &options, config);
    return code;
}

void sl_wide_destroy(struct sl_wide *wide)
{
    for (int n = 0; n < wide->shapes; n++) {
        sl_network_destroy(&wide->net[n]);
        sl_model_destroy(&wide->model[n]);
    }
    sl_rounds_free(&wide->blocks);
    sl_axes_free(&wide->axes);
    free(wide->list.layer);
    *wide = (struct sl_wide){0};
}

void sl_wide_plan(const struct sl_wide *wide, struct sl_plan *plan)
{
    for (int n = 0; n < wide->shapes; n++) {
        sl_plan_add_model(&wide->model[n], plan);
        sl_plan_add_other(&wide->net[n], plan);
        if (!wide->net[n].places->shared)
            sl_plan_add_places(wide->net[n].places, plan);
    }
}

/* Parameters that no axis splits are in the first block alone. */
static void take(struct sl_wide *wide, int block)
{
    struct sl_model *whole = wide->pass->network.model, *part = &wide->model[shape_of(wide, block)];
    for (int l = 0; l < wide->list.count; l++) {
        const struct sl_unit_block units = sl_rounds_block(
            &wide->blocks, 0, block, l, sl_layer_shape_weights(&wide->list.layer[l]));
        sl_submit_take_block(whole->rt, &units, block == 0, &whole->layer[l].parameters,
                             &part->layer[l].parameters);
    }
    sl_model_spread(part);
}

static void add_logits(const struct sl_matrix *from, const struct sl_matrix *to, bool first,
                       struct sl_runtime *rt)
{
    for (int t = 0; t < to->tile_rows * to->tile_cols; t++)
        if (first)
            sl_submit_copy(rt, &from->tiles[t], &to->tiles[t]);
        else
            sl_submit_accumulate(rt, &from->tiles[t], &to->tiles[t]);
}

void sl_wide_evaluate(struct sl_wide *wide)
{
    struct sl_network *whole = &wide->pass->network;
    const int last = wide->list.count - 1;
    for (int b = 0; b < wide->blocks.parts; b++) {
        struct sl_network *net = &wide->net[shape_of(wide, b)];
        take(wide, b);
        net->epoch = whole->epoch;
        sl_network_forward(net, false);
        add_logits(&net->layer[last].output, &whole->layer[last].output, b == 0, whole->rt);
    }
    sl_network_measure(whole);
}
