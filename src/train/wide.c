#include "train/wide.h"

#include <stdlib.h>

#include "codelets/accumulate.h"
#include "codelets/record.h"
#include "core/error.h"
#include "predict/plan.h"
#include "train/rounds.h"
#include "train/steps.h"

size_t sl_wide_block_bytes = 64 << 20;

/* ---- Blocks ---- */

/* A layer adds terms of its input, and each unit of its output follows from its own sum. */
static bool is_separable(const struct sl_layer_list *list)
{
    bool alike = list->count > 1;
    for (int l = 0; alike && l < list->count; l++)
        alike = list->layer[l].kind->weights > 0 && list->layer[l].heads == 0 &&
                list->layer[l].back == 0 && list->layer[l].inputs == 0 &&
                (l == 0 || list->layer[l].in == list->layer[0].out);
    return alike;
}

/* Columns of a block. */
static int64_t width_of(const struct sl_layer_list *list, int64_t vertices, enum sl_type type)
{
    const int64_t hidden = list->layer[0].out, most = (hidden + SL_MOST_PARTS - 1) / SL_MOST_PARTS;
    const int64_t column = vertices * (int64_t)sl_type_size(type);
    const int64_t width = (int64_t)sl_wide_block_bytes / (column > 0 ? column : 1);
    return width > hidden ? hidden : width > most ? width : most;
}

bool sl_wide_fits(const struct sl_model_shape *shape, int64_t vertices, enum sl_type type,
                  int columns)
{
    struct sl_layer_list list = {0};
    shape->model->list(shape, &list);
    const bool fits = !list.failed && is_separable(&list) && (list.count == 2 || columns == 1) &&
                      width_of(&list, vertices, type) < list.layer[0].out;
    free(list.layer);
    return fits;
}

static bool is_last_layer(const struct sl_wide *wide, int l)
{
    return l == wide->list.count - 1;
}

static int64_t columns_of(const struct sl_wide *wide, bool last)
{
    return last ? wide->list.layer[0].out - (wide->blocks - 1) * wide->width : wide->width;
}

static bool is_last_block(const struct sl_wide *wide, int block)
{
    return block == wide->blocks - 1;
}

/* Of the first layer's input and the last layer's output, which are whole: 1. */
static int blocks_before(const struct sl_wide *wide, int l)
{
    return l == 0 ? 1 : wide->blocks;
}

static int blocks_after(const struct sl_wide *wide, int l)
{
    return is_last_layer(wide, l) ? 1 : wide->blocks;
}

static struct sl_wide_step *step_of(const struct sl_wide *wide, int l, int i, int j)
{
    return &wide->layer[l].step[l > 0 && is_last_block(wide, i)]
                               [!is_last_layer(wide, l) && is_last_block(wide, j)];
}

/* Parameters from block i of a layer's input to block j of its output. Both blocks are one part:
 * units of the output are counted as if block j were there. */
static struct sl_unit_block block_of(const struct sl_wide *wide, int l, int i, int j)
{
    const struct sl_layer_shape *shape = &wide->list.layer[l];
    const uint8_t *part = wide->part + wide->blocks * wide->width;
    const int block = l > 0 ? i : j;
    return (struct sl_unit_block){
        .weights = sl_layer_shape_weights(shape),
        .in = {shape->in, l > 0 ? part : NULL},
        .out = {shape->out, is_last_layer(wide, l) ? NULL : part + (block - j) * wide->width},
        .part = block,
    };
}

/* ---- Create ---- */

static int create_parts(struct sl_wide *wide)
{
    const int64_t hidden = wide->list.layer[0].out;
    wide->blocks = (int)((hidden + wide->width - 1) / wide->width);
    const int64_t units = wide->blocks * wide->width;
    wide->layer = calloc((size_t)wide->list.count, sizeof *wide->layer);
    wide->part = calloc((size_t)(3 * units), 1);
    for (int k = 0; k < 2; k++)
        wide->sums[k] = calloc((size_t)wide->blocks, sizeof *wide->sums[k]);
    if (!wide->layer || !wide->part || !wide->sums[0] || !wide->sums[1])
        return sl_error(SL_ERR_SYSTEM, "no memory for %d blocks", wide->blocks);
    for (int64_t u = 0; u < 3 * units; u++)
        wide->part[u] = (uint8_t)(u / wide->width - wide->blocks);
    return 0;
}

