#include "train/preload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/metrics.h"
#include "core/error.h"
#include "train/batch.h"

/* What a group has with each number of hops, and what an epoch takes. */
struct preload {
    struct sl_layer_list model;
    int layers;        /* that aggregate, of those that count in hops */
    int most;          /* the most hops: as many, or 1 */
    bool cached;       /* the first layer has its sums from before the first epoch, */
    bool read;         /* and from the whole graph: it counts in no hop */
    double size;       /* bytes of a number */
    double features;   /* entries of a vertex in a sparse input; 0: a dense one */
    double kept;       /* of them, with dropout */
    int64_t *rows;     // (most + 1): at most h hops away
    int64_t *entries;  // (most + 1): in rows that are fewer hops away
    double *computing; // (most + 1): seconds of the slowest group
    double *messages;  // (most + 1): likewise
};

static bool counts(const struct preload *p, const struct sl_layer_shape *layer)
{
    return !layer->kind->alone && !(p->read && layer == p->model.layer);
}

static void list_layers(struct preload *p, const struct sl_source *source,
                        const struct sl_config *config)
{
    const struct sl_model_shape shape = sl_config_shape(config, source->features, source->classes);
    shape.model->list(&shape, &p->model);
    p->layers = 0;
    for (int l = 0; !p->model.failed && l < p->model.count; l++)
        p->layers += counts(p, &p->model.layer[l]);
    p->most = p->layers > 1 ? p->layers : 1;
}

/* Return the entries of the features, or of their sums; 0: these are dense. */
static double entries_of_features(const struct sl_source *source, bool summed)
{
    const double entries = (double)sl_source_feature_entries(source);
    if (entries == 0.0 || !summed)
        return entries;
    const double sums = sl_operands_aggregated_entries((double)source->vertices,
                                                       (double)source->adjacency.indices.count,
                                                       (double)source->features, entries);
    return sl_operands_stay_sparse((int64_t)sums, source->vertices, source->features) ? sums : 0.0;
}

static int open_preload(struct preload *p, const struct sl_source *source,
                        const struct sl_config *config)
{
    struct sl_batches_options how;
    const int code = sl_batches_parse(config, &how);
    if (code)
        return code;
    p->cached = sl_config_aggregates(config);
    p->read = sl_batches_read_aggregated(config, &how);
    list_layers(p, source, config);
    p->size = (double)sl_type_size(sl_config_assembly(config).type);
    p->features = entries_of_features(source, p->cached) / fmax((double)source->vertices, 1.0);
    p->kept = 1.0 - sl_config_input_dropout(config);
    const size_t count = (size_t)p->most + 1;
    p->rows = calloc(count, sizeof *p->rows);
    p->entries = calloc(count, sizeof *p->entries);
    p->computing = calloc(count, sizeof *p->computing);
    p->messages = calloc(count, sizeof *p->messages);
    return !p->model.failed && p->rows && p->entries && p->computing && p->messages
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for the hops of %d layers", p->layers);
}

static void close_preload(struct preload *p)
{
    free(p->model.layer);
    free(p->rows);
    free(p->entries);
    free(p->computing);
    free(p->messages);
}

/* One selection has all hops. */
static int count_hops(const struct sl_source *source, const int64_t *vertex, int64_t vertices,
                      struct preload *p)
{
    struct sl_selection all = {0};
    const int code = sl_select(source, vertex, vertices,
                               &(struct sl_selection_options){.hops = p->layers}, &all);
    for (int h = 0; !code && h <= p->most; h++) {
        const int64_t before = h > 0 ? sl_selection_within(&all, h - 1) : 0;
        p->rows[h] = sl_selection_within(&all, h);
        p->entries[h] = sl_npy_integer(&all.source.adjacency.indptr, before);
    }
    sl_selection_free(&all);
    return code;
}

/* After `done` layers that aggregate, rows so many hops away are known, or, of the last ones,
 * needed. */
static int hops_after(const struct preload *p, int h, int done)
{
    const int first = done - done % h, last = first + h < p->layers ? first + h : p->layers;
    return last - done;
}

/* The ranks of a group, and the rows that they have of a vertex. */
struct shared {
    double ranks, clones;
};

/* Two sparse products, but one with the input, whose gradient nobody needs. */
static double seconds_of_sums(const struct preload *p, const struct sl_rates *rates, int h,
                              int done, const struct sl_layer_shape *layer, struct shared by)
{
    const int from = hops_after(p, h, done), to = from - 1;
    const bool first = layer == p->model.layer;
    const double width = (double)(layer->in < layer->out ? layer->in : layer->out);
    const double walks = !first || layer->in >= layer->out ? 2.0 : 1.0;
    return walks * sl_rates_spmm_seconds(rates, (double)p->entries[from] / by.ranks,
                                         (double)p->rows[to] * by.clones / by.ranks,
                                         width * p->size, (double)p->rows[from]);
}

