#include "groups/group_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "batches/batch.h"
#include "batches/group_epoch.h"
#include "batches/sets.h"
#include "codelets/metrics.h"
#include "core/error.h"
#include "graphs/cost.h"

/* Predicted seconds of a step: the slowest group's computing, traffic inside it, and messages;
 * `all`: the sum of all groups. */
struct step {
    double computing, inside, messages, all;
};

/* The plan of an epoch with one distribution inside groups. */
struct way {
    struct sl_group_plan of;
    struct step step; /* the current step, which graphs are added to */
    int64_t graphs;   /* graphs added so far */
};

struct ways {
    int count;
    struct way *way; // (count)
};

/* Vertices and adjacency entries of a group's graphs, over an epoch. */
struct sizes {
    double inner, outer, entries, redundant;
};

struct planning {
    struct sl_runtime *rt;
    const struct sl_source *source;
    const struct sl_config *config;
    const struct sl_group_plan_options *options;
    struct sl_batches *group; // (groups): vertices and sets of each
    int64_t *inner;           // (vertices): inner vertices of a graph
    struct sizes *sizes;      // (groups)
    struct sl_group_epoch epoch;
    int hops; /* preloaded hops; 0: hops of the batches' options */
    struct ways ways;
    bool *done;      // (groups): the group's graph of the step was added
    int64_t trained; /* training vertices of the step's graphs */
};

/* Return how many hops of rows a group holds. */
static int hops_of(const struct planning *p)
{
    return p->hops > 0 ? p->hops : p->epoch.most;
}

/* ---- A group in a step ---- */

/* Add the rows of copies, and their gradients, that travel between groups. A message has rows of
 * one hop, for one column of ranks. */
static void add_rows(const struct planning *p, double outer, struct sl_group_plan *of)
{
    const struct sl_group_refreshed refreshed = sl_group_epoch_refreshed(&p->epoch, p->hops);
    const double others = p->options->groups - 1, ranks = p->options->each,
                 columns = fmax(of->inside.grid.columns, 1.0);
    const double pairs = ranks * ranks / columns * others * p->hops; /* pairs of ranks, at most */
    if (outer <= 0.0)
        return;
    of->rows += refreshed.times * outer;
    of->between_bytes += refreshed.bytes * outer;
    of->between_messages += refreshed.times * pairs;
}

static void add_seconds(const struct planning *p, const struct sl_group_prediction *one,
                        struct way *way)
{
    const struct sl_group_epoch *e = &p->epoch;
    const struct sl_rates *rates = p->options->inside.rates;
    const struct sl_link link = sl_rates_link(rates, p->options->groups * p->options->each);
    const struct sl_group_among among = {.outer = p->hops > 0 ? one->outer : 0.0,
                                         .ranks = p->options->each,
                                         .groups = p->options->groups,
                                         .columns = fmax(way->of.inside.grid.columns, 1.0)};
    const int h = hops_of(p);
    const struct sl_group_ranks by = {p->options->each, one->rows / fmax((double)e->rows[h], 1.0)};
    const double computing = sl_group_epoch_computing(e, rates, h, by),
                 messages = sl_group_epoch_messages(e, &link, h, &among);
    way->step.computing = fmax(way->step.computing, computing);
    way->step.inside = fmax(way->step.inside, one->seconds);
    way->step.messages = fmax(way->step.messages, messages);
    way->step.all += computing + one->seconds + messages;
}

static void add_graph(const struct planning *p, const struct sl_group_prediction *one,
                      struct way *way)
{
    way->of.inside.bytes += one->bytes;
    way->of.inside.messages += one->messages;
    add_rows(p, one->outer, &way->of);
    add_seconds(p, one, way);
    way->graphs++;
}

/* ---- Distributions ---- */

/* Return the way with the distribution of a prediction; add it if missing. A new way begins with
 * the graphs inside which nothing travelled, since all distributions share them. NULL: no memory.
 */
