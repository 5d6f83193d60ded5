#include "submodels/ensemble.h"

#include <limits.h>
#include <stdlib.h>

#include "codelets/mean_probabilities.h"
#include "codelets/record.h"
#include "core/error.h"
#include "graphs/collective.h"
#include "predict/plan.h"
#include "submodels/submodel_tiles.h"

/* ---- Create ---- */

/* Return the first member whose layers have the widths of member `member`. */
static int first_like(const struct sl_ensemble *e, int member)
{
    int first = 0;
    while (!sl_rounds_alike(&e->members->rounds, first, member))
        first++;
    return first;
}

static int create_network(struct sl_ensemble *e, int member, struct sl_places *places,
                          const struct sl_model_options *options, const struct sl_config *config)
{
    const struct sl_submodels *s = e->members;
    struct sl_model *model = &e->model[member];
    struct sl_network *net = &e->net[member];
    int code = sl_model_open(model, e->pass->network.rt, options);
    for (int l = 0; !code && l < s->list.count; l++) {
        struct sl_layer_shape shape = s->list.layer[l];
        shape.in = sl_rounds_width(&s->rounds, s->axes.in[l], member);
        shape.out = sl_rounds_width(&s->rounds, s->axes.out[l], member);
        code = sl_model_add(model, &shape);
    }
    *net = (struct sl_network){.rt = e->pass->network.rt,
                               .graph = &e->pass->graph,
                               .model = model,
                               .memory.places = places,
                               .rates = e->pass->network.rates,
                               .evaluates = true};
    return code ? code : sl_network_create(net, sl_config_product_order(config), NULL);
}

static int create_best(struct sl_ensemble *e, int member)
{
    const struct sl_network *whole = &e->pass->network;
    const struct sl_matrix *logits = &whole->layer[whole->layers - 1].output;
    struct sl_ensemble_best *best = &e->best[member];
    int code = sl_tile_create(whole->rt, &best->value, 1, 2, sizeof(double), 0);
    if (!code)
        code =
            sl_distribution_describe_rows(whole->rt, &whole->graph->distribution[logits->row_order],
                                          &best->logits, SL_FLOAT32, logits->cols);
    return code ? code : sl_matrix_allocate(whole->rt, &best->logits);
}

/* Softmax needs all classes of a vertex in one tile. */
int sl_ensemble_check(const struct sl_network *whole)
{
    if (whole->graph->objective.loss != &sl_loss_softmax)
        return sl_error(SL_ERR_USAGE, "--share none: the loss is %s (expected cross-entropy)",
                        whole->graph->objective.loss->name);
    if (whole->layer[whole->layers - 1].output.tile_cols > 1)
        return sl_error(SL_ERR_USAGE, "--share none: expected a distribution without columns of "
                                      "ranks");
    return 0;
}

int sl_ensemble_create(struct sl_ensemble *e, struct sl_pass *pass, struct sl_places *places,
                       struct sl_submodels *members, const struct sl_config *config)
{
    struct sl_model_options options = pass->network.model->options;
    const int count = members->count;
    *e = (struct sl_ensemble){.pass = pass,
                              .members = members,
                              .model = calloc((size_t)count, sizeof *e->model),
                              .net = calloc((size_t)count, sizeof *e->net),
                              .best = calloc((size_t)count, sizeof *e->best)};
    options.keep_best = false;
    options.holds = SL_MODEL_HOLDS_ALL;
    options.states = 1;
    int code = e->model && e->net && e->best
                   ? 0
                   : sl_error(SL_ERR_SYSTEM, "no memory for %d members", count);
    code = sl_runtime_agree(pass->network.rt, code);
    sl_rounds_draw(&members->rounds, 0);
    for (int m = 0; !code && m < count; m++)
        if (first_like(e, m) == m)
            code = create_network(e, m, places, &options, config);
    for (int m = 0; !code && m < count; m++)
        code = create_best(e, m);
    return code;
}

static bool has_network(const struct sl_ensemble *e, int member)
{
    return e->net && e->model && e->net[member].graph;
}

void sl_ensemble_destroy(struct sl_ensemble *e)
{
    for (int m = 0; e->pass && m < e->members->count; m++) {
        if (has_network(e, m))
            sl_network_destroy(&e->net[m]);
        if (has_network(e, m))
            sl_model_destroy(&e->model[m]);
    }
    for (int m = 0; e->best && m < e->members->count; m++) {
        sl_tile_destroy(&e->best[m].value);
        sl_matrix_destroy(&e->best[m].logits);
    }
    free(e->best);
    free(e->model);
    free(e->net);
    *e = (struct sl_ensemble){0};
}

