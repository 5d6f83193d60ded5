#include "train/needed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "data/vertex_set.h"
#include "graphs/vertex_cut.h"
#include "train/group_epoch.h"
#include "train/submodels.h"

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

/* The set of the vertices of a split; sl_vertex_set_free in either case. */
static int mark_split(const struct sl_source *source, enum sl_split split,
                      struct sl_vertex_set *set)
{
    const struct sl_npy *ids = &source->split[split];
    const int code = sl_vertex_set_create(set, source->vertices);
    if (code || !ids->data)
        return code;
    return source->mask[split] ? mark_masked(source, ids, set) : mark_listed(source, ids, set);
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

/* ---- What it does not go with ---- */

/* Return the option whose results depend on more rows than the training vertices need; NULL: there
 * is none. */
static const char *find_reader(const struct sl_config *config)
{
    struct sl_batches_options how;
    const bool normalizes = sl_config_model(config) == &sl_model_resgcn &&
                            sl_layer_block(config->block_norm)->averages > 0;
    if (normalizes)
        return "--block-norm batch has the statistics of all rows";
    if (sl_batches_parse(config, &how))
        return NULL; /* sl_config_check says so */
    if (how.sets > 1 || how.automatic)
        return "--batches has sets of all vertices";
    return sl_config_kind(config)->clones ? "clones of few vertices have other gradients"
           : how.sampled                  ? "a sample is drawn around all vertices of a step"
           : how.kind->alone              ? "--batches clusters trains on all rows of its clusters"
           : config->groups && (how.preload > 0 || how.chooses_preload)
               ? "--preload-hops takes rows that other groups compute"
               : NULL;
}

int sl_needed_check(const struct sl_config *config)
{
    const char *reader = strcmp(config->rows, "needed") == 0 ? find_reader(config) : NULL;
    return reader ? sl_error(SL_ERR_USAGE, "--rows needed: %s (expected all or auto)", reader) : 0;
}

/* ---- The choice ---- */

/* Choosing, selecting and cutting take so many seconds of a core for each entry of the adjacency in
 * rows of the step's graph, once and on each rank. Several ranks find parts, too. The rest is for
 * entries that are looked at and left out. */
static const double ENTRY_SECONDS = 150e-9, PART_SECONDS = 1e-6, LOOK_SECONDS = 20e-9;
/* A step must take at most this share of the time: predictions err, and tiles by hops are more. */
static const double MOST_SHARE = 0.8;
/* An evaluation with a graph of its own must take at most this share: one graph more is kept. */
static const double MOST_OF_EVALUATION = 0.7;
/* Less is not worth another graph. */
static const double LEAST_SAVED = 100e-6;

/* Seconds of a step with all rows and with needed ones, and what these take before the first. */
struct seconds {
    double all, needed, prepare;
};

static double entries_of(const struct sl_source *source, int64_t v)
{
    const struct sl_npy *indptr = &source->adjacency.indptr;
    return (double)(sl_npy_integer(indptr, v + 1) - sl_npy_integer(indptr, v));
}

/* Set the rows and entries of each hop from the vertices of a split. */
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
}

static void count_all(const struct sl_source *source, struct sl_group_epoch *e)
{
    for (int h = 0; h <= e->most; h++) {
        e->rows[h] = source->vertices;
        e->entries[h] = source->adjacency.indices.count;
    }
}

/* Look as far from the vertices of a split as layers aggregate. */
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
    struct sl_batches_options how;
    struct sl_group_epoch e = {0};
    int64_t *kept = NULL, left = 0;
    int code = sl_batches_parse(config, &how);
    if (!code)
        code = sl_group_epoch_open(&e, source, config, &how);
    if (!code)
        code = sl_needed_keep(source, SL_SPLIT_TRAIN, NULL, 0, &kept, &left);
    if (!code)
        code = sl_select(source, kept, left, &(struct sl_selection_options){.hops = e.most},
                         selection);
    sl_group_epoch_close(&e);
    free(kept);
    return code;
}

