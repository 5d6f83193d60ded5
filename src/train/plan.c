#include "train/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"

const char *const sl_plan_names[SL_PLAN_KINDS] = {
    "adjacency", "features", "activations", "work", "received", "parameters", "gradients", "rows",
};

/* ---- What tiles take ---- */

static int64_t tile_bytes(const struct sl_tile *tile)
{
    return tile->rows * tile->ld * (int64_t)tile->element_size;
}

static int64_t own_bytes(const struct sl_runtime *rt, const struct sl_tile *tile)
{
    return tile->owner == rt->rank ? tile_bytes(tile) : 0;
}

static int64_t matrix_bytes(const struct sl_runtime *rt, const struct sl_matrix *matrix)
{
    int64_t bytes = 0;
    for (int t = 0; matrix->tiles && t < matrix->tile_rows * matrix->tile_cols; t++)
        bytes += own_bytes(rt, &matrix->tiles[t]);
    return bytes;
}

/* Rows of the rank that has most of them, this one apart. */
static int64_t most_rows_elsewhere(const struct sl_network *net)
{
    const struct sl_distribution *d = net->distribution;
    int64_t most = 0, rows = 0;
    for (int i = 0, before = -1; i < d->tiles; i++) {
        const int owner = sl_distribution_dense_owner(d, i, 0);
        rows = (owner == before ? rows : 0) + d->row_cut[i + 1] - d->row_cut[i];
        before = owner;
        most = owner != net->rt->rank && rows > most ? rows : most;
    }
    return most;
}

static void add_layer(const struct sl_runtime *rt, struct sl_layer *layer, struct sl_plan *plan)
{
    const struct sl_tile *own[] = {&layer->moment1, &layer->moment2, &layer->best};
    plan->bytes[SL_PLAN_ACTIVATIONS] +=
        matrix_bytes(rt, &layer->output) + matrix_bytes(rt, &layer->aggregated);
    plan->bytes[SL_PLAN_FEATURES] += matrix_bytes(rt, &layer->dropped);
    plan->bytes[SL_PLAN_GRADIENTS] += matrix_bytes(rt, &layer->gradients);
    plan->bytes[SL_PLAN_PARAMETERS] += tile_bytes(&layer->parameters); /* all ranks have them */
    for (int t = 0; t < 3; t++)
        plan->bytes[SL_PLAN_PARAMETERS] += own_bytes(rt, own[t]);
}

static void add_network(const struct sl_network *net, struct sl_plan *plan)
{
    int64_t exchanged = 0;
    for (int l = 0; l < net->layers; l++) {
        add_layer(net->rt, &net->layer[l], plan);
        if (net->layer[l].exchanged > exchanged)
            exchanged = net->layer[l].exchanged;
    }
    for (int s = 0; s < net->scratch_count; s++)
        plan->bytes[SL_PLAN_WORK] += matrix_bytes(net->rt, &net->scratch[s]->matrix);
    for (int i = 0; i < net->distribution->tiles; i++)
        plan->bytes[SL_PLAN_ROWS] += own_bytes(net->rt, &net->facts[i]) +
                                     own_bytes(net->rt, &net->target[i]) +
                                     own_bytes(net->rt, &net->metrics[i]);
    plan->bytes[SL_PLAN_RECEIVED] = net->rt->stages * exchanged * most_rows_elsewhere(net);
}

struct sl_plan sl_plan_of(const struct sl_trainer *trainer)
{
    const struct sl_operands *o = &trainer->operands;
    struct sl_plan plan = {.total = 0};
    plan.bytes[SL_PLAN_ADJACENCY] = (int64_t)(o->adjacency.slab_bytes + o->transposed.slab_bytes);
    plan.bytes[SL_PLAN_FEATURES] =
        (int64_t)o->input.csr.slab_bytes + matrix_bytes(trainer->rt, &o->input.dense);
    add_network(&trainer->network, &plan);
    for (int k = 0; k < SL_PLAN_KINDS; k++)
        plan.total += plan.bytes[k];
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

/* Bytes that all processes of this machine together can still have. */
static int64_t free_bytes(void)
{
    long long kib = -1;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && kib < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lld", &kib) != 1)
            kib = -1;
    if (file)
        fclose(file);
    return kib >= 0 ? (int64_t)kib * 1024
                    : (int64_t)sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

/* More than a rank takes, from the shape of the graph alone. */
static double rough_bytes(const struct sl_runtime *rt, const struct sl_source *source,
                          const struct sl_config *config)
{
    const double n = (double)source->vertices, f = (double)source->features;
    const double nnz = (double)source->adjacency.indices.count;
    const double widest =
        (double)(config->hidden > source->classes ? config->hidden : source->classes);
    const double features = source->feature_form == SL_FEATURES_IDENTITY ? 12.0 * n : 8.0 * n * f;
    return (16.0 * (nnz + n) + features +
            4.0 * n * (widest + 16.0) * (double)(config->layers + 8)) /
           rt->ranks * 2.0;
}

/* What the same run would take in bfloat16. */
static int64_t narrow_total(const struct sl_plan *plan)
{
    return plan->total - (plan->bytes[SL_PLAN_ACTIVATIONS] + plan->bytes[SL_PLAN_FEATURES]) / 2;
}

static int refuse(const struct sl_plan *plan, const struct sl_config *config, int64_t space)
{
    static const double GIB = 1 << 30;
    const char *narrow = strcmp(config->precision, "fp32") == 0 && narrow_total(plan) <= space
                             ? "--precision bf16, "
                             : "";
    return sl_error(SL_ERR_SYSTEM,
                    "training takes %.1f GiB on a rank, and this machine has %.1f GiB free for it: "
                    "%s%" PRId64 " times as many ranks on other machines, fewer --layers or a "
                    "smaller --hidden would fit (--plan shows what takes how much)",
                    (double)plan->total / GIB, (double)space / GIB, narrow,
                    plan->total / (space + 1) + 1);
}

int sl_plan_check(struct sl_runtime *rt, const struct sl_source *source,
                  const struct sl_config *config)
{
    struct sl_plan plan;
    const int64_t space = sl_runtime_least(rt, free_bytes() / rt->ranks_here);
    if (rough_bytes(rt, source, config) < (double)space)
        return 0;
    int code = sl_plan_make(rt, source, config, &plan);
    if (code)
        return code;
    plan = sl_plan_largest(rt, &plan);
    return plan.total > space ? refuse(&plan, config, space) : 0;
}