static struct way *find_way(struct ways *ways, const struct sl_group_prediction *like)
{
    struct way fresh = {.graphs = 0};
    for (int w = 0; w < ways->count; w++) {
        struct way *way = &ways->way[w];
        if (way->of.inside.kind == like->kind &&
            memcmp(&way->of.inside.grid, &like->grid, sizeof like->grid) == 0)
            return way;
        if (!way->of.inside.kind)
            fresh = *way;
    }
    struct way *longer = realloc(ways->way, ((size_t)ways->count + 1) * sizeof *longer);
    if (!longer)
        return NULL;
    ways->way = longer;
    fresh.of.inside.kind = like->kind;
    fresh.of.inside.grid = like->grid;
    memcpy(fresh.of.inside.name, like->name, sizeof like->name);
    longer[ways->count] = fresh;
    return &longer[ways->count++];
}

static int no_memory_for_ways(int count)
{
    return sl_error(SL_ERR_SYSTEM, "no memory for %d predictions", count + 1);
}

/* Add a graph inside which nothing travels to the ways of all distributions. */
static int add_alone(struct planning *p)
{
    const struct sl_group_epoch *e = &p->epoch;
    const int h = hops_of(p);
    const struct sl_group_prediction none = {.rows = (double)e->rows[h],
                                             .outer = (double)sl_group_epoch_outer(e, h)};
    if (p->ways.count == 0 && !find_way(&p->ways, &none))
        return no_memory_for_ways(0);
    for (int w = 0; w < p->ways.count; w++)
        add_graph(p, &none, &p->ways.way[w]);
    return 0;
}

static int add_shared(struct planning *p, const struct sl_source *graph)
{
    struct sl_group_options options = p->options->inside;
    struct sl_group_prediction *list = NULL;
    int count = 0;
    options.refresh = p->hops < p->epoch.layers ? p->hops : 0;
    int code = sl_group_predict(p->rt, graph, &options, &list, &count);
    for (int k = 0; !code && k < count; k++) {
        struct way *way = find_way(&p->ways, &list[k]);
        if (way)
            add_graph(p, &list[k], way);
        else
            code = no_memory_for_ways(p->ways.count);
    }
    free(list);
    return code;
}

static void add_sizes(struct planning *p, const struct sl_source *graph, struct sizes *sizes)
{
    const double entries = (double)graph->adjacency.indices.count;
    sizes->inner += (double)p->epoch.inner;
    sizes->outer += (double)(graph->vertices - p->epoch.inner);
    sizes->entries += entries;
    sizes->redundant += entries - (double)p->epoch.inner_entries;
    p->trained += graph->splits.split[SL_SPLIT_TRAIN].count;
}

/* Select the graph of a group in a step, and count its rows for each number of hops. */
static int select_graph(struct planning *p, const struct sl_batches *b, int step,
                        struct sl_selection *graph)
{
    const int64_t inner = sl_batches_take(b, 1, step, p->inner);
    const int layers = p->epoch.layers;
    int code = sl_batch_select(b, p->inner, inner, 0, layers, graph);
    if (code)
        return code;
    sl_group_epoch_count(&p->epoch, graph);
    if (p->hops == 0 || p->hops >= layers)
        return 0;
    sl_selection_free(graph);
    return sl_batch_select(b, p->inner, inner, 0, p->hops, graph);
}

/* Add the graph of group g if nothing travels inside it (`alone`), or if something does (not
 * `alone`). */
static int predict_graph(struct planning *p, int g, int step, bool alone)
{
    struct sl_selection graph = {0};
    int code = select_graph(p, &p->group[g], step, &graph);
    p->done[g] =
        p->options->each == 1 || graph.source.vertices <= p->options->each ? alone : !alone;
    if (!code && p->done[g]) {
        add_sizes(p, &graph.source, &p->sizes[g]);
        code = alone ? add_alone(p) : add_shared(p, &graph.source);
    }
    sl_selection_free(&graph);
    return code;
}

/* ---- An epoch ---- */

/* Add the graphs of a step. Graphs inside which rows travel come first, since they find the ways.
 */
static int predict_step(struct planning *p, int step)
{
    int code = 0;
    memset(p->done, 0, (size_t)p->options->groups * sizeof *p->done);
    p->trained = 0;
    for (int alone = p->options->each == 1; !code && alone < 2; alone++)
        for (int g = 0; !code && g < p->options->groups; g++)
            if (!p->done[g])
                code = predict_graph(p, g, step, alone);
    return code;
}

/* Add the step's seconds to the epoch. All groups end a step together, so the mean group waits for
 * the slowest. */
