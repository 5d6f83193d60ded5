/* clang-format off */
/* The task graph of an epoch. Nothing here waits: a call submits and returns, and the next epoch can be
 * submitted while this one runs.
 *
 *   train      for l up: forward(l)
 *              loss → metrics, G;  metrics = Σ over row tiles
 *              for l down: backward(l);  dW = Σ over row tiles;  W = optimizer(W, dW) on rank 0;
 *                          W → all ranks
 *              with a limit of the gradient's norm, all dW first, then all W
 *   evaluate   for l up: forward(l) without dropout;  counts → metrics;  metrics = Σ over row tiles;
 *              the metric of labels, if the objective has one (graphs/evaluation.c) */
/* clang-format on */
#include "codelets/accumulate.h"
#include "codelets/clip.h"
#include "codelets/optimizer.h"
#include "codelets/record.h"
#include "codelets/units.h"
#include "core/error.h"
#include "core/message.h"
#include "core/split.h"
#include "graphs/collective.h"
#include "graphs/columns.h"
#include "graphs/evaluation.h"
#include "graphs/layer.h"
#include "graphs/layer_jump.h"
#include "graphs/links.h"
#include "graphs/product.h"
#include "graphs/reach.h"

/* ---- Forward ---- */

/* Return whether rows of an output are stored times R, because the next layer needs them so. */
static bool is_scaled(const struct sl_layer *layer)
{
    return !layer->last && (layer + 1)->kind->scaled_input;
}

/* Submit output += weight · the output of an earlier layer. */
static void add_earlier(struct sl_network *net, struct sl_layer *layer)
{
    const struct sl_matrix *y = &layer->output;
    const bool from = is_scaled(layer->residual.earlier), to = is_scaled(layer);
    for (int t = 0; t < y->tile_rows * y->tile_cols; t++)
        sl_submit_add_scaled(net->rt, &(struct sl_add_scaled){
                                          .scale = layer->residual.weight,
                                          .scales = &net->graph->scales[0][t / y->tile_cols],
                                          .factor = from == to ? SL_ROW_NONE
                                                    : from     ? SL_ROW_INVERSE_RIGHT
                                                               : SL_ROW_RIGHT,
                                          .x = &layer->residual.earlier->output.tiles[t],
                                          .y = &y->tiles[t],
                                      });
}

/* Submit the rest of a layer whose input is added: output = epilogue(output + H). */
static void add_input(struct sl_network *net, struct sl_layer *layer, bool training)
{
    const struct sl_matrix *y = &layer->output;
    const struct sl_epilogue_tiles finish = sl_layer_finish(net, layer, training);
    sl_layer_add_rows(net, layer, &(layer - 1)->output, y);
    sl_network_finish(net, &finish, NULL, y, y);
}

static struct sl_copies_step step_of(const struct sl_network *net, const struct sl_layer *layer)
{
    return (struct sl_copies_step){layer->rows.refreshing, net->step.steps, net->step.exact};
}

static void compute(struct sl_network *net, struct sl_layer *layer, bool training)
{
    sl_network_take(net, &layer->output, layer->rows.hops);
    layer->kind->forward(net, layer, training);
    if (layer->residual.identity)
        add_input(net, layer, training);
    if (layer->residual.earlier)
        add_earlier(net, layer);
    if (!layer->rows.refreshed)
        return;
    const struct sl_copies_step step = step_of(net, layer);
    sl_reach_set(net, &layer->output, layer->rows.read);
    sl_copies_refresh(net->copies, &step, &layer->output);
}

void sl_network_forward(struct sl_network *net, bool training)
{
    for (int l = 0; l < net->layers; l++) {
        net->layer[l].rows.aggregation = net->step.aggregations;
        compute(net, &net->layer[l], training);
    }
}

