#include "train/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/free_memory.h"
#include "core/tile.h"
#include "graphs/product.h"

const char *const sl_plan_names[SL_PLAN_KINDS] = {
    "adjacency", "features", "activations", "work", "received", "parameters", "gradients", "rows",
};

/* ---- What tiles take ---- */

static int64_t own_bytes(const struct sl_runtime *rt, const struct sl_tile *tile)
{
    return tile->owner == rt->rank ? sl_tile_bytes(tile) : 0;
}

static int64_t matrix_bytes(const struct sl_runtime *rt, const struct sl_matrix *matrix)
{
    int64_t bytes = 0;
    for (int t = 0; matrix->tiles && t < matrix->tile_rows * matrix->tile_cols; t++)
        bytes += own_bytes(rt, &matrix->tiles[t]);
    return bytes;
}

static void add_layer(const struct sl_network *net, const struct sl_layer *layer,
                      struct sl_plan *plan)
{
    const struct sl_runtime *rt = net->rt;
    const struct sl_tile *own[] = {&layer->moment1, &layer->moment2, &layer->best,
                                   &layer->gradient};
    plan->bytes[SL_PLAN_ACTIVATIONS] += matrix_bytes(rt, &layer->output) +
                                        matrix_bytes(rt, &layer->aggregated) +
                                        matrix_bytes(rt, &layer->chosen);
    plan->bytes[SL_PLAN_FEATURES] += matrix_bytes(rt, &layer->dropped);
    plan->bytes[SL_PLAN_GRADIENTS] +=
        matrix_bytes(rt, &layer->gradients) + sl_product_gradient_bytes(net, layer);
    plan->bytes[SL_PLAN_PARAMETERS] += sl_tile_bytes(&layer->parameters); /* all ranks have them */
    for (int t = 0; t < 4; t++)
        plan->bytes[SL_PLAN_PARAMETERS] += own_bytes(rt, own[t]);
}

/* ... also of another rank, whose tiles this one keeps, or has in turns. */
static int64_t kept_bytes(const struct sl_network *net, const struct sl_tile *tile)
{
    const struct sl_distribution *d = net->distribution;
    return d->kind->keeps(d, net->rt->rank, tile->owner) ? sl_tile_bytes(tile) : 0;
}

static int64_t adjacency_bytes(const struct sl_network *net, const struct sl_sparse_matrix *a)
{
    const struct sl_distribution *d = net->distribution;
    int64_t kept = 0;
    for (int64_t t = 0; a->tiles && t < (int64_t)a->tile_rows * a->tile_cols; t++)
        kept += a->tiles[t].shape.nnz ? kept_bytes(net, &a->tiles[t].tile) : 0;
    const int64_t own = (int64_t)a->slab_bytes;
    return own + (kept - own) / (d->drops_adjacency ? d->kind->visits(net->rt, d) : 1);
}

void sl_plan_add_network(const struct sl_network *net, struct sl_plan *plan)
{
    for (int l = 0; l < net->layers; l++)
        add_layer(net, &net->layer[l], plan);
    for (int s = 0; s < net->scratch_count; s++)
        plan->bytes[SL_PLAN_WORK] += matrix_bytes(net->rt, &net->scratch[s]->matrix);
    for (int i = 0; i < net->distribution->tiles; i++) {
        plan->bytes[SL_PLAN_ROWS] += own_bytes(net->rt, &net->metrics[i]);
        for (int o = 0; o < net->row_orders; o++)
            plan->bytes[SL_PLAN_ROWS] +=
                kept_bytes(net, &net->facts[o][i]) + own_bytes(net->rt, &net->target[o][i]);
    }
    plan->bytes[SL_PLAN_WORK] += matrix_bytes(net->rt, &net->logits);
    const struct sl_distribution *d = net->distribution;
    plan->bytes[SL_PLAN_RECEIVED] = sl_product_received_bytes(net, net->rt, d);
    for (int o = 0; o < net->row_orders; o++)
        for (const struct sl_sums *sums = d[o].partials->first; sums; sums = sums->next)
            plan->bytes[SL_PLAN_RECEIVED] += matrix_bytes(net->rt, &sums->matrix);
}

/* X and ÂX, dense, are both there in float32 until training starts, and tiles of X that travel; and
 * before, X with whole rows and cut, and columns on both ends of their way, whose pages are kept.
 */
void sl_plan_start(struct sl_plan *plan, const struct sl_runtime *rt,
                   const struct sl_distribution *d, int64_t own, int64_t width)
{
    const int64_t row = sl_padded(width / d->grid.columns) * 4;
    const int64_t cutting = own * 2 * (d->grid.columns - 1) / d->grid.columns;
    const int64_t partials = own * (d->grid.layers - 1);
    const struct sl_passage none = {0}, only = {.row = row, .matrices = 1, .state = row};
    const int64_t aggregating = d->kind->received_bytes(rt, d, &only, &none) + partials;
    const int64_t start = plan->bytes[SL_PLAN_ADJACENCY] + plan->bytes[SL_PLAN_ROWS] + 2 * own +
                          cutting + aggregating;
    plan->total = start > plan->total ? start : plan->total;
}

