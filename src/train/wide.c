#include "train/wide.h"

#include <stdlib.h>

#include "codelets/accumulate.h"
#include "codelets/mean_probabilities.h"
#include "codelets/record.h"
#include "codelets/units.h"
#include "core/error.h"
#include "predict/plan.h"
#include "train/submodel_tiles.h"

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

/* The first block of the same widths. */
static int first_like(const struct sl_wide *wide, int block)
{
    int first = 0;
    while (!sl_rounds_alike(&wide->blocks, first, block))
        first++;
    return first;
}

static int create_network(struct sl_wide *wide, int block, struct sl_places *places,
                          const struct sl_model_options *options, const struct sl_config *config)
{
    struct sl_model *model = &wide->model[block];
    struct sl_network *net = &wide->net[block];
    int code = sl_model_open(model, wide->pass->network.rt, options);
    for (int l = 0; !code && l < wide->list.count; l++) {
        struct sl_layer_shape shape = wide->list.layer[l];
        shape.in = sl_rounds_width(&wide->blocks, wide->axes.in[l], block);
        shape.out = sl_rounds_width(&wide->blocks, wide->axes.out[l], block);
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

/* An ensemble has the parts of the run's only round. */
static int create_blocks(struct sl_wide *wide, const struct sl_config *config)
{
    const struct sl_partition *partition = wide->pass->operands.partition;
    const struct sl_submodels *members = wide->members;
    const int blocks = members ? members->count
                               : blocks_of(&wide->list, partition->row_cut[partition->tiles],
                                           wide->pass->graph.type);
    int code = sl_axes_find(&wide->list, &wide->axes);
    if (!code)
        code = sl_rounds_create(&wide->blocks, &wide->axes, SL_ROUNDS_FIXED, blocks, 1,
                                members ? (uint64_t)config->seed : 0,
                                members ? members->rounds.split : NULL);
    wide->model = calloc((size_t)blocks, sizeof *wide->model);
    wide->net = calloc((size_t)blocks, sizeof *wide->net);
    if (!code && (!wide->model || !wide->net))
        code = sl_error(SL_ERR_SYSTEM, "no memory for %d blocks", blocks);
    if (!code)
        sl_rounds_draw(&wide->blocks, 0);
    return code;
}

/* Softmax is of whole rows. */
int sl_wide_check_ensemble(const struct sl_network *whole)
{
    if (whole->graph->objective.loss != &sl_loss_softmax)
        return sl_error(SL_ERR_USAGE, "--share none: the loss is %s (expected cross-entropy)",
                        whole->graph->objective.loss->name);
    if (whole->layer[whole->layers - 1].output.tile_cols > 1)
        return sl_error(SL_ERR_USAGE, "--share none: expected a distribution without columns of "
                                      "ranks");
    return 0;
}

int sl_wide_create(struct sl_wide *wide, struct sl_pass *pass, struct sl_store *store,
                   struct sl_places *places, const struct sl_model_shape *shape,
                   const struct sl_config *config, const struct sl_submodels *members)
{
    struct sl_model_options options = shape->options;
    *wide = (struct sl_wide){.pass = pass, .store = store, .members = members};
    shape->model->list(shape, &wide->list);
    if (wide->list.failed)
        return sl_error(SL_ERR_SYSTEM, "no memory for a list of layers");
    options.layers = wide->list.count;
    options.keep_best = false;
    options.holds = SL_MODEL_HOLDS_ALL;
    options.states = 1;
    int code = sl_runtime_agree(pass->network.rt, create_blocks(wide, config));
    for (int b = 0; !code && b < wide->blocks.parts; b++)
        if (first_like(wide, b) == b)
            code = create_network(wide, b, places, &options, config);
    return code;
}

static bool has_network(const struct sl_wide *wide, int block)
{
    return wide->net && wide->net[block].graph;
}

void sl_wide_destroy(struct sl_wide *wide)
{
    for (int b = 0; b < wide->blocks.parts; b++) {
        if (has_network(wide, b))
            sl_network_destroy(&wide->net[b]);
        if (has_network(wide, b))
            sl_model_destroy(&wide->model[b]);
    }
    free(wide->model);
    free(wide->net);
    sl_rounds_free(&wide->blocks);
    sl_axes_free(&wide->axes);
    free(wide->list.layer);
    *wide = (struct sl_wide){0};
}

void sl_wide_plan(const struct sl_wide *wide, struct sl_plan *plan)
{
    for (int b = 0; b < wide->blocks.parts; b++) {
        if (!has_network(wide, b))
            continue;
        sl_plan_add_model(&wide->model[b], plan);
        sl_plan_add_other(&wide->net[b], plan);
        if (!wide->net[b].places->shared)
            sl_plan_add_places(wide->net[b].places, plan);
    }
}

/* Parameters that no axis splits are in the first block alone; each member has its own. */
static void take(struct sl_wide *wide, int block, struct sl_model *part)
{
    for (int l = 0; l < wide->list.count; l++) {
        const struct sl_store_block from = {
            .layer = l,
            .kind = SL_STORE_PARAMETERS,
            .units = sl_rounds_block(&wide->blocks, 0, block, l,
                                     sl_layer_shape_weights(&wide->list.layer[l])),
            .tile = &part->layer[l].parameters,
            .kept = wide->members ? sl_submodel_kept(wide->members, block, 0) : NULL,
            .shared = block == 0,
        };
        if (sl_model_learns(&part->layer[l]))
            sl_store_take(wide->store, &from);
    }
    sl_model_spread(part);
}

static void add_logits(struct sl_wide *wide, int block, const struct sl_matrix *from,
                       const struct sl_matrix *to)
{
    struct sl_runtime *rt = wide->pass->network.rt;
    for (int t = 0; t < to->tile_rows * to->tile_cols; t++)
        if (wide->members)
            sl_submit_mean_probabilities(rt, block, &from->tiles[t], &to->tiles[t]);
        else if (block == 0)
            sl_submit_copy(rt, &from->tiles[t], &to->tiles[t]);
        else
            sl_submit_accumulate(rt, &from->tiles[t], &to->tiles[t]);
}

void sl_wide_evaluate(struct sl_wide *wide)
{
    struct sl_network *whole = &wide->pass->network;
    const int last = wide->list.count - 1;
    for (int b = 0; b < wide->blocks.parts; b++) {
        struct sl_network *net = &wide->net[first_like(wide, b)];
        take(wide, b, net->model);
        net->epoch = whole->epoch;
        sl_network_forward(net, false);
        add_logits(wide, b, &net->layer[last].output, &whole->layer[last].output);
    }
    sl_network_measure(whole);
}
