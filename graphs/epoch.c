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
 *              the metric of labels, if one is asked for (graphs/evaluation.c) */
/* clang-format on */
#include "codelets/accumulate.h"
#include "codelets/clip.h"
#include "codelets/optimizer.h"
#include "codelets/record.h"
#include "core/error.h"
#include "core/message.h"
#include "core/split.h"
#include "graphs/collective.h"
#include "graphs/columns.h"
#include "graphs/evaluation.h"
#include "graphs/product.h"

void sl_network_forward(struct sl_network *net, bool training)
{
    for (int l = 0; l < net->layers; l++) {
        sl_network_use(net, &net->layer[l].output);
        net->layer[l].kind->forward(net, &net->layer[l], training);
    }
}

static void update(struct sl_network *net, struct sl_layer *layer,
                   const struct sl_optimizer_step *step)
{
    struct sl_optimizer_step with_decay = *step;
    with_decay.decay = layer->model->shape.decay;
    sl_submit_optimizer(net->rt, &with_decay,
                        &(struct sl_optimizer_tiles){.epoch = (int)net->epoch,
                                                     .layer = layer->index + 1,
                                                     .end = &net->model->end[0],
                                                     .metrics = sl_network_total(net),
                                                     .g = layer->summed,
                                                     .m = &layer->model->state[0],
                                                     .v = &layer->model->state[1],
                                                     .w = &layer->model->parameters});
    sl_broadcast(net->rt, &layer->model->parameters, 0, net->rt->ranks);
}

struct sl_tile *sl_network_total(struct sl_network *net)
{
    return net->total.rows ? &net->total : &net->metrics[0];
}

/* The last layer's gradient is the first that is there. */
static void clip_gradients(struct sl_network *net)
{
    for (int l = net->layers - 1; l >= 0; l--)
        sl_submit_square_sum(net->rt, l < net->layers - 1, 0, net->layer[l].summed,
                             &net->model->norm);
    for (int l = net->layers - 1; l >= 0; l--)
        sl_submit_clip(net->rt, net->model->options.clip_norm, 0, &net->model->norm,
                       net->layer[l].summed);
}

static void sum_metrics(struct sl_network *net)
{
    sl_reduce(net->rt, net->metrics, net->graph->distribution->tiles, 1, sl_submit_metrics_add);
    if (net->total.rows)
        sl_tile_send_into(net->rt, &net->metrics[0], &net->total);
}

static struct sl_loss_tiles loss_tiles(struct sl_network *net, const struct sl_matrix *logits,
                                       int order, int i)
{
    return (struct sl_loss_tiles){.facts = &net->graph->facts[order][i],
                                  .target = &net->graph->target[order][i],
                                  .weights = net->graph->weights,
                                  .metrics = &net->metrics[i],
                                  .z = sl_matrix_tile(logits, i, 0)};
}

/* The logits with whole rows, which the loss needs. */
static const struct sl_matrix *whole_rows(struct sl_network *net, const struct sl_matrix *output)
{
    if (output->tile_cols == 1)
        return output;
    sl_columns_join(net->rt, net->graph->distribution, output, &net->logits);
    return &net->logits;
}

void sl_network_train(struct sl_network *net, const struct sl_optimizer_step *step)
{
    struct sl_layer *last = &net->layer[net->layers - 1];
    if (sl_optimizer_states(step->method) > net->model->options.states)
        sl_fatal("a model of %d numbers of optimizer state for each parameter is too small",
                 net->model->options.states);
    net->aggregations = 0;
    sl_network_forward(net, true);
    struct sl_matrix *g = &last->output;
    const struct sl_matrix *logits = whole_rows(net, g);
    const struct sl_loss_options options = {net->graph->train_count,
                                            net->graph->objective.smoothing};
    for (int i = 0; i < net->graph->distribution->tiles; i++) {
        const struct sl_loss_tiles tiles = loss_tiles(net, logits, g->row_order, i);
        net->graph->objective.loss->differentiate(net->rt, &options, last->gradient_factor, &tiles);
    }
    if (logits != g)
        sl_columns_cut(net->rt, net->graph->distribution, logits, g, sl_network_tags(net));
    sum_metrics(net);
    for (int l = net->layers - 1; l >= 0; l--) {
        struct sl_layer *layer = &net->layer[l];
        g = layer->kind->backward(net, layer, g);
        layer->summed = sl_product_sum_gradients(net, layer);
        if (layer->kind->differentiate)
            layer->summed = layer->kind->differentiate(net, layer, layer->summed);
        if (net->model->options.clip_norm == 0.0)
            update(net, layer, step);
    }
    if (net->model->options.clip_norm > 0.0) {
        clip_gradients(net);
        for (int l = net->layers - 1; l >= 0; l--)
            update(net, &net->layer[l], step);
    }
    net->aggregations = -1;
    net->steps++;
}

void sl_network_evaluate(struct sl_network *net)
{
    sl_network_forward(net, false);
    const struct sl_matrix *logits = whole_rows(net, &net->layer[net->layers - 1].output);
    for (int i = 0; i < net->graph->distribution->tiles; i++) {
        const struct sl_loss_tiles tiles = loss_tiles(net, logits, logits->row_order, i);
        net->graph->objective.loss->count(net->rt, &tiles);
    }
    sum_metrics(net);
    sl_evaluation_submit(net, logits);
}

void sl_network_record(struct sl_network *net, sl_record_function *record, void *context)
{
    struct sl_tile *total = sl_network_total(net), *parameters = &net->layer[0].model->parameters;
    /* After the optimizer, which reads `end`: weights need not come from a GPU for that. */
    sl_submit_record(net->rt, record, context, (int)net->epoch, total, NULL, &net->model->end[0]);
    sl_broadcast(net->rt, total, 0, net->rt->ranks);
    if (net->rt->rank > 0)
        sl_submit_record(net->rt, record, context, (int)net->epoch, total, parameters,
                         &net->model->end[net->rt->rank]);
}

void sl_network_keep_best(struct sl_network *net, int patience)
{
    const struct sl_metric *metric = net->graph->objective.metric;
    sl_submit_keep_best(net->rt, metric->index + SL_SPLIT_VAL, metric->falls, (int)net->epoch,
                        patience, sl_network_total(net), &net->model->best, &net->model->end[0]);
    for (int l = 0; l < net->layers; l++)
        sl_submit_copy_if_best(net->rt, (int)net->epoch, &net->model->best,
                               &net->layer[l].model->parameters, &net->layer[l].model->best);
}
