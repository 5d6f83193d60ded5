#include "run/fits.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/task.h"
#include "data/feature_form.h"
#include "recipe/defaults.h"
#include "train/trainer.h"

struct sl_plan sl_trainer_plan(const struct sl_trainer *trainer)
{
    struct sl_plan plan = sl_plan_of(&trainer->whole.operands, &trainer->whole.network);
    sl_batches_plan(&trainer->batches, &plan);
    if (sl_config_has_submodels(trainer->config)) {
        sl_store_plan(&trainer->store, &plan);
        sl_blocked_plan(&trainer->blocked, &plan);
        sl_ensemble_plan(&trainer->ensemble, &plan);
        sl_submodels_plan(&trainer->submodels, &trainer->blocked, &plan);
    }
    sl_plan_add_up(&plan);
    return plan;
}

int sl_plan_make(struct sl_runtime *rt, const struct sl_source *source,
                 const struct sl_config *config, struct sl_plan *plan)
{
    struct sl_trainer trainer;
    rt->plans = true;
    const int code = sl_trainer_create(&trainer, rt, source, config, NULL);
    if (!code)
        *plan = sl_trainer_plan(&trainer);
    sl_trainer_destroy(&trainer);
    rt->plans = false;
    return code;
}

/* More than all layers have: numbers of a vertex, and parameters. */
static void count_layers(const struct sl_source *source, const struct sl_config *config,
                         double *columns, double *parameters)
{
    const struct sl_model_shape shape = sl_config_shape(config, source->features, source->classes);
    struct sl_layer_list list = {0};
    sl_model_list(&shape, &list);
    *columns = *parameters = list.failed ? HUGE_VAL : 0.0;
    for (int l = 0; l < list.count; l++) {
        const struct sl_layer_shape *layer = &list.layer[l];
        const double in = (double)layer->in, out = (double)sl_layer_shape_columns(layer);
        *columns += out + 32.0 + (l > 0 ? in : 0.0);
        *parameters += (double)sl_layer_shape_rows(layer) * out;
    }
    free(list.layer);
}

/* Graphs like the whole one that a rank has its part of, at most: each group and each batch may
 * need all vertices. */
static double more_graphs(const struct sl_runtime *rt, const struct sl_config *config)
{
    const struct sl_batches_options options = sl_config_batches(config);
    if (!sl_batches_differ(config))
        return 1.0;
    const int64_t steps = sl_batches_options_steps(&options);
    const int groups = config->steps.groups.given ? rt->ranks : 1;
    return 1.0 + (double)groups * (double)(options.each > 1 ? 2 : steps);
}

/* More than a rank takes, from the shape of graph and network alone. */
static double rough_bytes(const struct sl_runtime *rt, const struct sl_source *source,
                          const struct sl_config *config)
{
    enum { MOST_PARTS = 64 }; /* parts of a gradient, unless --tiles says more */
    const double n = (double)source->vertices, f = (double)source->features,
                 c = (double)source->classes;
    const double h = (double)sl_config_hidden(config);
    const double nnz = (double)source->adjacency.indices.count;
    const double features = source->feature_form == SL_FEATURES_IDENTITY ? 12.0 * n : 36.0 * n * f;
    const double parts =
        config->machine.tiles > MOST_PARTS ? (double)config->machine.tiles : MOST_PARTS;
    double columns, parameters;
    count_layers(source, config, &columns, &parameters);
    return more_graphs(rt, config) *
           ((16.0 * (nnz + n) + features + 4.0 * n * (columns + 8.0 * (h + c + 32.0))) / rt->ranks *
                2.0 +
            4.0 * 2.0 * parameters * (4.0 + parts));
}

static int refuse(struct sl_runtime *rt, const struct sl_source *source,
                  const struct sl_config *config, int64_t total, const struct sl_space *space)
{
    static const double GIB = 1 << 30;
    static const char *const who[SL_MEMORY_BOUNDS] = {
        "this machine has", "the control group (cgroup) has", "ulimit -v or -d leaves"};
    struct sl_config narrow = *config;
    struct sl_plan plan = {.total = 0};
    narrow.machine.precision = SL_PRECISION_BF16;
    const int code = sl_plan_make(rt, source, &narrow, &plan);
    const bool fits = !code && sl_plan_largest(rt, &plan).total <= space->bytes;
    return sl_error(SL_ERR_SYSTEM,
                    "training takes %.1f GiB on a rank, and %s %.1f GiB free for it: "
                    "%s; more ranks on other machines, fewer --layers or a smaller --hidden take "
                    "less (--plan shows what takes how much)",
                    (double)total / GIB, who[space->bound], (double)space->bytes / GIB,
                    fits ? "--precision bf16 would fit" : "--precision bf16 would not fit either");
}