/* Its output is the layer's term, before activation. */
static int create_step(struct sl_wide *wide, int l, int i, int j,
                       const struct sl_model_options *options, int order)
{
    struct sl_wide_step *step = step_of(wide, l, i, j);
    struct sl_layer_shape shape = wide->list.layer[l];
    if (step->net.graph)
        return 0;
    shape.in = l > 0 ? columns_of(wide, is_last_block(wide, i)) : shape.in;
    shape.out = is_last_layer(wide, l) ? shape.out : columns_of(wide, is_last_block(wide, j));
    shape.activation = SL_ACTIVATION_NONE;
    shape.dropout = 0.0;
    int code = sl_model_open(&step->model, wide->pass->network.rt, options);
    if (!code)
        code = sl_model_add(&step->model, &shape);
    step->net = (struct sl_network){.rt = wide->pass->network.rt,
                                    .graph = &wide->layer[l].graph,
                                    .model = &step->model,
                                    .places = wide->places,
                                    .rates = wide->pass->network.rates,
                                    .evaluates = true};
    return code ? code : sl_network_create(&step->net, order, NULL);
}

/* Between two hidden layers a block is aggregated before it meets each block of the output. */
static int create_steps(struct sl_wide *wide, int l, const struct sl_model_options *options,
                        const struct sl_config *config)
{
    const bool between = l > 0 && !is_last_layer(wide, l);
    const int order = between ? SL_SPMM_FIRST : sl_config_product_order(config);
    int code = 0;
    for (int i = 0; i < blocks_before(wide, l); i++)
        for (int j = 0; !code && j < blocks_after(wide, l); j++)
            code = create_step(wide, l, i, j, options, order);
    return code;
}

static const struct sl_distribution *rows_after(const struct sl_wide *wide, int l)
{
    const struct sl_graph *graph = &wide->pass->graph;
    return &graph->distribution[step_of(wide, l, 0, 0)->net.layer[0].output.row_order];
}

/* Batches read features into places 0 and 1. This is another place. */
static int create_input(struct sl_wide *wide, int l)
{
    enum { NUMBER = 2 };
    struct sl_wide_layer *layer = &wide->layer[l];
    layer->graph = wide->pass->graph;
    int code = 0;
    for (int last = 0; l > 0 && !code && last < 2; last++) {
        struct sl_place *place = sl_places_find(wide->places, SL_PLACE_FEATURES, NUMBER);
        code = place ? sl_distribution_describe_rows(wide->pass->network.rt,
                                                     rows_after(wide, l - 1), &layer->input[last],
                                                     wide->pass->graph.type, columns_of(wide, last))
                     : SL_ERR_SYSTEM;
        if (!code)
            code = sl_place_add(place, &layer->input[last]);
    }
    if (l > 0)
        layer->graph.input = (struct sl_input){
            .row_order = layer->input[0].row_order, .width = wide->width, .dense = layer->input[0]};
    return code;
}

/* Sums that layer l leaves; those of the layer before are there, too. */
static struct sl_matrix *sum_of(const struct sl_wide *wide, int l, int j)
{
    return is_last_layer(wide, l) ? &wide->pass->network.layer[l].output : &wide->sums[l % 2][j];
}

static int describe_sums(struct sl_wide *wide, int l)
{
    int code = 0;
    for (int j = 0; !code && j < wide->blocks; j++)
        code = sl_distribution_describe_rows(wide->pass->network.rt, rows_after(wide, l),
                                             sum_of(wide, l, j), SL_FLOAT32,
                                             columns_of(wide, is_last_block(wide, j)));
    return code;
}

/* Each rank has its own rows. */
static int64_t bytes_of_sums(const struct sl_wide *wide)
{
    enum { ALIGNMENT = 64 };
    int64_t bytes = 0;
    for (int k = 0; k < 2; k++)
        for (int j = 0; wide->sums[k] && j < wide->blocks; j++)
            if (wide->sums[k][j].tiles)
                bytes += (int64_t)sl_matrix_own_bytes(wide->pass->network.rt, &wide->sums[k][j]) +
                         ALIGNMENT;
    return bytes;
}