/* Make an output again if its place holds another one. Its aggregations keep their numbers. */
static void need(struct sl_network *net, struct sl_layer *layer)
{
    const struct sl_place *place = layer->output.place;
    const struct sl_place *dropped = net->layer->dropped.place;
    if (!place || place == dropped || place->apart || place->current == &layer->output)
        return;
    if (layer->residual.earlier)
        need(net, net->layer + layer->residual.earlier->index);
    if (layer->index > 0)
        need(net, layer - 1);
    const int aggregations = net->step.aggregations;
    net->step.aggregations = layer->rows.aggregation;
    net->step.again = true;
    compute(net, layer, true);
    net->step.again = false;
    net->step.aggregations = aggregations;
}

/* ---- Backward ---- */

/* Return the scale that turns rows of the gradient of one layer's pre-activation into rows for
 * another layer. */
static enum sl_row_scale factor_between(const struct sl_layer *from, const struct sl_layer *to)
{
    return from->back.gradient_factor == to->back.gradient_factor ? SL_ROW_NONE
           : from->back.gradient_factor == SL_ROW_LEFT            ? SL_ROW_INVERSE_LEFT
                                                                  : SL_ROW_LEFT;
}

/* Submit G += weight · gradients of the outputs to which the layer's output is added. G is the
 * gradient of the layer's output. */
static void add_later(struct sl_network *net, struct sl_layer *layer, struct sl_matrix *g)
{
    for (struct sl_layer *later = layer + 1; later < net->layer + net->layers; later++)
        for (int t = 0; later->residual.earlier == layer && t < g->tile_rows * g->tile_cols; t++)
            sl_submit_add_scaled(net->rt, &(struct sl_add_scaled){
                                              .scale = later->residual.weight,
                                              .scales = &net->graph->scales[0][t / g->tile_cols],
                                              .factor = factor_between(later, layer),
                                              .x = &later->back.g->tiles[t],
                                              .y = &g->tiles[t],
                                          });
}

void sl_network_broadcast(const struct sl_network *net, struct sl_tile *tile)
{
    if (net->groups)
        sl_groups_broadcast(net->groups, tile);
    else
        sl_broadcast(net->rt, tile, 0, net->rt->ranks);
}

/* Take the place of the parts of the gradients, which other networks may share. */
static void take_gradients(struct sl_network *net, struct sl_layer *layer)
{
    for (struct sl_layer *of = layer; of; of = of->beside) {
        if (!of->back.gradients.place)
            continue;
        sl_place_take(net->rt, of->back.gradients.place, &of->back.gradients);
        sl_reach_gradients(net, of);
    }
}

static struct sl_matrix *go_back(struct sl_network *net, struct sl_layer *layer,
                                 struct sl_matrix *g)
{
    if (layer->residual.earlier)
        need(net, net->layer + layer->residual.earlier->index);
    if (layer->index > 0)
        need(net, layer - 1);
    const struct sl_place *place = layer->output.place;
    if (g == &layer->output && place && !place->apart && place->current != g)
        sl_fatal("an output took the place of the gradient of layer %d", layer->index + 1);
    layer->back.g = g;
    take_gradients(net, layer);
    struct sl_matrix *before = layer->kind->backward(net, layer, g);
    if (sl_jump_reads(net, layer->index - 1))
        before = sl_jump_back(net, layer, before);
    else if (layer->residual.identity)
        before = sl_layer_finish_sums(net, layer, before);
    if (layer->index > 0)
        add_later(net, layer - 1, before);
    if (layer->index > 0 && (layer - 1)->rows.refreshed) {
        const struct sl_copies_step step = step_of(net, layer - 1);
        sl_copies_return(net->copies, &step, before);
        sl_reach_set(net, before, (layer - 1)->rows.hops);
    }
    return before;
}

static void sum_gradients(struct sl_network *net, struct sl_layer *layer)
{
    layer->back.summed = NULL;
    if (!sl_model_learns(layer->model))
        return;
    layer->back.summed =
        layer->kind->sum ? layer->kind->sum(net, layer) : sl_product_sum_gradients(net, layer);
    if (layer->kind->differentiate)
        layer->back.summed = layer->kind->differentiate(net, layer, layer->back.summed);
    if (net->groups && !layer->kind->sum)
        layer->back.summed = sl_groups_sum(net->groups, &layer->back.group_sums, layer->back.summed,
                                           sl_submit_accumulate);
    if (layer->back.summed && layer->model->block.all_rows)
        sl_submit_clear_others(net->model->rt, &layer->model->block, layer->back.summed);
}