/* A layer's products with weights, three for each weight, but two in the first layer, and passes
 * over its rows, on each rank. */
static double seconds_of_rows(const struct preload *p, const struct sl_rates *rates, double rows,
                              const struct sl_layer_shape *layer)
{
    enum { PASSES = 6 };
    const bool first = layer == p->model.layer;
    const double products = (first ? 2.0 : 3.0) * sl_layer_shape_weights(layer);
    const double in = (double)layer->in, out = (double)layer->out;
    const double product = first && p->features > 0.0 && (p->cached || layer->in >= layer->out)
                               ? sl_rates_features_seconds(rates, rows * p->features, out, p->kept)
                               : 2.0 * rows * in * out / rates->gemm;
    return products * product + PASSES * rows * out * p->size / rates->stream;
}

/* A layer computes the rows that layers after it read. */
static double seconds_of_layers(const struct preload *p, const struct sl_rates *rates, int h,
                                struct shared by)
{
    double seconds = 0.0;
    int done = 0;
    for (int l = 0; l < p->model.count; l++) {
        const struct sl_layer_shape *layer = &p->model.layer[l];
        int hops = done < p->layers ? hops_after(p, h, done) : 0;
        if (counts(p, layer)) {
            const bool aggregated = l == 0 && p->cached;
            if (!aggregated)
                seconds += seconds_of_sums(p, rates, h, done, layer, by);
            hops -= aggregated || layer->in < layer->out; /* else the dense product comes first */
            done++;
        }
        seconds += seconds_of_rows(p, rates, (double)p->rows[hops] * by.clones / by.ranks, layer);
    }
    return seconds;
}

static double weight_bytes(const struct sl_layer_shape *layer)
{
    return 4.0 * (double)(sl_layer_shape_rows(layer) * sl_layer_shape_columns(layer));
}

/* Gradients of weights go to the first group along a tree, and weights come back along another. */
static double seconds_of_weights(const struct preload *p, const struct sl_link *link, double groups)
{
    double seconds = 0.0;
    for (int l = 0; l < p->model.count; l++)
        if (weight_bytes(&p->model.layer[l]) > 0.0)
            seconds += 2.0 * ceil(log2(groups)) *
                       sl_link_seconds(link, weight_bytes(&p->model.layer[l]), 1.0);
    return seconds;
}

/* Rows come every h layers, but after the last one, and their gradients go back. The next layer
 * waits for them: nothing is hidden. */
static int times_of(const struct preload *p, int h)
{
    return p->layers > 0 ? 2 * ((p->layers - 1) / h) : 0;
}

static int64_t outer_rows(const struct preload *p, int h)
{
    return p->rows[h] - p->rows[0];
}

/* A group among others of as many ranks. */
struct among {
    double outer; /* its rows of outer vertices */
    double ranks, groups;
    double columns; /* of its grid: a rank gets rows of ranks that have its column */
};

static double seconds_of_messages(const struct preload *p, const struct sl_link *link, int h,
                                  const struct among *among)
{
    const double peers = (among->groups - 1.0) * among->ranks / among->columns;
    double seconds = seconds_of_weights(p, link, among->groups);
    int done = 0;
    for (int l = 0; among->outer > 0.0 && l < p->model.count; l++) {
        const double row = (double)p->model.layer[l].out * p->size;
        done += counts(p, &p->model.layer[l]);
        if (counts(p, &p->model.layer[l]) && done % h == 0 && done < p->layers)
            seconds += 2.0 * sl_link_seconds(link, among->outer / among->ranks * row, peers);
    }
    return seconds;
}

/* Of the group's grid; a grid that the group cannot have is refused later. */
static double columns_of(const struct sl_batches *b)
{
    const struct sl_assembly how = sl_config_assembly(b->config);
    struct sl_grid grid;
    const int code =
        sl_grid_choose(how.distribution, how.replication, how.grid, b->own.ranks, &grid);
    return code ? 1.0 : grid.columns;
}

/* The slowest group's. */
static double slowest(struct sl_runtime *rt, double seconds)
{
    static const double NANO = 1e9;
    return (double)-sl_runtime_least(rt, -llround(seconds * NANO)) / NANO;
}