static int allocate_sums(struct sl_wide *wide, const char *store)
{
    struct sl_runtime *rt = wide->pass->network.rt;
    const int64_t bytes = bytes_of_sums(wide);
    int code = wide->stored && bytes > 0 && !rt->plans
                   ? sl_mapped_open(&wide->mapped, store, (size_t)bytes)
                   : 0;
    for (int k = 0; k < 2; k++)
        for (int j = 0; !code && j < wide->blocks; j++) {
            struct sl_matrix *sum = &wide->sums[k][j];
            if (sum->tiles && wide->stored)
                sl_matrix_lend(
                    rt, sum,
                    rt->plans ? NULL : sl_mapped_take(&wide->mapped, sl_matrix_own_bytes(rt, sum)));
            else if (sum->tiles)
                code = sl_matrix_allocate(rt, sum);
        }
    return code;
}

int sl_wide_create(struct sl_wide *wide, struct sl_pass *pass, struct sl_store *store,
                   struct sl_places *places, const struct sl_model_shape *shape,
                   const struct sl_config *config)
{
    struct sl_model_options options = shape->options;
    struct sl_runtime *rt = pass->network.rt;
    *wide = (struct sl_wide){
        .pass = pass, .store = store, .stored = config->store, .own_places = {.shared = true}};
    wide->places = places ? places : &wide->own_places;
    shape->model->list(shape, &wide->list);
    if (sl_runtime_agree(rt, wide->list.failed ? sl_error(SL_ERR_SYSTEM, "no memory for a list of "
                                                                         "layers")
                                               : 0))
        return SL_ERR_SYSTEM;
    options.layers = 1;
    options.keep_best = false;
    options.holds = SL_MODEL_HOLDS_ALL;
    options.states = 1;
    wide->width = width_of(&wide->list, pass->graph.vertices, pass->graph.type);
    int code = sl_runtime_agree(rt, create_parts(wide));
    for (int l = 0; !code && l < wide->list.count; l++) {
        code = create_input(wide, l);
        if (!code)
            code = create_steps(wide, l, &options, config);
    }
    for (int l = 1; !code && l < 3 && l < wide->list.count - 1; l++)
        code = describe_sums(wide, l);
    code = sl_runtime_agree(rt, code);
    if (!code)
        code = allocate_sums(wide, config->store);
    if (!code && !places)
        code = sl_places_allocate(rt, wide->places);
    return sl_runtime_agree(rt, code);
}

static void destroy_layer(struct sl_wide_layer *layer)
{
    for (int k = 0; k < 4; k++) {
        struct sl_wide_step *step = &layer->step[k / 2][k % 2];
        if (step->net.graph)
            sl_network_destroy(&step->net);
        if (step->model.rt)
            sl_model_destroy(&step->model);
    }
    for (int last = 0; last < 2; last++) {
        if (layer->input[last].place)
            sl_place_remove(layer->input[last].place, &layer->input[last]);
        sl_matrix_destroy(&layer->input[last]);
    }
}

void sl_wide_destroy(struct sl_wide *wide)
{
    for (int l = 0; wide->layer && l < wide->list.count; l++)
        destroy_layer(&wide->layer[l]);
    for (int k = 0; k < 2; k++) {
        for (int j = 0; wide->sums[k] && j < wide->blocks; j++)
            sl_matrix_destroy(&wide->sums[k][j]);
        free(wide->sums[k]);
    }
    sl_mapped_close(&wide->mapped);
    sl_places_free(&wide->own_places);
    free(wide->layer);
    free(wide->part);
    free(wide->list.layer);
    *wide = (struct sl_wide){0};
}

/* Bytes of a block of parameters that travel. */
static int64_t travels(const struct sl_wide *wide, int l, int i, int j)
{
    const struct sl_tile *tile = &step_of(wide, l, i, j)->model.layer[0].parameters;
    const struct sl_unit_block block = block_of(wide, l, i, j);
    return sl_store_words(wide->store, l, &block, tile->cols, tile->owner) * (int64_t)sizeof(float);
}

int64_t sl_wide_travelling(const struct sl_wide *wide)
{
    int64_t all = 0, largest = 0;
    for (int l = 0; wide->pass && l < wide->list.count; l++)
        for (int i = 0; i < blocks_before(wide, l); i++)
            for (int j = 0; j < blocks_after(wide, l); j++) {
                const int64_t bytes = travels(wide, l, i, j);
                all += bytes;
                largest = bytes > largest ? bytes : largest;
            }
    const int64_t limit = (int64_t)sl_wide_block_bytes + largest;
    return all < limit ? all : limit;
}

