#include "submodels/wide.h"

#include <stdlib.h>
#include <string.h>

#include "codelets/accumulate.h"
#include "codelets/record.h"
#include "core/error.h"
#include "core/task.h"
#include "graphs/layer_gat.h"
#include "predict/plan.h"
#include "submodels/rounds.h"
#include "submodels/wide_blocks.h"

/* ---- Create ---- */

static int create_parts(struct sl_wide *wide)
{
    const struct sl_layer_shape *last = &wide->list.layer[wide->list.count - 1];
    const int64_t hidden = last->in, others = (sl_wide_inputs(last) - 1) * hidden;
    wide->blocks = (int)((hidden + wide->width - 1) / wide->width);
    const int64_t units = wide->blocks * wide->width;
    wide->layer = calloc((size_t)wide->list.count, sizeof *wide->layer);
    wide->part = malloc((size_t)(3 * units + 2 * others + hidden));
    bool there = wide->layer && wide->part;
    for (int k = 0; there && k < SL_WIDE_SUMS; k++) {
        wide->sums[k] = calloc((size_t)wide->blocks, sizeof *wide->sums[k]);
        there = wide->sums[k];
    }
    if (!there)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d blocks", wide->blocks);
    for (int64_t u = 0; u < 3 * units; u++)
        wide->part[u] = (uint8_t)(u / wide->width - wide->blocks);
    wide->input_part = wide->part + 3 * units + others;
    memset(wide->input_part - others, SL_MOST_PARTS, (size_t)(2 * others + hidden));
    memcpy(wide->input_part, wide->part + units, (size_t)hidden);
    return 0;
}

/* Make the network of a step, whose output is the layer's term before activation. A step of a norm
 * has a model only. */
static int create_step(struct sl_wide *wide, int l, int i, int j,
                       const struct sl_model_options *options, int order)
{
    struct sl_wide_step *step = sl_wide_step_of(wide, l, i, j);
    const struct sl_layer_shape shape = sl_wide_shape(wide, l, i, j);
    if (step->model.rt)
        return 0;
    int code = sl_model_open(&step->model, wide->pass->network.rt, options);
    if (!code)
        code = sl_model_add(&step->model, &shape);
    if (code || sl_wide_is_norm(&shape))
        return code;
    step->net = (struct sl_network){.rt = wide->pass->network.rt,
                                    .graph = &wide->layer[l].graph,
                                    .model = &step->model,
                                    .places = wide->places,
                                    .rates = wide->pass->network.rates,
                                    .unmeasured = true,
                                    .evaluates = true};
    return sl_network_create(&step->net, order, NULL);
}

/* Make the steps of a layer. Between two hidden layers, a block is aggregated once, before it is
 * multiplied for each block of the output. */
static int create_steps(struct sl_wide *wide, int l, const struct sl_model_options *options,
                        const struct sl_config *config)
{
    const bool between = l > 0 && !sl_wide_is_last_layer(wide, l);
    const int order = between ? SL_SPMM_FIRST : sl_config_product_order(config);
    int code = 0;
    for (int i = 0; i < sl_wide_blocks_before(wide, l); i++)
        for (int j = 0; !code && j < sl_wide_blocks_after(wide, l); j++)
            code = create_step(wide, l, i, j, options, order);
    return code;
}

static const struct sl_distribution *rows_after(const struct sl_wide *wide, int l)
{
    const struct sl_graph *graph = &wide->pass->graph;
    return &graph->distribution[sl_wide_step_of(wide, l, 0, 0)->net.layer[0].output.row_order];
}

/* Describe the blocks of a layer's input, in place 2 of the features. Batches read features into
 * places 0 and 1. */
