#include "submodels/blocked_evaluation.h"

#include <stdlib.h>
#include <string.h>

#include "codelets/accumulate.h"
#include "codelets/record.h"
#include "core/error.h"
#include "core/task.h"
#include "graphs/layer_gat.h"
#include "predict/plan.h"
#include "submodels/blocked_layers.h"
#include "submodels/rounds.h"

/* ---- Create ---- */

static int create_parts(struct sl_blocked *blocked)
{
    const struct sl_layer_shape *last = &blocked->list.layer[blocked->list.count - 1];
    const int64_t hidden = last->in, others = (sl_blocked_inputs(last) - 1) * hidden;
    blocked->blocks = (int)((hidden + blocked->width - 1) / blocked->width);
    const int64_t units = blocked->blocks * blocked->width;
    blocked->layer = calloc((size_t)blocked->list.count, sizeof *blocked->layer);
    blocked->part = malloc((size_t)(3 * units + 2 * others + hidden));
    bool there = blocked->layer && blocked->part;
    for (int k = 0; there && k < SL_WIDE_SUMS; k++) {
        blocked->sums[k] = calloc((size_t)blocked->blocks, sizeof *blocked->sums[k]);
        there = blocked->sums[k];
    }
    if (!there)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d blocks", blocked->blocks);
    for (int64_t u = 0; u < 3 * units; u++)
        blocked->part[u] = (uint8_t)(u / blocked->width - blocked->blocks);
    blocked->input_part = blocked->part + 3 * units + others;
    memset(blocked->input_part - others, SL_MOST_PARTS, (size_t)(2 * others + hidden));
    memcpy(blocked->input_part, blocked->part + units, (size_t)hidden);
    return 0;
}

/* Make the network of a step, whose output is the layer's term before activation. A step of a norm
 * has a model only. */
static int create_step(struct sl_blocked *blocked, int l, int i, int j,
                       const struct sl_model_options *options, int order)
{
    struct sl_blocked_step *step = sl_blocked_step_of(blocked, l, i, j);
    const struct sl_layer_shape shape = sl_blocked_shape(blocked, l, i, j);
    if (step->model.rt)
        return 0;
    int code = sl_model_open(&step->model, blocked->pass->network.rt, options);
    if (!code)
        code = sl_model_add(&step->model, &shape);
    if (code || sl_blocked_is_norm(&shape))
        return code;
    step->net = (struct sl_network){.rt = blocked->pass->network.rt,
                                    .graph = &blocked->layer[l].graph,
                                    .model = &step->model,
                                    .memory.places = blocked->places,
                                    .rates = blocked->pass->network.rates,
                                    .unmeasured = true,
                                    .evaluates = true};
    return sl_network_create(&step->net, order, NULL);
}

/* Make the steps of a layer. Between two hidden layers, a block is aggregated once, before it is
 * multiplied for each block of the output. */
static int create_steps(struct sl_blocked *blocked, int l, const struct sl_model_options *options,
                        const struct sl_config *config)
{
    const bool between = l > 0 && !sl_blocked_is_last_layer(blocked, l);
    const int order = between ? SL_SPMM_FIRST : sl_config_product_order(config);
    int code = 0;
    for (int i = 0; i < sl_blocked_blocks_before(blocked, l); i++)
        for (int j = 0; !code && j < sl_blocked_blocks_after(blocked, l); j++)
            code = create_step(blocked, l, i, j, options, order);
    return code;
}

static const struct sl_distribution *rows_after(const struct sl_blocked *blocked, int l)
{
    const struct sl_graph *graph = &blocked->pass->graph;
    return &graph
                ->distribution[sl_blocked_step_of(blocked, l, 0, 0)->net.layer[0].output.row_order];
}

/* Describe the blocks of a layer's input, in place 2 of the features. Batches read features into
 * places 0 and 1. */