void sl_wide_plan(const struct sl_wide *wide, struct sl_plan *plan)
{
    for (int l = 0; wide->layer && l < wide->list.count; l++)
        for (int k = 0; k < 4; k++) {
            const struct sl_wide_step *step = &wide->layer[l].step[k / 2][k % 2];
            if (!step->net.graph)
                continue;
            sl_plan_add_model(&step->model, plan);
            sl_plan_add_other(&step->net, plan);
        }
    if (!wide->pass)
        return;
    sl_plan_add_places(&wide->own_places, plan);
    if (!wide->stored)
        plan->bytes[SL_PLAN_ACTIVATIONS] += bytes_of_sums(wide);
}

/* ---- Evaluate ---- */

/* SUM, or TERM where it is the first one. */
static void add(struct sl_runtime *rt, bool first, const struct sl_matrix *term,
                const struct sl_matrix *sum)
{
    for (int t = 0; t < sum->tile_rows * sum->tile_cols; t++)
        if (first)
            sl_submit_copy(rt, &term->tiles[t], &sum->tiles[t]);
        else
            sl_submit_accumulate(rt, &term->tiles[t], &sum->tiles[t]);
}

/* Blocks that travel take memory until they are used. */
static void limit_blocks(struct sl_wide *wide, int l, int i, int j)
{
    struct sl_runtime *rt = wide->pass->network.rt;
    if (wide->travelling > (int64_t)sl_wide_block_bytes) {
        sl_runtime_wait_for_room(rt, 0);
        wide->travelling = 0;
    }
    wide->travelling += travels(wide, l, i, j);
}

/* The biases are in the first term alone. */
static void take(struct sl_wide *wide, int l, int i, int j, struct sl_model *model)
{
    const struct sl_store_block block = {.layer = l,
                                         .kind = SL_STORE_PARAMETERS,
                                         .units = block_of(wide, l, i, j),
                                         .tile = &model->layer[0].parameters,
                                         .shared = i == 0};
    limit_blocks(wide, l, i, j);
    sl_store_take(wide->store, &block);
    sl_model_spread(model);
}

/* A block of layer l's output, from its sums, is what the layer after reads next. */
static void activate(struct sl_wide *wide, int l, int j, const struct sl_matrix *sum)
{
    struct sl_network *whole = &wide->pass->network;
    struct sl_wide_layer *after = &wide->layer[l + 1];
    const struct sl_layer_shape *shape = &wide->list.layer[l];
    const struct sl_matrix *output = &after->input[is_last_block(wide, j)];
    struct sl_epilogue_tiles e = SL_EPILOGUE_NONE;
    e.relu = shape->activation == SL_ACTIVATION_RELU;
    e.elu = shape->activation == SL_ACTIVATION_ELU;
    e.after = wide->list.layer[l + 1].kind->scaled_input ? SL_ROW_RIGHT : SL_ROW_NONE;
    sl_place_take(whole->rt, output->place, output);
    sl_network_finish(whole, &e, sum, output);
    after->graph.input.dense = *output;
}

/* Add the terms of block i of layer l's input, which is there, to all blocks of its output. Sums of
 * the first layer have one term. */
static void multiply(struct sl_wide *wide, int l, int i)
{
    struct sl_network *whole = &wide->pass->network, *before = NULL;
    for (int j = 0; j < blocks_after(wide, l); j++) {
        struct sl_wide_step *step = step_of(wide, l, i, j);
        const struct sl_matrix *term = &step->net.layer[0].output;
        take(wide, l, i, j, &step->model);
        step->net.epoch = whole->epoch;
        step->net.aggregated = l > 0 && before == &step->net;
        sl_network_forward(&step->net, false);
        before = &step->net;
        if (l > 0) {
            add(whole->rt, i == 0, term, sum_of(wide, l, j));
            continue;
        }
        activate(wide, 0, j, term);
        multiply(wide, 1, j);
    }
    sl_runtime_wait_for_room(whole->rt, SL_PENDING_TASKS);
}

void sl_wide_evaluate(struct sl_wide *wide)
{
    wide->travelling = 0;
    multiply(wide, 0, 0);
    for (int l = 1; l < wide->list.count - 1; l++)
        for (int j = 0; j < wide->blocks; j++) {
            activate(wide, l, j, sum_of(wide, l, j));
            multiply(wide, l + 1, j);
        }
    sl_network_measure(&wide->pass->network);
}