/* Predict a step of ranks with these rates, from the vertices of a split. */
static int predict(const struct sl_source *source, const struct sl_config *config,
                   enum sl_split split, const struct sl_needed_ranks *by, struct seconds *out)
{
    struct sl_batches_options how;
    struct sl_group_epoch e = {0};
    const struct sl_group_ranks ranks = {by->ranks, 1.0};
    int code = sl_batches_parse(config, &how);
    if (!code)
        code = sl_group_epoch_open(&e, source, config, &how);
    if (!code)
        code = select_needed(source, split, &e);
    if (!code) {
        out->needed = sl_group_epoch_computing(&e, by->rates, e.most, ranks);
        out->prepare = (by->here * ENTRY_SECONDS + (by->ranks > 1 ? PART_SECONDS : 0.0)) *
                           (double)e.entries[e.most] +
                       by->here * LOOK_SECONDS * (double)source->adjacency.indices.count;
        count_all(source, &e);
        out->all = sl_group_epoch_computing(&e, by->rates, e.most, ranks);
    }
    sl_group_epoch_close(&e);
    return code;
}

int sl_needed_validation(const struct sl_source *source, const struct sl_config *config,
                         bool *takes)
{
    static const struct sl_needed_ranks one = {1, 1, &sl_rates_usual};
    struct seconds s = {0};
    const int code = sl_source_split_size(source, SL_SPLIT_VAL) > 0
                         ? predict(source, config, SL_SPLIT_VAL, &one, &s)
                         : 0;
    *takes = s.needed > 0.0 && s.needed <= MOST_OF_EVALUATION * s.all;
    return code;
}

/* Return why a run computes all rows, whatever they take; NULL: that depends. */
static const char *find_reason(const struct sl_config *config)
{
    const char *reader = find_reader(config);
    return reader                                 ? reader
           : sl_submodels_there(config)           ? "sub-models train on all rows"
           : sl_batches_differ(config)            ? "groups have graphs of their own"
           : strcmp(config->order, "double") == 0 ? "--order double"
           : config->allow_inexact                ? "clones meet late, or never"
                                                  : NULL;
}

static int settle(struct sl_config *config, const struct seconds *s, char *reason)
{
    const double steps = (double)sl_config_epochs(config), saved = s->all - s->needed;
    const bool pays =
        s->needed <= MOST_SHARE * s->all && saved >= LEAST_SAVED && steps * saved > s->prepare;
    snprintf(reason, SL_NEEDED_REASON,
             "%s: a step is predicted to compute %.2g s with all rows and %.2g s with needed ones, "
             "which take %.2g s to select; %.0f steps",
             pays ? "needed" : "all", s->all, s->needed, s->prepare, steps);
    return sl_config_set_text(&config->rows, pays ? "needed" : "all");
}

/* All ranks choose as rank 0 does. */
static int choose(struct sl_runtime *rt, struct sl_source *source, struct sl_config *config,
                  const struct sl_needed_ranks *by, char *reason)
{
    struct seconds s = {0};
    int code = sl_runtime_agree(rt, sl_source_settle_splits(source));
    if (!code && rt->rank == 0)
        code = predict(source, config, SL_SPLIT_TRAIN, by, &s);
    code = sl_runtime_agree(rt, code);
    if (code)
        return code;
    sl_runtime_broadcast(rt, 0, &s, sizeof s);
    return sl_runtime_agree(rt, settle(config, &s, reason));
}

int sl_needed_choose(struct sl_runtime *rt, struct sl_source *source, struct sl_config *config,
                     const struct sl_needed_ranks *by, char *reason)
{
    const char *why = find_reason(config);
    reason[0] = '\0';
    if (strcmp(config->rows, "auto") != 0)
        return 0;
    if (!why)
        return choose(rt, source, config, by, reason);
    snprintf(reason, SL_NEEDED_REASON, "all: %s", why);
    return sl_runtime_agree(rt, sl_config_set_text(&config->rows, "all"));
}
