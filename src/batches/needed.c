#include "batches/needed.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "batches/group_epoch.h"
#include "core/error.h"
#include "data/vertex_set.h"
#include "graphs/cost.h"
#include "graphs/vertex_cut.h"

/* ---- Vertices of a split ---- */

static int mark_listed(const struct sl_source *source, const struct sl_npy *ids,
                       struct sl_vertex_set *set)
{
    for (int64_t i = 0; i < ids->count; i++) {
        const int64_t v = sl_npy_integer(ids, i);
        if (v < 0 || v >= source->vertices)
            return sl_error(SL_ERR_DATA,
                            "%s: item %" PRId64 " is vertex %" PRId64 ", expected 0 to %" PRId64,
                            ids->name, i, v, source->vertices - 1);
        sl_vertex_set_add(set, v);
    }
    return 0;
}

static int mark_masked(const struct sl_source *source, const struct sl_npy *mask,
                       struct sl_vertex_set *set)
{
    const int64_t width = mask->dims == 2 ? mask->shape[1] : 1;
    for (int64_t v = 0; v < source->vertices; v++)
        if (sl_npy_get(mask, v * width) != 0.0)
            sl_vertex_set_add(set, v);
    return 0;
}

/* Mark the vertices of a split in a set. Call sl_vertex_set_free in either case. */
static int mark_split(const struct sl_source *source, enum sl_split split,
                      struct sl_vertex_set *set)
{
    const struct sl_npy *ids = &source->splits.split[split];
    const int code = sl_vertex_set_create(set, source->vertices);
    if (code || !ids->data)
        return code;
    return source->splits.mask[split] ? mark_masked(source, ids, set)
                                      : mark_listed(source, ids, set);
}

int sl_needed_keep(const struct sl_source *source, enum sl_split split, const int64_t *inner,
                   int64_t count, int64_t **kept, int64_t *left)
{
    struct sl_vertex_set set;
    const int64_t most = inner ? count : source->vertices;
    int code = mark_split(source, split, &set);
    *left = 0;
    *kept = malloc((size_t)(most + 1) * sizeof **kept);
    if (!code && !*kept)
        code = sl_error(SL_ERR_SYSTEM, "no memory for %" PRId64 " vertices of a split", most);
    for (int64_t k = 0; !code && k < most; k++)
        if (sl_vertex_set_has(&set, inner ? inner[k] : k))
            (*kept)[(*left)++] = inner ? inner[k] : k;
    sl_vertex_set_free(&set);
    return code;
}

/* ---- The choice ---- */

/* Seconds of a core to choose, select and cut graphs, once a run. ENTRY_SECONDS: for each adjacency
 * entry in rows of the training or validation graph. LOOK_SECONDS: for each entry that is looked at
 * and left out. */
static const double ENTRY_SECONDS = 250e-9, LOOK_SECONDS = 20e-9;
/* Computing cores that a usual GPU is worth. An H100 is worth 240. */
static const double GPU_CORES = 100.0;
/* The largest time of a step with needed rows, over a step with all rows. Predictions err, and
 * needed rows keep one graph more. */
static const double MOST_SHARE = 0.73;
/* Passes over a gradient of each weight, for each hop's additional tile: one writes the gradient,
 * two read and write it in a sum. */
static const double GRADIENT_PASSES = 3.0;
/* The largest time of an evaluation with its own graph, over one of the whole graph. The run keeps
 * one graph more. */
static const double MOST_OF_EVALUATION = 0.7;
/* The least seconds that another graph, or making Â·X once, must save. */
static const double LEAST_SAVED = 100e-6;

/* Predicted seconds of a step with all rows, of a step with needed rows, and of their preparation.
 * `entries` and `rows`: needed ones over all, in the mean of layers that aggregate. */
struct seconds {
    double all, needed, prepare;
    double entries, rows;
    double features;            /* bytes of the features, or of their aggregated sums */
    struct sl_needed_size size; /* the graph of needed rows */
};

static double entries_of(const struct sl_source *source, int64_t v)
{
    const struct sl_npy *indptr = &source->adjacency.indptr;
    return (double)(sl_npy_integer(indptr, v + 1) - sl_npy_integer(indptr, v));
}

/* Set the rows and entries of each hop around the selected vertices. Rows near them have more
 * entries than others, so aggregated features have more entries in each row, too. */
static void count_needed(const struct sl_source *source, const struct sl_selection *selection,
                         struct sl_group_epoch *e)
{
    int64_t k = 0;
    double entries = 0.0;
    for (int h = 0; h <= e->most; h++) {
        e->entries[h] = (int64_t)entries;
        e->rows[h] = sl_selection_within(selection, h);
        for (; k < e->rows[h]; k++)
            entries += entries_of(source, selection->row[k]);
    }
    sl_group_epoch_sum_features(e, source, selection->row,
                                e->rows[e->read ? e->most : e->most - 1]);
}