static int create_input(struct sl_wide *wide, int l)
{
    enum { NUMBER = 2 };
    struct sl_wide_layer *layer = &wide->layer[l];
    layer->graph = wide->pass->graph;
    int code = 0;
    if (l == 0 || sl_wide_is_norm(&wide->list.layer[l]))
        return 0;
    const struct sl_distribution *rows = rows_after(wide, sl_wide_layer_before(&wide->list, l));
    for (int last = 0; !code && last < 2; last++) {
        struct sl_place *place = sl_places_find(wide->places, SL_PLACE_FEATURES, NUMBER);
        code = place ? sl_distribution_describe_rows(wide->pass->network.rt, rows,
                                                     &layer->input[last], wide->pass->graph.type,
                                                     sl_wide_columns(wide, last))
                     : SL_ERR_SYSTEM;
        if (!code)
            code = sl_place_add(place, &layer->input[last]);
    }
    layer->graph.input = (struct sl_input){
        .row_order = layer->input[0].row_order, .width = wide->width, .dense = layer->input[0]};
    layer->graph.scaled = sl_wide_shape(wide, l, 0, 0).kind->scaled_input;
    return code;
}

/* Return which sums a layer uses. Layers that multiply alternate between two slots in each vertex
 * order. */
static int slot_of(const struct sl_wide *wide, int l)
{
    int before = 0;
    for (int k = 0; k < l; k++)
        before += !sl_wide_is_norm(&wide->list.layer[k]);
    return before % 2 + 2 * rows_after(wide, l)->row_order;
}

/* Return the sums for block j of layer l's output. The layer before has its sums in another slot.
 */
static struct sl_matrix *sum_of(struct sl_wide *wide, int l, int j)
{
    if (!sl_wide_is_last_layer(wide, l))
        return &wide->sums[slot_of(wide, l)][j];
    return sl_wide_attends(&wide->list.layer[l]) || wide->hops.count > 0
               ? &wide->projected
               : &wide->pass->network.layer[l].output;
}

static int describe_sums(struct sl_wide *wide, int l)
{
    int code = 0;
    for (int j = 0;
         !code && !sl_wide_is_norm(&wide->list.layer[l]) && j < sl_wide_blocks_after(wide, l); j++)
        if (sl_wide_is_kept(wide, l) && !sum_of(wide, l, j)->tiles)
            code = sl_distribution_describe_cut(
                wide->pass->network.rt, rows_after(wide, l), sum_of(wide, l, j), SL_FLOAT32,
                sl_wide_step_of(wide, l, 0, j)->net.layer[0].product_cut);
    return code;
}

/* ---- Hops ---- */

static int add_layers(struct sl_wide *wide)
{
    const struct sl_layer_shape *hop = &wide->list.layer[wide->list.count];
    const struct sl_layer_shape first = {
        .kind = &sl_layer_linear, .reducer = hop->reducer, .in = hop->in, .out = hop->in};
    int code = sl_model_add(&wide->hops.model, &first);
    for (int h = 0; !code && h < wide->hops.count; h++)
        code = sl_model_add(&wide->hops.model, &hop[h]);
    return code;
}

/* Make a network of the hops alone. Its logits are copied to the wide network's. */
static int create_hops(struct sl_wide *wide, struct sl_model_options options, int order)
{
    struct sl_wide_hops *hops = &wide->hops;
    struct sl_network *whole = &wide->pass->network;
    const struct sl_distribution *rows = rows_after(wide, wide->list.count - 1);
    options.layers = 1 + hops->count;
    hops->graph = wide->pass->graph;
    int code = sl_distribution_describe_rows(whole->rt, rows, &hops->input, hops->graph.type,
                                             wide->list.layer[wide->list.count].in);
    if (!code)
        code = sl_matrix_allocate(whole->rt, &hops->input);
    if (!code)
        code = sl_model_open(&hops->model, whole->rt, &options);
    if (!code)
        code = add_layers(wide);
    if (code)
        return code;
    hops->graph.input = (struct sl_input){
        .row_order = hops->input.row_order, .width = hops->input.cols, .dense = hops->input};
    hops->graph.scaled = false;
    hops->net = (struct sl_network){.rt = whole->rt,
                                    .graph = &hops->graph,
                                    .model = &hops->model,
                                    .places = wide->places,
                                    .rates = whole->rates,
                                    .unmeasured = true,
                                    .evaluates = true};
    return sl_network_create(&hops->net, order, NULL);
}