/* ---- Parameters ---- */

static double now_of(const struct sl_network *net)
{
    return (double)net->step.epoch - net->step.left;
}

static void update(struct sl_network *net, struct sl_layer *layer,
                   const struct sl_optimizer_step *step)
{
    struct sl_optimizer_step with_decay = *step;
    struct sl_tile *counts = &layer->model->counts;
    if (!layer->back.summed)
        return;
    with_decay.decay = layer->model->shape.decay;
    sl_submit_optimizer(net->model->rt, &with_decay,
                        &(struct sl_optimizer_tiles){.now = now_of(net),
                                                     .layer = layer->index + 1,
                                                     .averages = layer->kind->vectors.averages,
                                                     .end = &net->model->end[0],
                                                     .metrics = sl_network_total(net),
                                                     .counts = counts->rows ? counts : NULL,
                                                     .g = layer->back.summed,
                                                     .m = &layer->model->state[0],
                                                     .v = &layer->model->state[1],
                                                     .w = &layer->model->parameters});
    sl_network_broadcast(net, &layer->model->parameters);
}

struct sl_tile *sl_network_total(struct sl_network *net)
{
    if (net->groups)
        return &net->group_metrics.of[0];
    return net->total.rows ? &net->total : &net->metrics[0];
}

/* Clip all gradients, last layer first: its gradient is made first. */
static void clip_gradients(struct sl_network *net)
{
    bool add = false;
    for (int l = net->layers - 1; l >= 0; l--) {
        struct sl_layer *layer = &net->layer[l];
        if (layer->back.summed)
            sl_submit_square_sum(net->model->rt, add, layer->kind->vectors.averages,
                                 layer->back.summed, &net->model->norm);
        add = add || layer->back.summed;
    }
    for (int l = net->layers - 1; l >= 0; l--) {
        struct sl_layer *layer = &net->layer[l];
        if (layer->back.summed)
            sl_submit_clip(net->model->rt, net->model->options.clip_norm,
                           layer->kind->vectors.averages, &net->model->norm, layer->back.summed);
    }
}

static void sum_metrics(struct sl_network *net)
{
    sl_reduce(net->rt, net->metrics, net->graph->distribution->tiles, 1, sl_submit_metrics_add);
    if (net->total.rows)
        sl_tile_send_into(net->rt, &net->metrics[0], &net->total);
    if (net->groups)
        sl_groups_sum(net->groups, &net->group_metrics,
                      net->total.rows ? &net->total : &net->metrics[0], sl_submit_metrics_add);
}

static struct sl_loss_tiles loss_tiles(struct sl_network *net, const struct sl_matrix *logits,
                                       int order, int i)
{
    return (struct sl_loss_tiles){.scales = &net->graph->scales[order][i],
                                  .target = &net->graph->target[order][i],
                                  .own = net->graph->objective.loss->own,
                                  .weights = net->graph->weights,
                                  .metrics = &net->metrics[i],
                                  .z = sl_matrix_tile(logits, i, 0)};
}

/* Return the logits with whole rows, as the loss needs them. */
static const struct sl_matrix *whole_rows(struct sl_network *net, const struct sl_matrix *output)
{
    if (output->tile_cols == 1)
        return output;
    sl_reach_copy(net, output, &net->logits);
    sl_columns_join(net->rt, net->graph->distribution, output, &net->logits);
    return &net->logits;
}

/* Sum the gradients, and update, of each layer whose furthest input is layer l. They are complete
 * once layer l has gone back. */