static void count_all(const struct sl_source *source, struct sl_group_epoch *e)
{
    for (int h = 0; h <= e->most; h++) {
        e->rows[h] = source->vertices;
        e->entries[h] = source->adjacency.indices.count;
    }
    sl_group_epoch_sum_features(e, source, NULL, source->vertices);
}

/* Select and count the rows around a split, as many hops away as layers aggregate. */
static int select_needed(const struct sl_source *source, enum sl_split split,
                         struct sl_group_epoch *e)
{
    struct sl_selection selection = {0};
    int64_t *kept = NULL, left = 0;
    int code = sl_needed_keep(source, split, NULL, 0, &kept, &left);
    if (!code)
        code = sl_select(source, kept, left,
                         &(struct sl_selection_options){.hops = e->most, .vertices_alone = true},
                         &selection);
    if (!code)
        count_needed(source, &selection, e);
    sl_selection_free(&selection);
    free(kept);
    return code;
}

int sl_needed_select(const struct sl_source *source, const struct sl_config *config,
                     struct sl_selection *selection)
{
    const struct sl_batches_options options = sl_config_batches(config);
    struct sl_group_epoch e;
    int64_t *kept = NULL, left = 0;
    int code = sl_group_epoch_open(&e, source, config, &options);
    if (!code)
        code = sl_needed_keep(source, SL_SPLIT_TRAIN, NULL, 0, &kept, &left);
    if (!code)
        code = sl_select(source, kept, left, &(struct sl_selection_options){.hops = e.most},
                         selection);
    sl_group_epoch_close(&e);
    free(kept);
    return code;
}

static void count_shares(const struct sl_source *source, const struct sl_group_epoch *e,
                         struct seconds *out)
{
    const double entries = (double)source->adjacency.indices.count, rows = (double)source->vertices;
    for (int h = 0; h < e->most; h++) {
        out->entries += (double)e->entries[h + 1] / (entries * e->most);
        out->rows += (double)e->rows[h] / (rows * e->most);
    }
}

/* Return the seconds of gradients and tasks of an additional tile for each hop. A task takes as
 * long with GPUs. */
static double seconds_of_hops(const struct sl_group_epoch *e, const struct sl_rates *rates,
                              double cores)
{
    double bytes = 0.0;
    for (int l = 0; l < e->model.count; l++)
        bytes += sl_cost_parameter_bytes(&e->model.layer[l]);
    return e->most * (GRADIENT_PASSES * bytes / (rates->stream * cores) + e->layers * rates->task);
}

/* Predict the seconds of a step around a split, on one usual core or one usual GPU. */
static int predict(const struct sl_runtime *rt, const struct sl_source *source,
                   const struct sl_config *config, enum sl_split split, struct seconds *out)
{
    const double cores = rt->all_gpus > 0 ? GPU_CORES : 1.0;
    static const struct sl_group_ranks one = {1.0, 1.0};
    const struct sl_batches_options options = sl_config_batches(config);
    struct sl_group_epoch e;
    int code = sl_group_epoch_open(&e, source, config, &options);
    if (!code)
        code = select_needed(source, split, &e);
    if (!code) {
        count_shares(source, &e, out);
        out->size = (struct sl_needed_size){e.rows[e.most], e.entries[e.most]};
        out->needed = sl_group_epoch_computing(&e, &sl_rates_usual, e.most, one) / cores +
                      seconds_of_hops(&e, &sl_rates_usual, cores);
        out->prepare = ENTRY_SECONDS * (double)e.entries[e.most] +
                       LOOK_SECONDS * (double)source->adjacency.indices.count;
        count_all(source, &e);
        out->features =
            (double)source->vertices *
            (e.features > 0.0 ? e.features * (4.0 + e.size) : (double)source->features * e.size);
        out->all = sl_group_epoch_computing(&e, &sl_rates_usual, e.most, one) / cores;
    }
    sl_group_epoch_close(&e);
    return code;
}

/* Predict on rank 0 for all ranks, since other ranks may round otherwise. Collective. */
static int predict_together(struct sl_runtime *rt, const struct sl_source *source,
                            const struct sl_config *config, enum sl_split split,
                            struct seconds *out)
{
    int code = 0;
    *out = (struct seconds){0};
    if (rt->rank == 0 && source->adjacency.indices.count > 0)
        code = predict(rt, source, config, split, out);
    code = sl_runtime_agree(rt, code);
    if (!code)
        sl_runtime_broadcast(rt, 0, out, sizeof *out);
    return code;
}