static int create_input(struct sl_blocked *blocked, int l)
{
    enum { NUMBER = 2 };
    struct sl_blocked_layer *layer = &blocked->layer[l];
    layer->graph = blocked->pass->graph;
    int code = 0;
    if (l == 0 || sl_blocked_is_norm(&blocked->list.layer[l]))
        return 0;
    const struct sl_distribution *rows =
        rows_after(blocked, sl_blocked_layer_before(&blocked->list, l));
    for (int last = 0; !code && last < 2; last++) {
        struct sl_place *place = sl_places_find(blocked->places, SL_PLACE_FEATURES, NUMBER);
        code = place ? sl_distribution_describe_rows(blocked->pass->network.rt, rows,
                                                     &layer->input[last], blocked->pass->graph.type,
                                                     sl_blocked_columns(blocked, last))
                     : SL_ERR_SYSTEM;
        if (!code)
            code = sl_place_add(place, &layer->input[last]);
    }
    layer->graph.input = (struct sl_input){
        .row_order = layer->input[0].row_order, .width = blocked->width, .dense = layer->input[0]};
    layer->graph.scaled = sl_blocked_shape(blocked, l, 0, 0).kind->scaled_input;
    return code;
}

/* Return which sums a layer uses. Layers that multiply alternate between two slots in each vertex
 * order. */
static int slot_of(const struct sl_blocked *blocked, int l)
{
    int before = 0;
    for (int k = 0; k < l; k++)
        before += !sl_blocked_is_norm(&blocked->list.layer[k]);
    return before % 2 + 2 * rows_after(blocked, l)->row_order;
}

/* Return the sums for block j of layer l's output. The layer before has its sums in another slot.
 */
static struct sl_matrix *sum_of(struct sl_blocked *blocked, int l, int j)
{
    if (!sl_blocked_is_last_layer(blocked, l))
        return &blocked->sums[slot_of(blocked, l)][j];
    return sl_blocked_attends(&blocked->list.layer[l]) || blocked->hops.count > 0
               ? &blocked->projected
               : &blocked->pass->network.layer[l].output;
}

static int describe_sums(struct sl_blocked *blocked, int l)
{
    int code = 0;
    for (int j = 0; !code && !sl_blocked_is_norm(&blocked->list.layer[l]) &&
                    j < sl_blocked_blocks_after(blocked, l);
         j++)
        if (sl_blocked_is_kept(blocked, l) && !sum_of(blocked, l, j)->tiles)
            code = sl_distribution_describe_cut(
                blocked->pass->network.rt, rows_after(blocked, l), sum_of(blocked, l, j),
                SL_FLOAT32, sl_blocked_step_of(blocked, l, 0, j)->net.layer[0].columns.product_cut);
    return code;
}

/* ---- Hops ---- */

static int add_layers(struct sl_blocked *blocked)
{
    const struct sl_layer_shape *hop = &blocked->list.layer[blocked->list.count];
    const struct sl_layer_shape first = {
        .kind = &sl_layer_linear, .reducer = hop->reducer, .in = hop->in, .out = hop->in};
    int code = sl_model_add(&blocked->hops.model, &first);
    for (int h = 0; !code && h < blocked->hops.count; h++)
        code = sl_model_add(&blocked->hops.model, &hop[h]);
    return code;
}