static void predict(const struct sl_batches *b, struct preload *p)
{
    struct sl_runtime *rt = b->rt;
    struct sl_rates rates;
    sl_rates_of_machine(sl_runtime_computing_cores(rt), rt->process->ranks_here, rt->cache_bytes,
                        &rates);
    const struct sl_link link = sl_rates_link(&rates, rt->ranks);
    const double ranks = b->own.ranks;
    struct among among = {.ranks = ranks, .groups = rt->ranks / ranks, .columns = columns_of(b)};
    for (int h = 1; h <= p->most; h++) {
        among.outer = (double)outer_rows(p, h);
        p->computing[h] = slowest(rt, seconds_of_layers(p, &rates, h, (struct shared){ranks, 1.0}));
        p->messages[h] = slowest(rt, seconds_of_messages(p, &link, h, &among));
    }
}

/* As many hops as layers where nothing is faster. */
static int fastest(const struct preload *p)
{
    int best = p->most;
    for (int h = p->most - 1; h >= 1; h--)
        if (p->computing[h] + p->messages[h] < p->computing[best] + p->messages[best])
            best = h;
    return best;
}

static int settle(const struct preload *p, struct sl_config *config, char *reason)
{
    char text[32] = "all";
    const int best = fastest(p), all = p->most;
    if (best < all)
        snprintf(text, sizeof text, "%d", best);
    snprintf(reason, SL_PRELOAD_REASON,
             "%s: %.2g s of computing and %.2g s of messages predicted for an epoch; one hop: %.2g "
             "s and %.2g s; all hops: %.2g s and %.2g s",
             text, p->computing[best], p->messages[best], p->computing[1], p->messages[1],
             p->computing[all], p->messages[all]);
    return sl_config_set_text(&config->preload_hops, text);
}

static int choose(struct sl_batches *b, struct sl_config *config, char *reason)
{
    struct preload p = {0};
    int code = sl_runtime_agree(b->rt, open_preload(&p, b->source, config));
    if (!code)
        code = sl_batches_cut(b);
    if (!code)
        code =
            sl_runtime_agree(b->rt, count_hops(b->source, b->vertex, b->set_cut[b->how.sets], &p));
    if (!code)
        predict(b, &p);
    if (!code)
        code = sl_runtime_agree(b->rt, settle(&p, config, reason));
    close_preload(&p);
    return code;
}

/* Clones that never meet have no sums to refresh with. Groups of unlike sizes may cut columns in
 * unlike ways. */
static bool may_refresh(const struct sl_batches *b)
{
    const char *name = b->config->distribution;
    const bool cuts = b->config->grid || strcmp(name, "2d") == 0 || strcmp(name, "3d") == 0;
    const int64_t least = sl_runtime_least(b->rt, b->own.ranks),
                  most = -sl_runtime_least(b->rt, -b->own.ranks);
    return sl_config_delay(b->config) != SL_DELAY_NEVER && (!cuts || least == most);
}

int sl_preload_choose(struct sl_runtime *rt, const struct sl_source *source,
                      struct sl_config *config, char *reason)
{
    struct sl_batches b = {.config = config, .source = source, .rt = rt};
    int code = sl_batches_parse(config, &b.how);
    if (code || !b.how.chooses_preload)
        return code;
    code = sl_batches_group(&b);
    if (!code && b.groups.count > 1 && may_refresh(&b))
        code = choose(&b, config, reason);
    else if (!code)
        code = sl_runtime_agree(rt, sl_config_set_text(&config->preload_hops, "all"));
    sl_batches_destroy(&b);
    return code;
}

/* ---- Groups that are not there ---- */

/* Rows of copies, and their gradients. A message has rows of one hop, and one column of them. */
static void add_rows(const struct preload *p, const struct sl_preload_groups *how, int h,
                     struct sl_preload *of)
{
    const double others = how->groups - 1, ranks = how->each,
                 columns = fmax(of->inside.grid.columns, 1.0);
    const double pairs = ranks * ranks / columns * others * h; /* at most */
    const double outer = of->inside.outer;
    int done = 0;
    for (int l = 0; outer > 0.0 && l < p->model.count; l++) {
        done += counts(p, &p->model.layer[l]);
        if (counts(p, &p->model.layer[l]) && done % h == 0 && done < p->layers) {
            of->between_bytes += 2.0 * outer * (double)p->model.layer[l].out * p->size;
            of->between_messages += 2.0 * pairs;
        }
    }
}

/* Columns that are normalised: sums go to the first group, statistics and the sum of the gradients
 * come back. */