int sl_needed_validation(struct sl_runtime *rt, const struct sl_source *source,
                         const struct sl_config *config, struct sl_needed_size *size)
{
    struct seconds s = {0};
    const int code = sl_source_split_size(source, SL_SPLIT_VAL) > 0
                         ? predict_together(rt, source, config, SL_SPLIT_VAL, &s)
                         : 0;
    const bool takes = s.needed > 0.0 && s.needed <= MOST_OF_EVALUATION * s.all;
    *size = takes ? s.size : (struct sl_needed_size){0};
    return code;
}

/* Whether an option forbids needed rows. The run itself may compute all rows. */
static bool is_refused(const struct sl_config *config)
{
    struct sl_config other = *config;
    other.steps.rows = SL_ROWS_NEEDED;
    return sl_config_check_batches(&other) != 0;
}

/* Return a reason for all rows that no prediction can change, or NULL if the predictions decide. */
static const char *find_reason(const struct sl_config *config)
{
    const char *reader = sl_config_reads_all(config);
    return reader                                    ? reader
           : sl_config_has_submodels(config)         ? "sub-models train on all rows"
           : sl_batches_differ(config)               ? "groups have graphs of their own"
           : config->ranks.order == &sl_order_double ? "--order double"
           : config->ranks.allow_inexact             ? "clones meet late, or never"
           : is_refused(config)                      ? "an option is for all rows"
                                                     : NULL;
}

static void settle(struct sl_config *config, const struct seconds *s, bool on_gpus,
                   struct sl_needed_choice *choice)
{
    const double steps = (double)sl_config_epochs(config), saved = s->all - s->needed;
    const bool pays =
        s->needed <= MOST_SHARE * s->all && saved >= LEAST_SAVED && steps * saved > s->prepare;
    snprintf(
        choice->reason, sizeof choice->reason,
        "%s: %.2g of the rows and %.2g of the adjacency entries are needed, in the mean of the "
        "layers; a step of a usual %s takes %.2g s with them and %.2g s with all, selecting "
        "%.2g s; %.0f steps",
        pays ? "needed" : "all", s->rows, s->entries, on_gpus ? "GPU" : "core", s->needed, s->all,
        s->prepare, steps);
    config->steps.rows = pays ? SL_ROWS_NEEDED : SL_ROWS_ALL;
}

/* Bounds on making Â·X once, for needed rows. MOST_OF_UNCACHED: the largest time of a step, over a
 * step without Â·X, since rates of machines differ. The most bytes of Â·X: MOST_BYTES, or
 * MOST_TIMES the bytes of the features if these are more. The bounds depend on the data alone. */
static const double MOST_OF_UNCACHED = 0.7, MOST_BYTES = 0x1p28, MOST_TIMES = 2.0;

/* Set --cache-aggregate if it makes a step with needed rows much faster. Collective. */
static int settle_cache(struct sl_runtime *rt, const struct sl_source *source,
                        struct sl_config *config, struct seconds *s)
{
    struct sl_config other = *config;
    struct seconds with;
    other.features.cache_aggregate = true;
    if (!sl_config_aggregates(&other))
        return 0;
    const int code = predict_together(rt, source, &other, SL_SPLIT_TRAIN, &with);
    const double without = fmin(s->needed, s->all);
    if (code || with.needed > MOST_OF_UNCACHED * without || without - with.needed < LEAST_SAVED ||
        with.features > fmax(MOST_BYTES, MOST_TIMES * s->features))
        return code;
    config->features.cache_aggregate = true;
    with.all = fmin(with.all, s->all);
    *s = with;
    return 0;
}

int sl_needed_choose(struct sl_runtime *rt, struct sl_source *source, struct sl_config *config,
                     bool may_cache, struct sl_needed_choice *choice)
{
    const bool is_auto = config->steps.rows == SL_ROWS_AUTO;
    const char *why = is_auto ? find_reason(config) : NULL;
    struct seconds s;
    *choice = (struct sl_needed_choice){.cached = config->features.cache_aggregate};
    if (config->steps.rows == SL_ROWS_ALL)
        return 0;
    if (why) {
        sl_needed_give_up(config, choice, why);
        return 0;
    }
    int code = sl_runtime_agree(rt, sl_source_settle_splits(source));
    if (!code)
        code = predict_together(rt, source, config, SL_SPLIT_TRAIN, &s);
    if (!code && may_cache)
        code = settle_cache(rt, source, config, &s);
    if (code)
        return code;
    choice->entries = s.entries;
    choice->rows = s.rows;
    if (is_auto)
        settle(config, &s, rt->all_gpus > 0, choice);
    if (config->steps.rows == SL_ROWS_ALL)
        config->features.cache_aggregate = choice->cached;
    return 0;
}

void sl_needed_give_up(struct sl_config *config, struct sl_needed_choice *choice, const char *why)
{
    *choice = (struct sl_needed_choice){.cached = choice->cached};
    snprintf(choice->reason, sizeof choice->reason, "all: %s", why);
    config->steps.rows = SL_ROWS_ALL;
    config->features.cache_aggregate = choice->cached;
}