static void set_identity(struct sl_runtime *rt, struct sl_model *model)
{
    struct sl_tile *weight = &model->layer[0].parameters;
    if (rt->plans)
        return;
    if (weight->owner == rt->rank) {
        float *w = sl_tile_acquire(rt, weight, true);
        for (int64_t r = 0; r < weight->rows; r++)
            for (int64_t c = 0; c < weight->cols; c++)
                w[r * weight->ld + c] = r == c ? 1.0f : 0.0f;
        sl_tile_release(weight);
    }
    sl_model_spread(model);
}

static void destroy_hops(struct sl_wide_hops *hops)
{
    if (hops->net.graph)
        sl_network_destroy(&hops->net);
    if (hops->model.rt)
        sl_model_destroy(&hops->model);
    sl_matrix_destroy(&hops->input);
}

/* ---- Memory of sums ---- */

/* Return sum `number` of the sums with memory of their own: blocks of two hidden layers, then the
 * last layer's. */
static struct sl_matrix *own_sum(const struct sl_wide *wide, int number)
{
    return number < SL_WIDE_SUMS * wide->blocks
               ? &wide->sums[number / wide->blocks][number % wide->blocks]
               : (struct sl_matrix *)&wide->projected;
}

static int own_sums(const struct sl_wide *wide)
{
    return wide->sums[SL_WIDE_SUMS - 1] ? SL_WIDE_SUMS * wide->blocks + 1 : 0;
}

/* Return the bytes of this rank's rows of all sums. */
static int64_t bytes_of_sums(const struct sl_wide *wide)
{
    enum { ALIGNMENT = 64 };
    int64_t bytes = 0;
    for (int n = 0; n < own_sums(wide); n++)
        if (own_sum(wide, n)->tiles)
            bytes +=
                (int64_t)sl_matrix_own_bytes(wide->pass->network.rt, own_sum(wide, n)) + ALIGNMENT;
    return bytes;
}

static int allocate_sums(struct sl_wide *wide, const char *store)
{
    struct sl_runtime *rt = wide->pass->network.rt;
    const int64_t bytes = bytes_of_sums(wide);
    int code = wide->stored && bytes > 0 && !rt->plans
                   ? sl_mapped_open(&wide->mapped, store, (size_t)bytes)
                   : 0;
    for (int n = 0; !code && n < own_sums(wide); n++) {
        struct sl_matrix *sum = own_sum(wide, n);
        if (sum->tiles && wide->stored)
            sl_matrix_lend(rt, sum,
                           rt->plans ? NULL
                                     : sl_mapped_take(&wide->mapped, sl_matrix_own_bytes(rt, sum)));
        else if (sum->tiles)
            code = sl_matrix_allocate(rt, sum);
    }
    return code;
}

static bool has_row_norm(const struct sl_wide *wide)
{
    bool has = false;
    for (int l = 0; l < wide->list.count; l++)
        has = has || wide->list.layer[l].kind == &sl_layer_row_norm;
    return has;
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
    wide->hops.count = sl_wide_cut_hops(&wide->list);
    options.layers = 1;
    options.keep_best = false;
    options.holds = SL_MODEL_HOLDS_ALL;
    options.states = 1;
    wide->width = sl_wide_width(&wide->list, pass->graph.vertices, pass->graph.type,
                                pass->graph.distribution->grid.columns);
    int code = sl_runtime_agree(rt, create_parts(wide));
    for (int l = 0; !code && l < wide->list.count; l++) {
        code = create_input(wide, l);
        if (!code)
            code = create_steps(wide, l, &options, config);
    }
    for (int l = 0; !code && l < wide->list.count; l++)
        code = describe_sums(wide, l);
    if (!code && wide->hops.count > 0)
        code = create_hops(wide, options, sl_config_product_order(config));
    if (!code && has_row_norm(wide))
        code = sl_norm_blocks_create(&pass->network, &wide->moments);
    code = sl_runtime_agree(rt, code);
    if (!code)
        code = allocate_sums(wide, config->store);
    if (!code && !places)
        code = sl_places_allocate(rt, wide->places);
    code = sl_runtime_agree(rt, code);
    if (!code && wide->hops.count > 0)
        set_identity(rt, &wide->hops.model);
    return code;
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
    destroy_hops(&wide->hops);
    for (int n = 0; n < own_sums(wide); n++)
        sl_matrix_destroy(own_sum(wide, n));
    for (int k = 0; k < SL_WIDE_SUMS; k++)
        free(wide->sums[k]);
    sl_norm_blocks_destroy(&wide->moments);
    sl_mapped_close(&wide->mapped);
    sl_places_free(&wide->own_places);
    free(wide->layer);
    free(wide->part);
    free(wide->list.layer);
    *wide = (struct sl_wide){0};
}