struct sl_plan sl_plan_of(const struct sl_trainer *trainer)
{
    const struct sl_operands *o = &trainer->operands;
    struct sl_plan plan = {.total = 0};
    const struct sl_network *net = &trainer->network;
    for (int order = 0; order < o->row_orders; order++)
        plan.bytes[SL_PLAN_ADJACENCY] += adjacency_bytes(net, &o->adjacency[order]) +
                                         adjacency_bytes(net, &o->transposed[order]);
    plan.bytes[SL_PLAN_FEATURES] =
        (int64_t)o->input.csr.slab_bytes + matrix_bytes(trainer->rt, &o->input.dense) +
        (int64_t)o->own.csr.slab_bytes + matrix_bytes(trainer->rt, &o->own.dense);
    sl_plan_add_network(&trainer->network, &plan);
    for (int k = 0; k < SL_PLAN_KINDS; k++)
        plan.total += plan.bytes[k];
    if (o->input.aggregated && o->input.dense.tiles)
        sl_plan_start(&plan, trainer->rt, net->distribution,
                      matrix_bytes(trainer->rt, &o->input.dense) * 4 /
                          (int64_t)sl_type_size(o->input.dense.type),
                      o->input.dense.cols);
    return plan;
}

int sl_plan_make(struct sl_runtime *rt, const struct sl_source *source,
                 const struct sl_config *config, struct sl_plan *plan)
{
    struct sl_trainer trainer;
    rt->plans = true;
    const int code = sl_trainer_create(&trainer, rt, source, config, NULL);
    if (!code)
        *plan = sl_plan_of(&trainer);
    sl_trainer_destroy(&trainer);
    rt->plans = false;
    return code;
}

struct sl_plan sl_plan_largest(struct sl_runtime *rt, const struct sl_plan *plan)
{
    struct sl_plan most = {.total = -sl_runtime_least(rt, -plan->total)};
    for (int k = 0; k < SL_PLAN_KINDS; k++)
        most.bytes[k] = -sl_runtime_least(rt, -plan->bytes[k]);
    return most;
}

/* ---- Whether it fits ---- */

/* What a rank can have, and who bounds it. */
struct space {
    int64_t bytes;
    enum sl_memory_bound bound;
};

/* The least of all ranks'. Those of a machine share all but what ulimit bounds, in equal parts. */
static struct space find_space(struct sl_runtime *rt)
{
    int64_t left[SL_MEMORY_BOUNDS];
    sl_free_memory("", left);
    left[SL_MEMORY_OF_MACHINE] /= rt->ranks_here;
    left[SL_MEMORY_OF_CGROUP] /= rt->ranks_here;
    enum sl_memory_bound bound = SL_MEMORY_OF_MACHINE;
    for (enum sl_memory_bound b = bound; b < SL_MEMORY_BOUNDS; b++)
        if (left[b] < left[bound])
            bound = b;
    const int64_t least = sl_runtime_least(rt, left[bound]);
    const int64_t whose = left[bound] == least ? (int64_t)bound : SL_MEMORY_BOUNDS;
    return (struct space){least, (enum sl_memory_bound)sl_runtime_least(rt, whose)};
}

int64_t sl_plan_space(struct sl_runtime *rt)
{
    return find_space(rt).bytes;
}

/* More than a rank takes, from the shape of graph and network alone. */
static double rough_bytes(const struct sl_runtime *rt, const struct sl_source *source,
                          const struct sl_config *config)
{
    enum { MOST_PARTS = 64 }; /* of a gradient, unless --tiles says more */
    const double n = (double)source->vertices, f = (double)source->features,
                 c = (double)source->classes;
    const double h = (double)config->hidden, layers = (double)config->layers;
    const double nnz = (double)source->adjacency.indices.count;
    const double features = source->feature_form == SL_FEATURES_IDENTITY ? 12.0 * n : 36.0 * n * f;
    const double parameters = 2.0 * (f * (h + c) + layers * h * h + h * c); /* of two weights */
    const double parts = config->tiles > MOST_PARTS ? (double)config->tiles : MOST_PARTS;
    return (16.0 * (nnz + n) + features + 4.0 * n * (h + c + 32.0) * (layers + 8.0)) / rt->ranks *
               2.0 +
           4.0 * parameters * (4.0 + parts);
}

static int refuse(struct sl_runtime *rt, const struct sl_source *source,
                  const struct sl_config *config, int64_t total, const struct space *space)
{
    static const double GIB = 1 << 30;
    static const char *const who[SL_MEMORY_BOUNDS] = {
        "this machine has", "the control group (cgroup) has", "ulimit -v or -d leaves"};
    static char bf16[] = "bf16";
    struct sl_config narrow = *config;
    struct sl_plan plan = {.total = 0};
    narrow.precision = bf16;
    const int code = sl_plan_make(rt, source, &narrow, &plan);
    const bool fits = !code && sl_plan_largest(rt, &plan).total <= space->bytes;
    return sl_error(SL_ERR_SYSTEM,
                    "training takes %.1f GiB on a rank, and %s %.1f GiB free for it: "
                    "%s; more ranks on other machines, fewer --layers or a smaller --hidden take "
                    "less (--plan shows what takes how much)",
                    (double)total / GIB, who[space->bound], (double)space->bytes / GIB,
                    fits ? "--precision bf16 would fit" : "--precision bf16 would not fit either");
}

int sl_plan_check(struct sl_runtime *rt, const struct sl_source *source,
                  const struct sl_config *config)
{
    struct sl_plan plan;
    const struct space space = find_space(rt);
    if (rough_bytes(rt, source, config) < (double)space.bytes)
        return 0;
    int code = sl_plan_make(rt, source, config, &plan);
    if (code)
        return code;
    plan = sl_plan_largest(rt, &plan);
    if (plan.total > space.bytes)
        code = refuse(rt, source, config, plan.total, &space);
    return sl_runtime_agree(rt, code);
}