/* Make a network of the hops alone. Its logits are copied to the wide network's. */
static int create_hops(struct sl_blocked *blocked, struct sl_model_options options, int order)
{
    struct sl_blocked_hops *hops = &blocked->hops;
    struct sl_network *whole = &blocked->pass->network;
    const struct sl_distribution *rows = rows_after(blocked, blocked->list.count - 1);
    options.layers = 1 + hops->count;
    hops->graph = blocked->pass->graph;
    int code = sl_distribution_describe_rows(whole->rt, rows, &hops->input, hops->graph.type,
                                             blocked->list.layer[blocked->list.count].in);
    if (!code)
        code = sl_matrix_allocate(whole->rt, &hops->input);
    if (!code)
        code = sl_model_open(&hops->model, whole->rt, &options);
    if (!code)
        code = add_layers(blocked);
    if (code)
        return code;
    hops->graph.input = (struct sl_input){
        .row_order = hops->input.row_order, .width = hops->input.cols, .dense = hops->input};
    hops->graph.scaled = false;
    hops->net = (struct sl_network){.rt = whole->rt,
                                    .graph = &hops->graph,
                                    .model = &hops->model,
                                    .memory.places = blocked->places,
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

static void destroy_hops(struct sl_blocked_hops *hops)
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
static struct sl_matrix *own_sum(const struct sl_blocked *blocked, int number)
{
    return number < SL_WIDE_SUMS * blocked->blocks
               ? &blocked->sums[number / blocked->blocks][number % blocked->blocks]
               : (struct sl_matrix *)&blocked->projected;
}

static int own_sums(const struct sl_blocked *blocked)
{
    return blocked->sums[SL_WIDE_SUMS - 1] ? SL_WIDE_SUMS * blocked->blocks + 1 : 0;
}

/* Return the bytes of this rank's rows of all sums. */
static int64_t bytes_of_sums(const struct sl_blocked *blocked)
{
    enum { ALIGNMENT = 64 };
    int64_t bytes = 0;
    for (int n = 0; n < own_sums(blocked); n++)
        if (own_sum(blocked, n)->tiles)
            bytes += (int64_t)sl_matrix_own_bytes(blocked->pass->network.rt, own_sum(blocked, n)) +
                     ALIGNMENT;
    return bytes;
}

static int allocate_sums(struct sl_blocked *blocked, const char *store)
{
    struct sl_runtime *rt = blocked->pass->network.rt;
    const int64_t bytes = bytes_of_sums(blocked);
    int code = blocked->stored && bytes > 0 && !rt->plans
                   ? sl_mapped_open(&blocked->mapped, store, (size_t)bytes)
                   : 0;
    for (int n = 0; !code && n < own_sums(blocked); n++) {
        struct sl_matrix *sum = own_sum(blocked, n);
        if (sum->tiles && blocked->stored)
            sl_matrix_lend(
                rt, sum,
                rt->plans ? NULL : sl_mapped_take(&blocked->mapped, sl_matrix_own_bytes(rt, sum)));
        else if (sum->tiles)
            code = sl_matrix_allocate(rt, sum);
    }
    return code;
}

static bool has_row_norm(const struct sl_blocked *blocked)
{
    bool has = false;
    for (int l = 0; l < blocked->list.count; l++)
        has = has || blocked->list.layer[l].kind == &sl_layer_row_norm;
    return has;
}

int sl_blocked_create(struct sl_blocked *blocked, struct sl_pass *pass, struct sl_store *store,
                      struct sl_places *places, const struct sl_model_shape *shape,
                      const struct sl_config *config)
{
    struct sl_model_options options = shape->options;
    struct sl_runtime *rt = pass->network.rt;
    *blocked = (struct sl_blocked){.pass = pass,
                                   .store = store,
                                   .stored = config->units.store,
                                   .own_places = {.shared = true}};
    blocked->places = places ? places : &blocked->own_places;
    sl_model_list(shape, &blocked->list);
    if (sl_runtime_agree(rt, blocked->list.failed
                                 ? sl_error(SL_ERR_SYSTEM, "no memory for a list of "
                                                           "layers")
                                 : 0))
        return SL_ERR_SYSTEM;
    blocked->hops.count = sl_blocked_cut_hops(&blocked->list);
    options.layers = 1;
    options.keep_best = false;
    options.holds = SL_MODEL_HOLDS_ALL;
    options.states = 1;
    blocked->width = sl_blocked_width(&blocked->list, pass->graph.vertices, pass->graph.type,
                                      pass->graph.distribution->grid.columns);
    int code = sl_runtime_agree(rt, create_parts(blocked));
    for (int l = 0; !code && l < blocked->list.count; l++) {
        code = create_input(blocked, l);
        if (!code)
            code = create_steps(blocked, l, &options, config);
    }
    for (int l = 0; !code && l < blocked->list.count; l++)
        code = describe_sums(blocked, l);
    if (!code && blocked->hops.count > 0)
        code = create_hops(blocked, options, sl_config_product_order(config));
    if (!code && has_row_norm(blocked))
        code = sl_norm_blocks_create(&pass->network, &blocked->moments);
    code = sl_runtime_agree(rt, code);
    if (!code)
        code = allocate_sums(blocked, config->units.store);
    if (!code && !places)
        code = sl_places_allocate(rt, blocked->places);
    code = sl_runtime_agree(rt, code);
    if (!code && blocked->hops.count > 0)
        set_identity(rt, &blocked->hops.model);
    return code;
}

static void destroy_layer(struct sl_blocked_layer *layer)
{
    for (int k = 0; k < 4; k++) {
        struct sl_blocked_step *step = &layer->step[k / 2][k % 2];
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

void sl_blocked_destroy(struct sl_blocked *blocked)
{
    for (int l = 0; blocked->layer && l < blocked->list.count; l++)
        destroy_layer(&blocked->layer[l]);
    destroy_hops(&blocked->hops);
    for (int n = 0; n < own_sums(blocked); n++)
        sl_matrix_destroy(own_sum(blocked, n));
    for (int k = 0; k < SL_WIDE_SUMS; k++)
        free(blocked->sums[k]);
    sl_norm_blocks_destroy(&blocked->moments);
    sl_mapped_close(&blocked->mapped);
    sl_places_free(&blocked->own_places);
    free(blocked->layer);
    free(blocked->part);
    free(blocked->list.layer);
    *blocked = (struct sl_blocked){0};
}

/* Return the bytes of a block of parameters that other ranks send. */
static int64_t travels(const struct sl_blocked *blocked, int l, int i, int j)
{
    const struct sl_tile *tile = &sl_blocked_step_of(blocked, l, i, j)->model.layer[0].parameters;
    const struct sl_unit_block block = sl_blocked_block_of(blocked, l, i, j);
    return sl_store_words(blocked->store, l, &block, tile->cols, tile->owner) *
           (int64_t)sizeof(float);
}

/* Return how many times blocks of parameters are taken. Attention takes them a second time, with
 * the last block of its input. */
static int64_t times(const struct sl_blocked *blocked, int l, int i)
{
    return sl_blocked_attends(&blocked->list.layer[l]) && l > 0 &&
                   sl_blocked_is_last_block(blocked, i)
               ? 2
               : 1;
}

int64_t sl_blocked_travelling(const struct sl_blocked *blocked)
{
    int64_t all = 0, largest = 0;
    for (int l = 0; blocked->pass && l < blocked->list.count; l++)
        for (int i = 0; i < sl_blocked_blocks_before(blocked, l); i++)
            for (int j = 0; j < sl_blocked_blocks_after(blocked, l); j++) {
                const int64_t bytes = travels(blocked, l, i, j);
                all += bytes * times(blocked, l, i);
                largest = bytes > largest ? bytes : largest;
            }
    const int64_t limit = (int64_t)sl_blocked_block_bytes + 2 * largest;
    return all < limit ? all : limit;
}

void sl_blocked_plan(const struct sl_blocked *blocked, struct sl_plan *plan)
{
    for (int l = 0; blocked->layer && l < blocked->list.count; l++)
        for (int k = 0; k < 4; k++) {
            const struct sl_blocked_step *step = &blocked->layer[l].step[k / 2][k % 2];
            if (step->model.rt)
                sl_plan_add_model(&step->model, plan);
            if (step->net.graph)
                sl_plan_add_other(&step->net, plan);
        }
    if (!blocked->pass)
        return;
    if (blocked->hops.count > 0) {
        sl_plan_add_model(&blocked->hops.model, plan);
        sl_plan_add_other(&blocked->hops.net, plan);
        plan->bytes[SL_PLAN_ACTIVATIONS] +=
            (int64_t)sl_matrix_own_bytes(blocked->pass->network.rt, &blocked->hops.input);
    }
    plan->block_columns = blocked->width;
    sl_plan_add_places(&blocked->own_places, plan);
    plan->bytes[SL_PLAN_ROWS] += sl_norm_blocks_bytes(&blocked->pass->network, &blocked->moments);
    if (!blocked->stored)
        plan->bytes[SL_PLAN_ACTIVATIONS] += bytes_of_sums(blocked);
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
static void limit_blocks(struct sl_blocked *blocked, int l, int i, int j)
{
    struct sl_runtime *rt = blocked->pass->network.rt;
    if (blocked->travelling > (int64_t)sl_blocked_block_bytes) {
        sl_runtime_wait(rt);
        sl_runtime_least(rt, 0);
        blocked->travelling = 0;
    }
    blocked->travelling += travels(blocked, l, i, j);
}

/* Submit the copy of a block of parameters into its step. Biases come with the first term only.
 * Vectors of attention come with every term. */
static struct sl_tile *take(struct sl_blocked *blocked, int l, int i, int j)
{
    struct sl_model *model = &sl_blocked_step_of(blocked, l, i, j)->model;
    struct sl_tile *parameters = &model->layer[0].parameters;
    const struct sl_store_block block = {.layer = l,
                                         .kind = SL_STORE_PARAMETERS,
                                         .units = sl_blocked_block_of(blocked, l, i, j),
                                         .tile = parameters,
                                         .shared =
                                             i == 0 || sl_blocked_attends(&blocked->list.layer[l])};
    limit_blocks(blocked, l, i, j);
    sl_store_load(blocked->store, &block);
    sl_model_spread(model);
    return parameters;
}

/* Submit attention over the sums of block j of layer l, through an epilogue. */
static void attend(struct sl_blocked *blocked, int l, int j, struct sl_epilogue_tiles e,
                   const struct sl_matrix *sum, const struct sl_matrix *output)
{
    const int i = sl_blocked_blocks_before(blocked, l) - 1;
    struct sl_blocked_step *step = sl_blocked_step_of(blocked, l, i, j);
    struct sl_layer *layer = &step->net.layer[0];
    struct sl_tile *parameters =
        sl_blocked_is_kept(blocked, l) ? take(blocked, l, i, j) : &step->model.layer[0].parameters;
    e.parameters = layer->bias ? parameters : NULL;
    e.bias_row = sl_layer_bias_row(layer);
    sl_gat_attend(&step->net, layer, false, sum, &e, output);
}

/* Submit a block of layer l's output, made from its sums, into the input of layer `reader`. */
static void activate(struct sl_blocked *blocked, int l, int j, const struct sl_matrix *sum,
                     int reader)
{
    struct sl_network *whole = &blocked->pass->network;
    struct sl_blocked_layer *after = &blocked->layer[reader];
    const struct sl_layer_shape *shape = &blocked->list.layer[l], *next = shape + 1;
    const struct sl_matrix *output = &after->input[sl_blocked_is_last_block(blocked, j)];
    const enum sl_activation activation =
        sl_blocked_is_norm(next) ? next->activation : shape->activation;
    struct sl_epilogue_tiles e = SL_EPILOGUE_NONE;
    e.relu = activation == SL_ACTIVATION_RELU;
    e.elu = activation == SL_ACTIVATION_ELU;
    e.after = after->graph.scaled ? SL_ROW_RIGHT : SL_ROW_NONE;
    sl_place_take(whole->rt, output->place, output);
    if (sl_blocked_is_norm(next))
        sl_norm_block(whole, next->kind->vectors.averages ? NULL : &blocked->moments,
                      take(blocked, l + 1, 0, j), &e, sum, output);
    else if (sl_blocked_attends(shape))
        attend(blocked, l, j, e, sum, output);
    else
        sl_network_finish(whole, &e, NULL, sum, output);
    after->graph.input.dense = *output;
}

static void multiply(struct sl_blocked *blocked, int l, int i);

/* Submit block j of layer l's output, whose sums are complete, and its terms in all layers that
 * read it. */
static void hand_on(struct sl_blocked *blocked, int l, int j, const struct sl_matrix *sum)
{
    for (int reader = l + 1; reader < blocked->list.count; reader++)
        if (sl_blocked_reads(&blocked->list, reader, l)) {
            activate(blocked, l, j, sum, reader);
            multiply(blocked, reader, sl_blocked_block_before(blocked, reader, l, j));
        }
}

/* Submit the term of block i of layer l's input in block j of its output. Return the sum, or the
 * term itself where sums are not kept. */
static struct sl_matrix *add_term(struct sl_blocked *blocked, int l, int i, int j)
{
    struct sl_blocked_step *step = sl_blocked_step_of(blocked, l, i, j);
    struct sl_layer *layer = &step->net.layer[0];
    struct sl_matrix *term = sl_blocked_attends(&blocked->list.layer[l]) ? sl_gat_projected(layer)
                                                                         : &layer->output,
                     *sum = sl_blocked_is_kept(blocked, l) ? sum_of(blocked, l, j) : term;
    if (!sl_blocked_attends(&blocked->list.layer[l])) {
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
static void multiply(struct sl_blocked *blocked, int l, int i)
{
    const struct sl_network *before = NULL;
    for (int j = 0; j < sl_blocked_blocks_after(blocked, l); j++) {
        struct sl_network *net = &sl_blocked_step_of(blocked, l, i, j)->net;
        take(blocked, l, i, j);
        net->step.epoch = blocked->pass->network.step.epoch;
        net->aggregated = l > 0 && before == net;
        const struct sl_matrix *sum = add_term(blocked, l, i, j);
        before = net;
        if (!sl_blocked_is_kept(blocked, l))
            hand_on(blocked, l, j, sum);
    }
    sl_runtime_wait_for_room(blocked->pass->network.rt, SL_PENDING_TASKS);
}

/* Submit: sums of layer l += weight · sums of the layer `back` layers before. */
static void add_earlier(struct sl_blocked *blocked, int l)
{
    const struct sl_layer_shape *shape = &blocked->list.layer[l];
    for (int j = 0; shape->back > 0 && j < blocked->blocks; j++) {
        const struct sl_matrix *x = sum_of(blocked, l - shape->back, j), *y = sum_of(blocked, l, j);
        for (int t = 0; t < y->tile_rows * y->tile_cols; t++)
            sl_submit_add_scaled(blocked->pass->network.rt,
                                 &(struct sl_add_scaled){.scale = shape->weight,
                                                         .factor = SL_ROW_NONE,
                                                         .x = &x->tiles[t],
                                                         .y = &y->tiles[t]});
    }
}

/* Submit the row moments of layer l's sums, if a norm of rows follows. */
static void take_moments(struct sl_blocked *blocked, int l)
{
    blocked->moments.cols = 0;
    for (int j = 0; blocked->list.layer[l + 1].kind == &sl_layer_row_norm && j < blocked->blocks;
         j++)
        sl_norm_blocks_add(&blocked->pass->network, &blocked->moments, sum_of(blocked, l, j));
}

/* Submit the hops from the sums of the last layer to the logits. */
static void hop(struct sl_blocked *blocked)
{
    struct sl_network *whole = &blocked->pass->network, *net = &blocked->hops.net;
    const struct sl_matrix *from = &net->layer[net->layers - 1].output,
                           *to = &whole->layer[whole->layers - 1].output;
    const struct sl_epilogue_tiles none = SL_EPILOGUE_NONE;
    sl_network_finish(whole, &none, NULL, &blocked->projected, &blocked->hops.input);
    net->step.epoch = whole->step.epoch;
    sl_network_forward(net, false);
    for (int t = 0; t < to->tile_rows * to->tile_cols; t++)
        sl_submit_copy(whole->rt, &from->tiles[t], &to->tiles[t]);
}

void sl_blocked_evaluate(struct sl_blocked *blocked)
{
    struct sl_network *whole = &blocked->pass->network;
    const int last = blocked->list.count - 1;
    blocked->travelling = 0;
    multiply(blocked, 0, 0);
    for (int l = 0; l < last; l++) {
        if (sl_blocked_is_norm(&blocked->list.layer[l]) || !sl_blocked_is_kept(blocked, l))
            continue;
        add_earlier(blocked, l);
        take_moments(blocked, l);
        for (int j = 0; j < blocked->blocks; j++)
            hand_on(blocked, l, j, sum_of(blocked, l, j));
    }
    if (sl_blocked_attends(&blocked->list.layer[last]))
        attend(blocked, last, 0, SL_EPILOGUE_NONE, &blocked->projected, &whole->layer[last].output);
    if (blocked->hops.count > 0)
        hop(blocked);
    sl_network_measure(whole);
}