/* Return the bytes of a block of parameters that other ranks send. */
static int64_t travels(const struct sl_wide *wide, int l, int i, int j)
{
    const struct sl_tile *tile = &sl_wide_step_of(wide, l, i, j)->model.layer[0].parameters;
    const struct sl_unit_block block = sl_wide_block_of(wide, l, i, j);
    return sl_store_words(wide->store, l, &block, tile->cols, tile->owner) * (int64_t)sizeof(float);
}

/* Return how many times blocks of parameters are taken. Attention takes them a second time, with
 * the last block of its input. */
static int64_t times(const struct sl_wide *wide, int l, int i)
{
    return sl_wide_attends(&wide->list.layer[l]) && l > 0 && sl_wide_is_last_block(wide, i) ? 2 : 1;
}

int64_t sl_wide_travelling(const struct sl_wide *wide)
{
    int64_t all = 0, largest = 0;
    for (int l = 0; wide->pass && l < wide->list.count; l++)
        for (int i = 0; i < sl_wide_blocks_before(wide, l); i++)
            for (int j = 0; j < sl_wide_blocks_after(wide, l); j++) {
                const int64_t bytes = travels(wide, l, i, j);
                all += bytes * times(wide, l, i);
                largest = bytes > largest ? bytes : largest;
            }
    const int64_t limit = (int64_t)sl_wide_block_bytes + 2 * largest;
    return all < limit ? all : limit;
}

void sl_wide_plan(const struct sl_wide *wide, struct sl_plan *plan)
{
    for (int l = 0; wide->layer && l < wide->list.count; l++)
        for (int k = 0; k < 4; k++) {
            const struct sl_wide_step *step = &wide->layer[l].step[k / 2][k % 2];
            if (step->model.rt)
                sl_plan_add_model(&step->model, plan);
            if (step->net.graph)
                sl_plan_add_other(&step->net, plan);
        }
    if (!wide->pass)
        return;
    if (wide->hops.count > 0) {
        sl_plan_add_model(&wide->hops.model, plan);
        sl_plan_add_other(&wide->hops.net, plan);
        plan->bytes[SL_PLAN_ACTIVATIONS] +=
            (int64_t)sl_matrix_own_bytes(wide->pass->network.rt, &wide->hops.input);
    }
    plan->block_columns = wide->width;
    sl_plan_add_places(&wide->own_places, plan);
    plan->bytes[SL_PLAN_ROWS] += sl_norm_blocks_bytes(&wide->pass->network, &wide->moments);
    if (!wide->stored)
        plan->bytes[SL_PLAN_ACTIVATIONS] += bytes_of_sums(wide);
}

/* ---- Evaluate ---- */

/* Submit sum += term, or sum = term for the first term. */
static void add(struct sl_runtime *rt, bool first, const struct sl_matrix *term,
                const struct sl_matrix *sum)
{
    for (int t = 0; t < sum->tile_rows * sum->tile_cols; t++)
        if (first)
            sl_submit_copy(rt, &term->tiles[t], &sum->tiles[t]);
        else
            sl_submit_accumulate(rt, &term->tiles[t], &sum->tiles[t]);
}

/* Wait for earlier blocks if blocks on the way exceed the limit. They take memory until they are
 * used, also on their owner, which may be ahead. */
static void limit_blocks(struct sl_wide *wide, int l, int i, int j)
{
    struct sl_runtime *rt = wide->pass->network.rt;
    if (wide->travelling > (int64_t)sl_wide_block_bytes) {
        sl_runtime_wait(rt);
        sl_runtime_least(rt, 0);
        wide->travelling = 0;
    }
    wide->travelling += travels(wide, l, i, j);
}