void sl_ensemble_plan(const struct sl_ensemble *e, struct sl_plan *plan)
{
    for (int m = 0; e->pass && m < e->members->count; m++) {
        if (!has_network(e, m))
            continue;
        sl_plan_add_model(&e->model[m], plan);
        sl_plan_add_other(&e->net[m], plan);
        if (!e->net[m].memory.places->shared)
            sl_plan_add_places(e->net[m].memory.places, plan);
    }
    for (int m = 0; e->pass && m < e->members->count; m++)
        plan->bytes[SL_PLAN_ACTIVATIONS] +=
            (int64_t)sl_matrix_own_bytes(e->pass->network.rt, &e->best[m].logits);
}

/* ---- Evaluate ---- */

/* Submit the copy of a member's parameters into `part`. Each member has its own copy of the
 * parameters that no axis splits. */
static void take(struct sl_ensemble *e, int member, struct sl_model *part)
{
    for (int l = 0; l < part->layers; l++) {
        const struct sl_store_block block = {.layer = l,
                                             .kind = SL_STORE_PARAMETERS,
                                             .units = sl_submodel_block(e->members, 0, member, l),
                                             .tile = &part->layer[l].parameters,
                                             .kept = sl_submodel_kept(e->members, member, 0)};
        if (sl_model_learns(&part->layer[l]))
            sl_store_load(e->members->store, &block);
    }
    sl_model_spread(part);
}

static void copy_if_best(struct sl_runtime *rt, int epoch, struct sl_ensemble_best *best,
                         const struct sl_matrix *logits)
{
    for (int t = 0; t < logits->tile_rows * logits->tile_cols; t++)
        sl_submit_copy_if_best(rt, epoch, &best->value, &logits->tiles[t], &best->logits.tiles[t]);
}

static void keep(struct sl_ensemble *e, int member, struct sl_network *net)
{
    struct sl_ensemble_best *best = &e->best[member];
    struct sl_network *whole = &e->pass->network;
    const struct sl_metric *metric = whole->graph->objective.metric;
    const int epoch = (int)net->step.epoch;
    sl_network_measure(net);
    sl_submit_keep_best(net->rt, metric->index + SL_SPLIT_VAL, metric->falls, epoch, INT_MAX,
                        sl_network_total(net), &best->value, &whole->model->end[0]);
    sl_broadcast(net->rt, &best->value, 0, net->rt->ranks);
    copy_if_best(net->rt, epoch, best, &net->layer[net->layers - 1].output);
}

static void add_probabilities(struct sl_ensemble *e, int before, const struct sl_matrix *from)
{
    struct sl_network *whole = &e->pass->network;
    const struct sl_matrix *to = &whole->layer[whole->layers - 1].output;
    for (int t = 0; t < to->tile_rows * to->tile_cols; t++)
        sl_submit_mean_probabilities(whole->rt, before, &from->tiles[t], &to->tiles[t]);
}

void sl_ensemble_evaluate(struct sl_ensemble *e)
{
    struct sl_network *whole = &e->pass->network;
    for (int m = 0; m < e->members->count; m++) {
        struct sl_network *net = &e->net[first_like(e, m)];
        take(e, m, net->model);
        net->step.epoch = whole->step.epoch;
        sl_network_forward(net, false);
        if (net->step.epoch > 0)
            keep(e, m, net);
        add_probabilities(e, m, &net->layer[net->layers - 1].output);
    }
    sl_network_measure(whole);
}

void sl_ensemble_best_epochs(struct sl_ensemble *e, int64_t *epoch)
{
    struct sl_runtime *rt = e->pass->network.rt;
    for (int m = 0; m < e->members->count; m++) {
        if (rt->rank == 0) {
            const double *value = sl_tile_acquire(rt, &e->best[m].value, false);
            epoch[m] = (int64_t)value[1];
            sl_tile_release(&e->best[m].value);
        }
        sl_runtime_broadcast(rt, 0, &epoch[m], sizeof epoch[m]);
    }
}

void sl_ensemble_evaluate_best(struct sl_ensemble *e, int member)
{
    const int first = member < 0 ? 0 : member, last = member < 0 ? e->members->count - 1 : member;
    for (int m = first; m <= last; m++)
        add_probabilities(e, m - first, &e->best[m].logits);
    sl_network_measure(&e->pass->network);
}
