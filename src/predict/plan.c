#include "predict/plan.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/free_memory.h"
#include "core/tile.h"
#include "graphs/links.h"
#include "graphs/product.h"

const char *const sl_plan_names[SL_PLAN_KINDS] = {
    "adjacency", "features", "activations", "work", "received", "parameters", "gradients", "rows",
};

/* ---- What tiles take ---- */

static int64_t own_bytes(const struct sl_runtime *rt, const struct sl_tile *tile)
{
    return tile->owner == rt->rank ? sl_tile_bytes(tile) : 0;
}

/* Memory that is lent counts where it is kept. */
static int64_t matrix_bytes(const struct sl_runtime *rt, const struct sl_matrix *matrix)
{
    int64_t bytes = 0;
    for (int t = 0; matrix->tiles && !matrix->lent && t < matrix->tile_rows * matrix->tile_cols;
         t++)
        bytes += own_bytes(rt, &matrix->tiles[t]);
    return bytes;
}

static void add_own(const struct sl_runtime *rt, const struct sl_layer *layer, struct sl_plan *plan)
{
    const struct sl_layer_memory own = layer->kind->memory(layer);
    for (size_t m = 0; m < sizeof own.matrix / sizeof *own.matrix; m++)
        if (own.matrix[m])
            plan->bytes[SL_PLAN_ACTIVATIONS] += matrix_bytes(rt, own.matrix[m]);
    for (size_t t = 0; t < sizeof own.tile / sizeof *own.tile; t++)
        if (own.tile[t])
            plan->bytes[SL_PLAN_PARAMETERS] += own_bytes(rt, own.tile[t]);
    for (int t = 0; t < own.tiles; t++)
        plan->bytes[SL_PLAN_ROWS] += own_bytes(rt, &own.of_rows[t]);
    plan->bytes[SL_PLAN_RECEIVED] += own.received;
}

static void add_layer(const struct sl_network *net, const struct sl_layer *layer,
                      struct sl_plan *plan)
{
    const struct sl_runtime *rt = net->rt;
    if (net->logits_only && !layer->last)
        return;
    plan->bytes[SL_PLAN_ACTIVATIONS] += matrix_bytes(rt, &layer->output) +
                                        matrix_bytes(rt, &layer->aggregated) +
                                        matrix_bytes(rt, &layer->argmax);
    plan->bytes[SL_PLAN_FEATURES] += matrix_bytes(rt, &layer->dropped);
    for (const struct sl_layer *of = layer; of; of = of->beside) {
        if (!net->evaluates)
            plan->bytes[SL_PLAN_GRADIENTS] +=
                matrix_bytes(rt, &of->back.gradients) + sl_product_gradient_bytes(net, of);
        plan->bytes[SL_PLAN_PARAMETERS] += own_bytes(rt, &of->back.gradient);
    }
    if (net->groups)
        plan->bytes[SL_PLAN_GRADIENTS] += sl_group_sums_bytes(net->groups, &layer->back.group_sums);
    if (layer->kind->memory)
        add_own(rt, layer, plan);
}

/* All ranks have the parameters. */
void sl_plan_add_model(const struct sl_model *model, struct sl_plan *plan)
{
    if (model->options.holds == SL_MODEL_HOLDS_NOTHING)
        return;
    for (int l = 0; l < model->layers; l++) {
        const struct sl_model_layer *layer = &model->layer[l];
        plan->bytes[SL_PLAN_PARAMETERS] +=
            sl_tile_bytes(&layer->parameters) + own_bytes(model->rt, &layer->best);
        for (int s = 0; s < model->options.states; s++)
            plan->bytes[SL_PLAN_PARAMETERS] += own_bytes(model->rt, &layer->state[s]);
        plan->bytes[SL_PLAN_PARAMETERS] += own_bytes(model->rt, &layer->counts);
    }
}

static bool are_cut_alike(const struct sl_matrix *a, const struct sl_matrix *b)
{
    return a->tile_cols == b->tile_cols &&
           memcmp(a->col_cut, b->col_cut, ((size_t)a->tile_cols + 1) * sizeof *a->col_cut) == 0;
}

static int64_t copies_bytes(const struct sl_network *net)
{
    int64_t bytes = net->copies ? sl_copies_list_bytes(net->copies) : 0;
    for (int l = 0; l < net->layers; l++) {
        const struct sl_matrix *output = &net->layer[l].output;
        bool again = false;
        for (int k = 0; k < l; k++)
            again = again ||
                    (net->layer[k].rows.refreshed && are_cut_alike(&net->layer[k].output, output));
        if (net->copies && net->layer[l].rows.refreshed)
            bytes += sl_copies_bytes(net->copies, output, again);
    }
    return bytes;
}