static void finish_gradients(struct sl_network *net, int l, const struct sl_optimizer_step *step)
{
    for (int k = l; k < net->layers; k++) {
        struct sl_layer *layer = &net->layer[k];
        if (k - sl_layer_shape_reach(&layer->model->shape) + 1 != l)
            continue;
        sum_gradients(net, layer);
        if (net->model->options.clip_norm == 0.0)
            update(net, layer, step);
    }
}

void sl_network_train(struct sl_network *net, const struct sl_optimizer_step *step)
{
    struct sl_layer *last = &net->layer[net->layers - 1];
    if (sl_optimizer_states(step->method) > net->model->options.states)
        sl_fatal("a model of %d numbers of optimizer state for each parameter is too small",
                 net->model->options.states);
    net->step.aggregations = 0;
    sl_network_forward(net, true);
    struct sl_matrix *g = &last->output;
    const struct sl_matrix *logits = whole_rows(net, g);
    const struct sl_loss_options options = {net->graph->train_count,
                                            net->graph->objective.smoothing};
    if (net->graph->links)
        sl_links_train(net, logits, last->back.gradient_factor);
    for (int i = 0; !net->graph->links && i < net->graph->distribution->tiles; i++) {
        const struct sl_loss_tiles tiles = loss_tiles(net, logits, g->row_order, i);
        net->graph->objective.loss->differentiate(net->rt, &options, last->back.gradient_factor,
                                                  &tiles);
    }
    if (logits != g)
        sl_columns_cut(net->rt, net->graph->distribution, logits, g, sl_network_tags(net));
    sum_metrics(net);
    for (int l = net->layers - 1; l >= 0; l--) {
        g = go_back(net, &net->layer[l], g);
        finish_gradients(net, l, step);
    }
    if (net->model->options.clip_norm > 0.0) {
        clip_gradients(net);
        for (int l = net->layers - 1; l >= 0; l--)
            update(net, &net->layer[l], step);
    }
    net->step.aggregations = -1;
    net->step.steps++;
    net->step.late_steps += !net->step.exact;
}

void sl_network_evaluate(struct sl_network *net)
{
    sl_network_forward(net, false);
    sl_network_measure(net);
}

void sl_network_measure(struct sl_network *net)
{
    const struct sl_matrix *logits = whole_rows(net, &net->layer[net->layers - 1].output);
    if (net->graph->links) {
        sl_links_measure(net, logits);
        return;
    }
    for (int i = 0; i < net->graph->distribution->tiles; i++) {
        const struct sl_loss_tiles tiles = loss_tiles(net, logits, logits->row_order, i);
        net->graph->objective.loss->count(net->rt, &tiles);
    }
    sum_metrics(net);
    sl_evaluation_submit(net, logits);
}

const struct sl_matrix *sl_network_logits(struct sl_network *net)
{
    const struct sl_matrix *output = &net->layer[net->layers - 1].output;
    return output->tile_cols == 1 ? output : &net->logits;
}

void sl_network_record(struct sl_network *net, sl_record_function *record, void *context)
{
    struct sl_tile *total = sl_network_total(net);
    struct sl_tile *parameters = net->model->options.holds == SL_MODEL_HOLDS_NOTHING
                                     ? NULL
                                     : &net->layer[0].model->parameters;
    /* The record follows the optimizer, which reads `end`, so weights need not leave a GPU. */
    sl_submit_record(net->model->rt, record, context, now_of(net), total, NULL,
                     &net->model->end[0]);
    sl_network_broadcast(net, total);
    if (net->model->rt->rank > 0)
        sl_submit_record(net->model->rt, record, context, now_of(net), total, parameters,
                         &net->model->end[net->model->rt->rank]);
}

void sl_network_keep_best(struct sl_network *net, int patience)
{
    const struct sl_metric *metric = net->graph->objective.metric;
    sl_submit_keep_best(net->model->rt, metric->index + SL_SPLIT_VAL, metric->falls,
                        (int)net->step.epoch, patience, sl_network_total(net), &net->model->best,
                        &net->model->end[0]);
}