/* Submit the copy of a block of parameters into its step. Biases come with the first term only.
 * Vectors of attention come with every term. */
static struct sl_tile *take(struct sl_wide *wide, int l, int i, int j)
{
    struct sl_model *model = &sl_wide_step_of(wide, l, i, j)->model;
    struct sl_tile *parameters = &model->layer[0].parameters;
    const struct sl_store_block block = {.layer = l,
                                         .kind = SL_STORE_PARAMETERS,
                                         .units = sl_wide_block_of(wide, l, i, j),
                                         .tile = parameters,
                                         .shared = i == 0 || sl_wide_attends(&wide->list.layer[l])};
    limit_blocks(wide, l, i, j);
    sl_store_load(wide->store, &block);
    sl_model_spread(model);
    return parameters;
}

/* Submit attention over the sums of block j of layer l, through an epilogue. */
static void attend(struct sl_wide *wide, int l, int j, struct sl_epilogue_tiles e,
                   const struct sl_matrix *sum, const struct sl_matrix *output)
{
    const int i = sl_wide_blocks_before(wide, l) - 1;
    struct sl_wide_step *step = sl_wide_step_of(wide, l, i, j);
    struct sl_layer *layer = &step->net.layer[0];
    struct sl_tile *parameters =
        sl_wide_is_kept(wide, l) ? take(wide, l, i, j) : &step->model.layer[0].parameters;
    e.parameters = layer->bias ? parameters : NULL;
    e.bias_row = sl_layer_bias_row(layer);
    sl_gat_attend(&step->net, layer, false, sum, &e, output);
}

/* Submit a block of layer l's output, made from its sums, into the input of layer `reader`. */
static void activate(struct sl_wide *wide, int l, int j, const struct sl_matrix *sum, int reader)
{
    struct sl_network *whole = &wide->pass->network;
    struct sl_wide_layer *after = &wide->layer[reader];
    const struct sl_layer_shape *shape = &wide->list.layer[l], *next = shape + 1;
    const struct sl_matrix *output = &after->input[sl_wide_is_last_block(wide, j)];
    const enum sl_activation activation =
        sl_wide_is_norm(next) ? next->activation : shape->activation;
    struct sl_epilogue_tiles e = SL_EPILOGUE_NONE;
    e.relu = activation == SL_ACTIVATION_RELU;
    e.elu = activation == SL_ACTIVATION_ELU;
    e.after = after->graph.scaled ? SL_ROW_RIGHT : SL_ROW_NONE;
    sl_place_take(whole->rt, output->place, output);
    if (sl_wide_is_norm(next))
        sl_norm_block(whole, next->kind->averages ? NULL : &wide->moments, take(wide, l + 1, 0, j),
                      &e, sum, output);
    else if (sl_wide_attends(shape))
        attend(wide, l, j, e, sum, output);
    else
        sl_network_finish(whole, &e, sum, output);
    after->graph.input.dense = *output;
}

static void multiply(struct sl_wide *wide, int l, int i);

/* Submit block j of layer l's output, whose sums are complete, and its terms in all layers that
 * read it. */
static void hand_on(struct sl_wide *wide, int l, int j, const struct sl_matrix *sum)
{
    for (int reader = l + 1; reader < wide->list.count; reader++)
        if (sl_wide_reads(&wide->list, reader, l)) {
            activate(wide, l, j, sum, reader);
            multiply(wide, reader, sl_wide_block_before(wide, reader, l, j));
        }
}

/* Submit the term of block i of layer l's input in block j of its output. Return the sum, or the
 * term itself where sums are not kept. */