/* Some is taken until the run is checked, and while it is planned. */
enum { MOST_PERCENT = 95 };

/* Return the N of --recompute that takes the least memory: L / N + N is least there. Late messages
 * do not come twice: with them only normalised rows are made again. */
static int64_t most_blocks(const struct sl_config *config)
{
    return config->ranks.delay > 0 ? 1 : llround(sqrt((double)config->network.layers));
}

/* Return whether --recompute auto may make rows again. */
static bool may_recompute(const struct sl_config *config)
{
    return config->machine.recompute < 0 && config->network.model->recomputes;
}

/* ---- Batches ---- */

static int64_t space_for(struct sl_runtime *rt)
{
    return sl_space_find(rt).bytes / 100 * MOST_PERCENT;
}

/* Tasks that are submitted, and lists of tiles, take some too. */
static int64_t space_for_batches(struct sl_runtime *rt)
{
    enum { TASK = 2200, LISTS = 32 << 20 };
    return space_for(rt) - (int64_t)SL_PENDING_TASKS * TASK - LISTS;
}

/* Return the bytes of the tiles of batches, and of StarPU's handles of them. */
static int64_t bytes_of_batches(struct sl_runtime *rt, const struct sl_plan *plan)
{
    enum { HANDLE = 4500 };
    const struct sl_plan most = sl_plan_largest(rt, plan);
    return most.total + HANDLE * most.handles;
}

/* A run whose batches are counted. */
struct counted {
    struct sl_runtime *rt;
    const struct sl_source *source;
    struct sl_config *config;
};

/* co:auto becomes co:R. */
static void set_batches(struct sl_config *config, int64_t batches)
{
    config->steps.batches.automatic = false;
    config->steps.batches.sets = batches;
}

/* Set *bytes to the bytes of a run with so many batches, or more. Planning selects graphs, and its
 * threads keep address space: *space may fall. */
static int take_batches(void *context, int64_t batches, int64_t *space, int64_t *bytes)
{
    const struct counted *run = context;
    struct sl_plan plan;
    set_batches(run->config, batches);
    const double rough = rough_bytes(run->rt, run->source, run->config);
    *bytes = (int64_t)rough;
    if (rough < (double)*space)
        return 0;
    const int code = sl_plan_make(run->rt, run->source, run->config, &plan);
    if (code)
        return code;
    *bytes = bytes_of_batches(run->rt, &plan);
    sl_memory_trim();
    const int64_t left = space_for_batches(run->rt);
    *space = left < *space ? left : *space;
    return 0;
}

int sl_plan_find_batches(sl_plan_batches_function *take, void *context, int64_t most, int64_t space,
                         int64_t *best)
{
    int64_t low = 0, last = 1, before = 0, bytes = 0;
    int code = take(context, last, &space, &before);
    int64_t least = before;
    *best = 1;
    while (!code && least > space && 2 * last <= most) {
        code = take(context, 2 * last, &space, &bytes);
        if (code || (bytes >= before && last > 1))
            break;
        before = bytes;
        low = last;
        last = 2 * last;
        *best = bytes < least ? last : *best;
        least = bytes < least ? bytes : least;
    }
    while (!code && least <= space && *best - low > 1) {
        const int64_t middle = (low + *best) / 2;
        code = take(context, middle, &space, &bytes);
        if (bytes <= space)
            *best = middle;
        else
            low = middle;
    }
    return code;
}

static int find_batches(struct sl_runtime *rt, const struct sl_source *source,
                        struct sl_config *config)
{
    enum { MOST_BATCHES = 1024 };
    struct counted run = {rt, source, config};
    const int64_t each = source->vertices / rt->ranks;
    int64_t best;
    const int code =
        sl_plan_find_batches(take_batches, &run, each < MOST_BATCHES ? each : MOST_BATCHES,
                             space_for_batches(rt), &best);
    if (!code)
        set_batches(config, best);
    return code;
}

