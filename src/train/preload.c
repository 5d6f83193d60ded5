#include "train/preload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "train/batch.h"

/* What a group has with each number of hops, and what an epoch takes. */
struct preload {
    int layers;        /* that aggregate */
    double width;      /* of hidden units */
    double size;       /* bytes of a number */
    int64_t *rows;     // (layers + 1): at most h hops away
    int64_t *entries;  // (layers + 1): in rows that are fewer hops away
    double *computing; // (layers + 1): seconds of the slowest group
    double *messages;  // (layers + 1): likewise
};

static int count_layers(const struct sl_source *source, const struct sl_config *config)
{
    const struct sl_model_shape shape = sl_config_shape(config, source->features, source->classes);
    struct sl_layer_list list = {0};
    int layers = 0;
    shape.model->list(&shape, &list);
    for (int l = 0; !list.failed && l < list.count; l++)
        layers += !list.layer[l].kind->alone;
    free(list.layer);
    return layers;
}

static int open_preload(struct preload *p, const struct sl_source *source,
                        const struct sl_config *config)
{
    p->layers = count_layers(source, config);
    p->width = (double)sl_config_hidden(config);
    p->size = (double)sl_type_size(sl_config_assembly(config).type);
    const size_t count = (size_t)p->layers + 1;
    p->rows = calloc(count, sizeof *p->rows);
    p->entries = calloc(count, sizeof *p->entries);
    p->computing = calloc(count, sizeof *p->computing);
    p->messages = calloc(count, sizeof *p->messages);
    return p->rows && p->entries && p->computing && p->messages
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for the hops of %d layers", p->layers);
}

static void close_preload(struct preload *p)
{
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
    for (int h = 0; !code && h <= p->layers; h++) {
        const int64_t before = h > 0 ? sl_selection_within(&all, h - 1) : 0;
        p->rows[h] = sl_selection_within(&all, h);
        p->entries[h] = sl_npy_integer(&all.source.adjacency.indptr, before);
    }
    sl_selection_free(&all);
    return code;
}

/* Two sparse products and three dense ones in a layer, and passes over its rows, on each rank. */
static double seconds_of_layer(const struct preload *p, const struct sl_rates *rates, int h,
                               double ranks)
{
    enum { PASSES = 6 };
    const double rows = (double)p->rows[h], row = p->width * p->size;
    return 2.0 * sl_rates_spmm_seconds(rates, (double)p->entries[h] / ranks, rows / ranks, row,
                                       rows) +
           3.0 * 2.0 * rows / ranks * p->width * p->width / rates->gemm +
           PASSES * rows / ranks * row / rates->stream;
}

/* Rows come every h layers, but after the last one, and their gradients go back. */
static int times_of(const struct preload *p, int h)
{
    return 2 * ((p->layers - 1) / h);
}

static double seconds_of_messages(const struct preload *p, const struct sl_link *link, int h,
                                  double ranks, double others)
{
    const double outer = (double)(p->rows[h] - p->rows[0]) / ranks;
    const double seconds =
        others * link->seconds + outer * p->width * p->size / link->bytes_per_second;
    return outer > 0.0 ? times_of(p, h) * seconds : 0.0;
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
    sl_rates_of_machine(rt->process->workers, rt->process->ranks_here, rt->cache_bytes, &rates);
    const struct sl_link link = sl_rates_link(&rates, rt->ranks);
    const double ranks = b->own.ranks;
    for (int h = 1; h <= p->layers; h++) {
        p->computing[h] = slowest(rt, p->layers * seconds_of_layer(p, &rates, h, ranks));
        p->messages[h] =
            slowest(rt, seconds_of_messages(p, &link, h, ranks, rt->ranks - b->own.ranks));
    }
}

/* As many hops as layers where nothing is faster. */
static int fastest(const struct preload *p)
{
    int best = p->layers;
    for (int h = p->layers - 1; h >= 1; h--)
        if (p->computing[h] + p->messages[h] < p->computing[best] + p->messages[best])
            best = h;
    return best;
}

static int settle(const struct preload *p, struct sl_config *config, char *reason)
{
    char text[32] = "all";
    const int best = fastest(p), all = p->layers;
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

/* Copies have whole rows. */
static bool may_refresh(const struct sl_config *config)
{
    return !config->grid && !sl_config_kind(config)->clones &&
           strcmp(config->distribution, "2d") != 0 && strcmp(config->distribution, "3d") != 0;
}

int sl_preload_choose(struct sl_runtime *rt, const struct sl_source *source,
                      struct sl_config *config, char *reason)
{
    struct sl_batches b = {.config = config, .source = source, .rt = rt};
    int code = sl_batches_parse(config, &b.how);
    if (code || !b.how.chooses_preload)
        return code;
    code = sl_batches_group(&b);
    if (!code && b.groups.count > 1 && may_refresh(config))
        code = choose(&b, config, reason);
    else if (!code)
        code = sl_runtime_agree(rt, sl_config_set_text(&config->preload_hops, "all"));
    sl_batches_destroy(&b);
    return code;
}

/* ---- Groups that are not there ---- */

static void add_group(const struct preload *p, const struct sl_rates *rates, int groups, int each,
                      struct sl_preload *list)
{
    const struct sl_link link = sl_rates_link(rates, groups * each);
    for (int h = 1; h <= p->layers; h++) {
        struct sl_preload *of = &list[h - 1];
        const double inner = fmax((double)p->rows[0], 1.0),
                     outer = (double)(p->rows[h] - p->rows[0]),
                     entries = fmax((double)p->entries[h], 1.0);
        of->hops = h;
        of->share = fmax(of->share, outer / inner);
        of->redundant = fmax(of->redundant, (entries - (double)p->entries[1]) / entries);
        of->rows += times_of(p, h) * outer;
        of->computing = fmax(of->computing, p->layers * seconds_of_layer(p, rates, h, each));
        of->messages =
            fmax(of->messages, seconds_of_messages(p, &link, h, each, (double)(groups - 1) * each));
    }
}

static int predict_groups(struct preload *p, const struct sl_source *source, const int32_t *part,
                          int groups, int each, const struct sl_rates *rates, int64_t *vertex,
                          struct sl_preload *list)
{
    int code = 0;
    for (int g = 0; !code && g < groups; g++) {
        int64_t count = 0;
        for (int64_t v = 0; v < source->vertices; v++)
            if (part[v] == g)
                vertex[count++] = v;
        code = count_hops(source, vertex, count, p);
        if (!code)
            add_group(p, rates, groups, each, list);
    }
    return code;
}

int sl_preload_predict(struct sl_runtime *rt, const struct sl_source *source,
                       const struct sl_config *config, int groups, int each,
                       const struct sl_rates *rates, struct sl_preload **list, int *count)
{
    struct preload p = {0};
    const size_t n = (size_t)source->vertices + 1;
    int32_t *part = malloc(n * sizeof *part);
    int64_t *vertex = malloc(n * sizeof *vertex);
    int code = open_preload(&p, source, config);
    *count = p.layers;
    *list = calloc((size_t)p.layers + 1, sizeof **list);
    if (!code && (!part || !vertex || !*list))
        code = sl_error(SL_ERR_SYSTEM, "no memory for the parts of %lld vertices",
                        (long long)source->vertices);
    if (!code)
        code = sl_source_find_parts(rt, source, groups, (uint64_t)config->seed, config->partition,
                                    part);
    if (!code)
        code = predict_groups(&p, source, part, groups, each, rates, vertex, *list);
    close_preload(&p);
    free(part);
    free(vertex);
    return code;
}