/* ... also of another rank, whose tiles this one keeps, or has in turns. */
static int64_t kept_bytes(const struct sl_network *net, const struct sl_tile *tile)
{
    const struct sl_distribution *d = net->graph->distribution;
    return d->kind->keeps(d, net->rt->rank, tile->owner) ? sl_tile_bytes(tile) : 0;
}

static int64_t adjacency_bytes(const struct sl_network *net, const struct sl_sparse_matrix *a)
{
    const struct sl_distribution *d = net->graph->distribution;
    int64_t kept = 0;
    for (int64_t t = 0; a->tiles && t < (int64_t)a->tile_rows * a->tile_cols; t++)
        kept += a->tiles[t].shape.nnz ? kept_bytes(net, &a->tiles[t].tile) : 0;
    const int64_t own = (int64_t)a->slab_bytes;
    return (int64_t)a->apart_bytes + own + (kept - own) / sl_distribution_visits(net->rt, d);
}

void sl_plan_add_places(const struct sl_places *places, struct sl_plan *plan)
{
    plan->bytes[SL_PLAN_WORK] += (int64_t)sl_places_bytes(places, SL_PLACE_SLOT);
    for (int use = SL_PLACE_SLOT + 1; use < SL_PLACE_USES; use++)
        plan->bytes[use == SL_PLACE_GRADIENTS  ? SL_PLAN_GRADIENTS
                    : use == SL_PLACE_FEATURES ? SL_PLAN_FEATURES
                                               : SL_PLAN_ACTIVATIONS] +=
            (int64_t)sl_places_bytes(places, (enum sl_place_use)use);
}

void sl_plan_add_up(struct sl_plan *plan)
{
    int64_t all = 0;
    for (int k = 0; k < SL_PLAN_KINDS; k++)
        all += plan->bytes[k];
    plan->total = all > plan->total ? all : plan->total;
}

/* All but the model and places. */
static void add_pass(const struct sl_network *net, struct sl_plan *plan)
{
    for (int l = 0; l < net->layers; l++)
        add_layer(net, &net->layer[l], plan);
    plan->bytes[SL_PLAN_WORK] += sl_network_temporary_bytes(net);
    for (int i = 0; i < net->graph->distribution->tiles; i++) {
        plan->bytes[SL_PLAN_ROWS] += own_bytes(net->rt, &net->metrics[i]);
        for (int o = 0; o < net->graph->row_orders; o++)
            plan->bytes[SL_PLAN_ROWS] += kept_bytes(net, &net->graph->scales[o][i]) +
                                         own_bytes(net->rt, &net->graph->target[o][i]);
    }
    plan->bytes[SL_PLAN_ROWS] += sl_evaluation_bytes(net);
    if (net->graph->links) {
        plan->bytes[SL_PLAN_ROWS] += sl_links_bytes(net);
        plan->bytes[SL_PLAN_RECEIVED] += sl_links_received_bytes(net);
    }
    plan->bytes[SL_PLAN_WORK] += matrix_bytes(net->rt, &net->logits);
    const struct sl_distribution *d = net->graph->distribution;
    plan->passing = sl_product_received_bytes(net, net->rt, d);
    plan->bytes[SL_PLAN_RECEIVED] += plan->passing + copies_bytes(net);
    for (int o = 0; o < net->graph->row_orders; o++)
        for (const struct sl_sums *sums = d[o].partials->first; sums; sums = sums->next)
            plan->bytes[SL_PLAN_RECEIVED] += matrix_bytes(net->rt, &sums->matrix);
}

void sl_plan_add_network(const struct sl_network *net, struct sl_plan *plan)
{
    add_pass(net, plan);
    sl_plan_add_model(net->model, plan);
    if (!net->memory.places->shared) /* the plan of batches has shared ones */
        sl_plan_add_places(net->memory.places, plan);
}

/* Until training starts, dense X and ÂX are both in memory in float32, beside received tiles of X.
 * Before, X was in memory with whole rows and cut into columns. Columns travelled then, and the
 * pages at both ends of their way are kept. */
void sl_plan_start(struct sl_plan *plan, const struct sl_runtime *rt,
                   const struct sl_distribution *d, int64_t own, int64_t width)
{
    const int64_t row = sl_leading(width / d->grid.columns, SL_FLOAT32) * 4;
    const int64_t cutting = own * 2 * (d->grid.columns - 1) / d->grid.columns;
    const int64_t partials = own * (d->grid.depth - 1);
    const struct sl_passage none = {0}, only = {.row = row, .matrices = 1, .state = row};
    const int64_t aggregating = d->kind->received_bytes(rt, d, &only, &none) + partials;
    const int64_t start = plan->bytes[SL_PLAN_ADJACENCY] + plan->bytes[SL_PLAN_ROWS] + 2 * own +
                          cutting + aggregating;
    plan->total = start > plan->total ? start : plan->total;
}