static void end_step(const struct planning *p)
{
    for (struct way *way = p->ways.way; way < p->ways.way + p->ways.count; way++) {
        const struct step *step = &way->step;
        way->of.computing += step->computing;
        way->of.inside.seconds += step->inside;
        way->of.messages += step->messages;
        way->of.waiting +=
            step->computing + step->inside + step->messages - step->all / p->options->groups;
        way->step = (struct step){0};
    }
}

/* Return the fastest way that holds all `graphs` graphs, or NULL if there is none. */
static const struct way *find_fastest(const struct ways *ways, int64_t graphs)
{
    const struct way *best = NULL;
    for (const struct way *way = ways->way; way < ways->way + ways->count; way++)
        if (way->graphs == graphs &&
            (!best || sl_group_plan_seconds(&way->of) < sl_group_plan_seconds(&best->of)))
            best = way;
    return best;
}

/* Add the messages of a norm of columns: sums go to the first group, statistics and the summed
 * gradients come back. */
static void add_statistics(const struct sl_layer_shape *layer, double times,
                           struct sl_group_plan *of)
{
    const double width = (double)layer->out;
    of->between_bytes +=
        times * (2.0 * width * (sizeof(double) + sizeof(float)) + sl_cost_parameter_bytes(layer));
    of->between_messages += 3.0 * times;
}

/* Add the gradients and values of weights, and sums of metrics. In each step, every group but the
 * first exchanges them with it. */
static void add_sums(const struct planning *p, int steps, struct sl_group_plan *of)
{
    const double times = (double)(p->options->groups - 1) * steps;
    for (int l = 0; l < p->epoch.model.count; l++) {
        const struct sl_layer_shape *layer = &p->epoch.model.layer[l];
        const double bytes = sl_cost_parameter_bytes(layer);
        of->between_bytes += 2.0 * times * bytes;
        of->between_messages += 2.0 * times * (bytes > 0.0);
        if (layer->kind->vectors.averages)
            add_statistics(layer, times, of);
    }
    of->between_bytes += 2.0 * times * SL_METRICS * (double)sizeof(double);
    of->between_messages += 2.0 * times;
}

static int no_distribution(const struct planning *p)
{
    const struct sl_distribution_name *named = p->options->inside.distribution;
    return sl_error(SL_ERR_USAGE,
                    "--distribution %s: not with groups of %d ranks, or not with this --order or "
                    "model",
                    named ? named->name : "auto", p->options->each);
}

static int take_fastest(struct planning *p, int steps, int trained, struct sl_group_plan *out)
{
    const struct way none = {.graphs = 0}, *best = &none;
    if (trained > 0)
        best = find_fastest(&p->ways, (int64_t)p->options->groups * trained);
    if (!best)
        return no_distribution(p);
    *out = best->of;
    out->hops = p->hops;
    out->steps = steps;
    for (int g = 0; g < p->options->groups; g++) {
        const struct sizes *sizes = &p->sizes[g];
        if (sizes->inner > 0.0)
            out->share = fmax(out->share, sizes->outer / sizes->inner);
        out->redundant = fmax(out->redundant, sizes->redundant / fmax(sizes->entries, 1.0));
    }
    add_sums(p, trained, out);
    return 0;
}

/* Add a step and count it in *trained. Leave out a step without a training vertex. */
static int add_step(struct planning *p, int step, int *trained)
{
    const size_t size = (size_t)p->ways.count * sizeof *p->ways.way;
    struct ways before = {p->ways.count, malloc(size + 1)};
    if (!before.way)
        return no_memory_for_ways(p->ways.count);
    if (size > 0)
        memcpy(before.way, p->ways.way, size);
    const int code = predict_step(p, step);
    if (p->trained > 0) {
        end_step(p);
        ++*trained;
        free(before.way);
    } else {
        free(p->ways.way);
        p->ways = before;
    }
    return code;
}

static int predict_epoch(struct planning *p, int hops, struct sl_group_plan *out)
{
    const int steps = sl_batches_options_steps(&p->group->options);
    int code = 0, trained = 0;
    p->hops = hops;
    memset(p->sizes, 0, (size_t)p->options->groups * sizeof *p->sizes);
    for (int s = 0; !code && s < steps; s++)
        code = add_step(p, s, &trained);
    if (!code)
        code = take_fastest(p, steps, trained, out);
    free(p->ways.way);
    p->ways = (struct ways){0};
    return code;
}