static struct sl_matrix *add_term(struct sl_wide *wide, int l, int i, int j)
{
    struct sl_wide_step *step = sl_wide_step_of(wide, l, i, j);
    struct sl_layer *layer = &step->net.layer[0];
    struct sl_matrix *term = sl_wide_attends(&wide->list.layer[l]) ? sl_gat_projected(layer)
                                                                   : &layer->output,
                     *sum = sl_wide_is_kept(wide, l) ? sum_of(wide, l, j) : term;
    if (!sl_wide_attends(&wide->list.layer[l])) {
        sl_network_forward(&step->net, false);
        if (sum != term)
            add(step->net.rt, i == 0, term, sum);
        return sum;
    }
    if (sum == term)
        sl_network_take(&step->net, sum, 0);
    sl_gat_project(&step->net, layer, false, i > 0, sum);
    return sum;
}

/* Submit the terms of block i of layer l's input in all blocks of its output. Where sums are not
 * kept, each term is a whole sum and goes on to the next layers. */
static void multiply(struct sl_wide *wide, int l, int i)
{
    const struct sl_network *before = NULL;
    for (int j = 0; j < sl_wide_blocks_after(wide, l); j++) {
        struct sl_network *net = &sl_wide_step_of(wide, l, i, j)->net;
        take(wide, l, i, j);
        net->epoch = wide->pass->network.epoch;
        net->aggregated = l > 0 && before == net;
        const struct sl_matrix *sum = add_term(wide, l, i, j);
        before = net;
        if (!sl_wide_is_kept(wide, l))
            hand_on(wide, l, j, sum);
    }
    sl_runtime_wait_for_room(wide->pass->network.rt, SL_PENDING_TASKS);
}

/* Submit: sums of layer l += weight · sums of the layer `back` layers before. */
static void add_earlier(struct sl_wide *wide, int l)
{
    const struct sl_layer_shape *shape = &wide->list.layer[l];
    for (int j = 0; shape->back > 0 && j < wide->blocks; j++) {
        const struct sl_matrix *x = sum_of(wide, l - shape->back, j), *y = sum_of(wide, l, j);
        for (int t = 0; t < y->tile_rows * y->tile_cols; t++)
            sl_submit_add_scaled(wide->pass->network.rt,
                                 &(struct sl_add_scaled){.scale = shape->weight,
                                                         .factor = SL_ROW_NONE,
                                                         .x = &x->tiles[t],
                                                         .y = &y->tiles[t]});
    }
}

/* Submit the row moments of layer l's sums, if a norm of rows follows. */
static void take_moments(struct sl_wide *wide, int l)
{
    wide->moments.cols = 0;
    for (int j = 0; wide->list.layer[l + 1].kind == &sl_layer_row_norm && j < wide->blocks; j++)
        sl_norm_blocks_add(&wide->pass->network, &wide->moments, sum_of(wide, l, j));
}

/* Submit the hops from the sums of the last layer to the logits. */
static void hop(struct sl_wide *wide)
{
    struct sl_network *whole = &wide->pass->network, *net = &wide->hops.net;
    const struct sl_matrix *from = &net->layer[net->layers - 1].output,
                           *to = &whole->layer[whole->layers - 1].output;
    const struct sl_epilogue_tiles none = SL_EPILOGUE_NONE;
    sl_network_finish(whole, &none, &wide->projected, &wide->hops.input);
    net->epoch = whole->epoch;
    sl_network_forward(net, false);
    for (int t = 0; t < to->tile_rows * to->tile_cols; t++)
        sl_submit_copy(whole->rt, &from->tiles[t], &to->tiles[t]);
}

void sl_wide_evaluate(struct sl_wide *wide)
{
    struct sl_network *whole = &wide->pass->network;
    const int last = wide->list.count - 1;
    wide->travelling = 0;
    multiply(wide, 0, 0);
    for (int l = 0; l < last; l++) {
        if (sl_wide_is_norm(&wide->list.layer[l]) || !sl_wide_is_kept(wide, l))
            continue;
        add_earlier(wide, l);
        take_moments(wide, l);
        for (int j = 0; j < wide->blocks; j++)
            hand_on(wide, l, j, sum_of(wide, l, j));
    }
    if (sl_wide_attends(&wide->list.layer[last]))
        attend(wide, last, 0, SL_EPILOGUE_NONE, &wide->projected, &whole->layer[last].output);
    if (wide->hops.count > 0)
        hop(wide);
    sl_network_measure(whole);
}