static void add_operands(const struct sl_operands *o, const struct sl_network *net,
                         struct sl_plan *plan)
{
    for (int order = 0; order < o->row_orders; order++)
        plan->bytes[SL_PLAN_ADJACENCY] += adjacency_bytes(net, &o->adjacency[order]) +
                                          adjacency_bytes(net, &o->transposed[order]);
    plan->bytes[SL_PLAN_FEATURES] +=
        (int64_t)o->input.csr.slab_bytes + matrix_bytes(net->rt, &o->input.dense) +
        (int64_t)o->own.csr.slab_bytes + matrix_bytes(net->rt, &o->own.dense);
    plan->bytes[SL_PLAN_ROWS] += sl_stored_rows_bytes(&o->stored);
}

static void add_start(const struct sl_operands *o, const struct sl_network *net,
                      struct sl_plan *plan)
{
    if (o->input.aggregated && o->input.dense.tiles && !o->read_aggregated)
        sl_plan_start(plan, net->rt, net->graph->distribution,
                      matrix_bytes(net->rt, &o->input.dense) * 4 /
                          (int64_t)sl_type_size(o->input.dense.type),
                      o->input.dense.cols);
}

struct sl_plan sl_plan_of(const struct sl_operands *o, const struct sl_network *net)
{
    struct sl_plan plan = {.total = 0};
    add_operands(o, net, &plan);
    sl_plan_add_network(net, &plan);
    sl_plan_add_up(&plan);
    add_start(o, net, &plan);
    return plan;
}

/* A layer has an output, what it keeps, and parts of its gradients, in each row tile. */
static int64_t count_handles(const struct sl_network *net)
{
    enum { EACH = 4 };
    const struct sl_distribution *d = net->graph->distribution;
    int64_t tiles = 0;
    for (int i = 0; i < d->tiles; i++)
        tiles += sl_distribution_whole_owner(d, i, 0) == net->rt->rank;
    return EACH * tiles * (net->layers + 1);
}

void sl_plan_add_turn(const struct sl_operands *o, const struct sl_network *net,
                      struct sl_plan *plan)
{
    struct sl_plan one = {.total = 0};
    int64_t before = 0;
    add_operands(o, net, &one);
    add_pass(net, &one);
    add_start(o, net, &one);
    plan->handles += count_handles(net);
    for (int k = 0; k < SL_PLAN_KINDS; k++) {
        before += plan->bytes[k];
        plan->bytes[k] += one.bytes[k];
    }
    const int64_t start = before + one.total;
    plan->total = start > plan->total ? start : plan->total;
    plan->bytes[SL_PLAN_RECEIVED] -= one.passing < plan->passing ? one.passing : plan->passing;
    plan->passing = one.passing > plan->passing ? one.passing : plan->passing;
}

void sl_plan_add_other(const struct sl_network *net, struct sl_plan *plan)
{
    for (int l = 0; l < net->layers; l++)
        add_layer(net, &net->layer[l], plan);
}

struct sl_plan sl_plan_largest(struct sl_runtime *rt, const struct sl_plan *plan)
{
    struct sl_plan most = {.total = -sl_runtime_least(rt, -plan->total),
                           .handles = -sl_runtime_least(rt, -plan->handles),
                           .block_columns = plan->block_columns};
    for (int k = 0; k < SL_PLAN_KINDS; k++)
        most.bytes[k] = -sl_runtime_least(rt, -plan->bytes[k]);
    return most;
}

/* ---- What there is ---- */

/* Address space that tasks, messages and malloc's arenas of threads take beside the plan. */
static const int64_t UNPLANNED = 48 << 20;

/* The least of all ranks'. Those of a machine share all but what ulimit bounds, in equal parts. */
struct sl_space sl_space_find(struct sl_runtime *rt)
{
    int64_t left[SL_MEMORY_BOUNDS];
    sl_free_memory("", left);
    if (left[SL_MEMORY_OF_PROCESS] < INT64_MAX)
        left[SL_MEMORY_OF_PROCESS] =
            left[SL_MEMORY_OF_PROCESS] > UNPLANNED ? left[SL_MEMORY_OF_PROCESS] - UNPLANNED : 0;
    left[SL_MEMORY_OF_MACHINE] /= rt->process->ranks_here;
    left[SL_MEMORY_OF_CGROUP] /= rt->process->ranks_here;
    enum sl_memory_bound bound = SL_MEMORY_OF_MACHINE;
    for (enum sl_memory_bound b = bound; b < SL_MEMORY_BOUNDS; b++)
        if (left[b] < left[bound])
            bound = b;
    const int64_t least = sl_runtime_least(rt, left[bound]);
    const int64_t whose = left[bound] == least ? (int64_t)bound : SL_MEMORY_BOUNDS;
    return (struct sl_space){least, (enum sl_memory_bound)sl_runtime_least(rt, whose)};
}