/* ---- All epochs ---- */

static void forget_groups(struct planning *p)
{
    for (int g = 0; p->group && g < p->options->groups; g++)
        sl_batches_destroy(&p->group[g]);
    free(p->group);
    p->group = NULL;
    sl_group_epoch_close(&p->epoch);
}

static int cut_groups(struct planning *p, const int32_t *part,
                      const struct sl_batches_options *batches)
{
    const int groups = p->options->groups;
    p->group = calloc((size_t)groups, sizeof *p->group);
    int code = p->group ? sl_group_epoch_open(&p->epoch, p->source, p->config, batches)
                        : sl_error(SL_ERR_SYSTEM, "no memory for %d groups", groups);
    for (int g = 0; !code && g < groups; g++) {
        p->group[g] = (struct sl_batches){.config = p->config,
                                          .source = p->source,
                                          .rt = p->rt,
                                          .options = *batches,
                                          .groups = {.count = 1}};
        code = sl_batches_cut_part(&p->group[g], part, g);
    }
    return code;
}

/* Whether one hop less needs as few refreshings. */
static bool is_left_out(const struct planning *p, int h)
{
    return h > 1 && sl_group_epoch_refreshed(&p->epoch, h).times ==
                        sl_group_epoch_refreshed(&p->epoch, h - 1).times;
}

static int add_epoch(struct planning *p, int hops, struct sl_group_plan **list, int *count)
{
    struct sl_group_plan *longer = realloc(*list, ((size_t)*count + 1) * sizeof *longer);
    if (!longer)
        return no_memory_for_ways(*count);
    *list = longer;
    const int code = predict_epoch(p, hops, &longer[*count]);
    *count += code == 0;
    return code;
}

static int predict_exact(struct planning *p, const int32_t *part, struct sl_group_plan **list,
                         int *count)
{
    static const struct sl_batches_kind full = {.name = "full"};
    const struct sl_batches_options exact = {
        .kind = &full, .sets = 1, .each = 1, .hops = SL_ALL_HOPS};
    int code = cut_groups(p, part, &exact);
    for (int h = 1; !code && h <= p->epoch.most; h++)
        if (!is_left_out(p, h))
            code = add_epoch(p, h, list, count);
    forget_groups(p);
    return code;
}

static int predict_batches(struct planning *p, const int32_t *part,
                           const struct sl_batches_options *batches, struct sl_group_plan **list,
                           int *count)
{
    int code = cut_groups(p, part, batches);
    if (!code)
        code = add_epoch(p, 0, list, count);
    forget_groups(p);
    return code;
}

int sl_group_plan_predict(struct sl_runtime *rt, const struct sl_source *source,
                          const struct sl_config *config,
                          const struct sl_group_plan_options *options, struct sl_group_plan **list,
                          int *count)
{
    struct planning p = {.rt = rt, .source = source, .config = config, .options = options};
    const size_t n = (size_t)source->vertices + 1;
    const struct sl_batches_options batches = sl_config_batches(config);
    int32_t *part = calloc(n, sizeof *part);
    p.inner = malloc(n * sizeof *p.inner);
    p.sizes = malloc((size_t)options->groups * sizeof *p.sizes);
    p.done = malloc((size_t)options->groups * sizeof *p.done);
    *count = 0;
    *list = NULL;
    int code = 0;
    if (!part || !p.inner || !p.sizes || !p.done)
        code = sl_error(SL_ERR_SYSTEM, "no memory for the parts of %lld vertices",
                        (long long)source->vertices);
    if (!code && options->groups > 1)
        code = sl_source_find_parts(rt, source, options->groups, (uint64_t)config->training.seed,
                                    config->ranks.partition, part);
    if (!code && config->steps.groups.given)
        code = predict_exact(&p, part, list, count);
    if (!code && !batches.automatic && (batches.sampled || batches.sets > 1))
        code = predict_batches(&p, part, &batches, list, count);
    free(part);
    free(p.inner);
    free(p.sizes);
    free(p.done);
    return code;
}