static void add_statistics(const struct sl_layer_shape *layer, double others, struct sl_preload *of)
{
    const double width = (double)layer->out;
    of->between_bytes +=
        others * (2.0 * width * (sizeof(double) + sizeof(float))) + others * weight_bytes(layer);
    of->between_messages += 3.0 * others;
}

/* Gradients and values of weights, and sums of metrics, once for each group but the first. */
static void add_sums(const struct preload *p, const struct sl_preload_groups *how,
                     struct sl_preload *of)
{
    const double others = how->groups - 1;
    for (int l = 0; l < p->model.count; l++) {
        const struct sl_layer_shape *layer = &p->model.layer[l];
        of->between_bytes += 2.0 * others * weight_bytes(layer);
        of->between_messages += 2.0 * others * (weight_bytes(layer) > 0.0);
        if (layer->kind->averages)
            add_statistics(layer, others, of);
    }
    of->between_bytes += 2.0 * others * SL_METRICS * (double)sizeof(double);
    of->between_messages += 2.0 * others;
}

/* A number of hops with a distribution inside groups. */
struct way {
    struct sl_preload of;
    int groups; /* that have been added */
};

struct ways {
    int count;
    struct way *way; // (count)
};

/* Find the way with the distribution of a prediction, or add it. NULL: no memory. */
static struct way *find_way(struct ways *ways, const struct sl_group_prediction *like)
{
    for (struct way *way = ways->way; way < ways->way + ways->count; way++)
        if (way->of.inside.kind == like->kind &&
            memcmp(&way->of.inside.grid, &like->grid, sizeof like->grid) == 0)
            return way;
    struct way *longer = realloc(ways->way, ((size_t)ways->count + 1) * sizeof *longer);
    if (!longer)
        return NULL;
    ways->way = longer;
    longer[ways->count] = (struct way){.of = {.inside = {.kind = like->kind, .grid = like->grid}}};
    memcpy(longer[ways->count].of.inside.name, like->name, sizeof like->name);
    return &longer[ways->count++];
}

static void add_inside(const struct sl_group_prediction *one, struct sl_group_prediction *all)
{
    all->bytes += one->bytes;
    all->messages += one->messages;
    all->seconds = fmax(all->seconds, one->seconds);
    all->rows = one->rows;
    all->outer = one->outer;
}

static void add_group(const struct preload *p, const struct sl_preload_groups *how, int h,
                      const struct sl_group_prediction *one, struct way *way)
{
    struct sl_preload *of = &way->of;
    const struct sl_link link = sl_rates_link(how->inside.rates, how->groups * how->each);
    const struct among among = {.outer = one->outer,
                                .ranks = how->each,
                                .groups = how->groups,
                                .columns = fmax(of->inside.grid.columns, 1.0)};
    const double inner = fmax((double)p->rows[0], 1.0), entries = (double)p->entries[h];
    const struct shared by = {how->each, one->rows / fmax((double)p->rows[h], 1.0)};
    of->hops = h;
    of->share = fmax(of->share, (double)outer_rows(p, h) / inner);
    of->redundant = fmax(of->redundant, (entries - (double)p->entries[1]) / fmax(entries, 1.0));
    of->rows += times_of(p, h) * one->outer;
    of->computing = fmax(of->computing, seconds_of_layers(p, how->inside.rates, h, by));
    of->messages = fmax(of->messages, seconds_of_messages(p, &link, h, &among));
    add_inside(one, &of->inside);
    add_rows(p, how, h, of);
    way->groups++;
}

static int no_memory_for_ways(int count)
{
    return sl_error(SL_ERR_SYSTEM, "no memory for %d predictions", count + 1);
}

/* Whether nothing travels inside a group, whatever the distribution. */
static bool is_alone(const struct sl_preload_groups *how, int64_t vertices)
{
    return how->each == 1 || vertices <= how->each;
}

/* Add such a group to all ways, which other groups have found, or to one. */
static int add_alone(const struct preload *p, const struct sl_preload_groups *how, int h,
                     struct ways *ways)
{
    const struct sl_group_prediction none = {.rows = (double)p->rows[h],
                                             .outer = (double)outer_rows(p, h)};
    if (ways->count == 0 && !find_way(ways, &none))
        return no_memory_for_ways(0);
    for (int w = 0; w < ways->count; w++)
        add_group(p, how, h, &none, &ways->way[w]);
    return 0;
}