int sl_plan_batches(struct sl_runtime *rt, const struct sl_source *source, struct sl_config *config,
                    char *chosen)
{
    const bool recomputes = may_recompute(config);
    if (!config->steps.batches.automatic)
        return 0;
    if (recomputes)
        config->machine.recompute = (int)most_blocks(config);
    const int code = find_batches(rt, source, config);
    if (recomputes)
        config->machine.recompute = SL_RECOMPUTE_AUTO;
    if (!code)
        sl_defaults_say(chosen, "batches", sl_config_text(config, "batches").text);
    return code;
}

/* ---- Recomputing ---- */

/* Set *fits to whether a run with --recompute `blocks` fits into the space. */
static int fits_with(struct sl_runtime *rt, const struct sl_source *source,
                     struct sl_config *config, int64_t blocks, int64_t space, bool *fits)
{
    struct sl_plan plan;
    config->machine.recompute = (int)blocks;
    const int code = sl_plan_make(rt, source, config, &plan);
    if (!code)
        *fits = sl_runtime_least(rt, bytes_of_batches(rt, &plan) <= space) > 0;
    return code;
}

int sl_plan_recompute(struct sl_runtime *rt, const struct sl_source *source,
                      struct sl_config *config, char *chosen)
{
    const int64_t space = sl_batches_differ(config) ? space_for_batches(rt) : space_for(rt),
                  most = most_blocks(config);
    bool fits = rough_bytes(rt, source, config) < (double)space;
    if (config->machine.recompute >= 0)
        return 0;
    if (!may_recompute(config) || fits) {
        config->machine.recompute = 0;
        return 0;
    }
    int64_t low = 1, high = most; /* `low` does not fit; `high` is taken */
    int code = fits_with(rt, source, config, 0, space, &fits);
    if (!code && !fits)
        code = fits_with(rt, source, config, low, space, &fits);
    while (!code && !fits && high - low > 1) {
        const int64_t middle = (low + high) / 2;
        bool less = false;
        code = fits_with(rt, source, config, middle, space, &less);
        if (less)
            high = middle;
        else
            low = middle;
    }
    if (!code && !fits && high > low)
        code = fits_with(rt, source, config, high, space, &fits);
    if (!code && config->machine.recompute > 0)
        sl_defaults_say(chosen, "recompute", sl_config_text(config, "recompute").text);
    return code;
}

int sl_plan_form(struct sl_runtime *rt, struct sl_source *source, struct sl_config *config,
                 char *chosen)
{
    const int64_t space = sl_batches_differ(config) ? space_for_batches(rt) : space_for(rt);
    bool fits = rough_bytes(rt, source, config) < (double)space;
    struct sl_plan plan;
    int code = 0;
    if (!sl_features_made_dense(source) || sl_config_standardizes(config))
        return 0;
    if (!fits)
        code = sl_plan_make(rt, source, config, &plan);
    if (!code && !fits)
        fits = sl_runtime_least(rt, bytes_of_batches(rt, &plan) <= space) > 0;
    if (!code && fits)
        sl_defaults_say(chosen, "feature-form", "dense");
    if (!code && !fits)
        config->features.feature_form = SL_FORM_CSR;
    return code || fits ? code : sl_features_set_form(rt, source, SL_FEATURES_CSR);
}

int sl_plan_rows(struct sl_runtime *rt, const struct sl_source *source, struct sl_config *config,
                 struct sl_needed_choice *choice, bool *fits)
{
    const int64_t space = space_for(rt);
    struct sl_plan plan;
    *fits = false;
    if (!choice->reason[0] || config->steps.rows != SL_ROWS_NEEDED || config->steps.groups.given ||
        sl_config_has_batches(config) || rough_bytes(rt, source, config) < (double)space)
        return 0;
    const int code = sl_plan_make(rt, source, config, &plan);
    if (!code)
        *fits = sl_runtime_least(rt, plan.total <= space) > 0;
    if (!code && !*fits)
        sl_needed_give_up(config, choice, "another graph of needed rows does not fit into memory");
    return code;
}

int sl_plan_check(struct sl_runtime *rt, const struct sl_source *source,
                  const struct sl_config *config)
{
    struct sl_plan plan;
    const struct sl_space space = sl_space_find(rt);
    if (!sl_config_has_submodels(config) && rough_bytes(rt, source, config) < (double)space.bytes)
        return 0;
    int code = sl_plan_make(rt, source, config, &plan);
    if (code)
        return code;
    plan = sl_plan_largest(rt, &plan);
    if (plan.total > space.bytes)
        code = refuse(rt, source, config, plan.total, &space);
    return sl_runtime_agree(rt, code);
}