static int add_shared(struct sl_runtime *rt, const struct sl_source *source,
                      const struct preload *p, const struct sl_preload_groups *how, int h,
                      const int64_t *vertex, int64_t vertices, struct ways *ways)
{
    const struct sl_selection_options hops = {.hops = h < p->layers ? h : p->layers};
    struct sl_selection group = {0};
    struct sl_group_options options = how->inside;
    struct sl_group_prediction *list = NULL;
    int count = 0;
    options.refresh = h < p->layers ? h : 0;
    int code = sl_select(source, vertex, vertices, &hops, &group);
    if (p->read)
        group.source.aggregated_from = source;
    if (!code)
        code = sl_group_predict(rt, &group.source, &options, &list, &count);
    for (int k = 0; !code && k < count; k++) {
        struct way *way = find_way(ways, &list[k]);
        if (way)
            add_group(p, how, h, &list[k], way);
        else
            code = no_memory_for_ways(ways->count);
    }
    free(list);
    sl_selection_free(&group);
    return code;
}

/* Whether fewer hops need as few refreshings. */
static bool is_left_out(const struct preload *p, int h)
{
    return h > 1 && times_of(p, h) == times_of(p, h - 1);
}

static int predict_group(struct sl_runtime *rt, struct preload *p, const struct sl_source *source,
                         const struct sl_preload_groups *how, const int64_t *vertex,
                         int64_t vertices, struct ways *ways)
{
    int code = count_hops(source, vertex, vertices, p);
    for (int h = 1; !code && h <= p->most; h++)
        if (!is_left_out(p, h))
            code = is_alone(how, vertices)
                       ? add_alone(p, how, h, &ways[h])
                       : add_shared(rt, source, p, how, h, vertex, vertices, &ways[h]);
    return code;
}

/* The way with the least time of those that all groups have; NULL: there is none. */
static const struct way *find_fastest(const struct ways *ways, int groups)
{
    const struct way *best = NULL;
    for (const struct way *way = ways->way; way < ways->way + ways->count; way++)
        if (way->groups == groups &&
            (!best || sl_preload_seconds(&way->of) < sl_preload_seconds(&best->of)))
            best = way;
    return best;
}

static int list_fastest(const struct preload *p, const struct sl_preload_groups *how,
                        const struct ways *ways, struct sl_preload *list, int *count)
{
    for (int h = 1; h <= p->most; h++) {
        const struct way *best = find_fastest(&ways[h], how->groups);
        if (is_left_out(p, h))
            continue;
        if (!best)
            return sl_error(SL_ERR_USAGE,
                            "--distribution %s: not with groups of %d ranks, or not with this "
                            "--order or model",
                            how->inside.distribution ? how->inside.distribution : "auto",
                            how->each);
        list[*count] = best->of;
        add_sums(p, how, &list[(*count)++]);
    }
    return 0;
}

/* Groups that share their graphs first: they find the ways. `ways` (most + 1): of each number of
 * hops. */
static int predict_groups(struct sl_runtime *rt, struct preload *p, const struct sl_source *source,
                          const int32_t *part, const struct sl_preload_groups *how, int64_t *vertex,
                          struct ways *ways)
{
    int code = 0;
    for (int k = 0; !code && k < 2 * how->groups; k++) {
        const int g = k % how->groups;
        int64_t vertices = 0;
        for (int64_t v = 0; v < source->vertices; v++)
            if (part[v] == g)
                vertex[vertices++] = v;
        if (is_alone(how, vertices) == (k >= how->groups))
            code = predict_group(rt, p, source, how, vertex, vertices, ways);
    }
    return code;
}

int sl_preload_predict(struct sl_runtime *rt, const struct sl_source *source,
                       const struct sl_config *config, const struct sl_preload_groups *how,
                       struct sl_preload **list, int *count)
{
    struct preload p = {0};
    const size_t n = (size_t)source->vertices + 1;
    int32_t *part = malloc(n * sizeof *part);
    int64_t *vertex = malloc(n * sizeof *vertex);
    int code = open_preload(&p, source, config);
    struct ways *ways = calloc((size_t)p.most + 1, sizeof *ways);
    *count = 0;
    *list = calloc((size_t)p.most + 1, sizeof **list);
    if (!code && (!part || !vertex || !*list || !ways))
        code = sl_error(SL_ERR_SYSTEM, "no memory for the parts of %lld vertices",
                        (long long)source->vertices);
    if (!code)
        code = sl_source_find_parts(rt, source, how->groups, (uint64_t)config->seed,
                                    config->partition, part);
    if (!code)
        code = predict_groups(rt, &p, source, part, how, vertex, ways);
    if (!code)
        code = list_fastest(&p, how, ways, *list, count);
    for (int h = 0; ways && h <= p.most; h++)
        free(ways[h].way);
    free(ways);
    close_preload(&p);
    free(part);
    free(vertex);
    return code;
}
