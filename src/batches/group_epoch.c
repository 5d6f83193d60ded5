#include "batches/group_epoch.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "data/aggregated.h"
#include "graphs/cost.h"

/* Whether a layer aggregates and counts in hops. */
static bool counts(const struct sl_group_epoch *e, const struct sl_layer_shape *layer)
{
    return !layer->kind->alone && !(e->read && layer == e->model.layer);
}

static void list_layers(struct sl_group_epoch *e, const struct sl_source *source,
                        const struct sl_config *config)
{
    const struct sl_model_shape shape = sl_config_shape(config, source->features, source->classes);
    sl_model_list(&shape, &e->model);
    e->layers = 0;
    for (int l = 0; !e->model.failed && l < e->model.count; l++)
        e->layers += counts(e, &e->model.layer[l]);
    e->most = e->layers > 1 ? e->layers : 1;
}

void sl_group_epoch_sum_features(struct sl_group_epoch *e, const struct sl_source *source,
                                 const int32_t *row, int64_t rows)
{
    e->features = (double)sl_source_feature_entries(source) / fmax((double)source->vertices, 1.0);
    if (e->features == 0.0 || !e->cached)
        return;
    const double sums = sl_aggregated_entries(source, row, rows);
    e->features = sl_operands_stay_sparse((int64_t)(sums * (double)rows), rows, source->features)
                      ? sums
                      : 0.0;
}

int sl_group_epoch_open(struct sl_group_epoch *e, const struct sl_source *source,
                        const struct sl_config *config, const struct sl_batches_options *options)
{
    *e = (struct sl_group_epoch){.cached = sl_config_aggregates(config),
                                 .read = sl_batches_read_aggregated(config, options)};
    list_layers(e, source, config);
    e->size = (double)sl_type_size(sl_config_assembly(config).type);
    sl_group_epoch_sum_features(e, source, NULL, source->vertices);
    e->kept = 1.0 - sl_config_input_dropout(config);
    const size_t count = (size_t)e->most + 1;
    e->rows = calloc(count, sizeof *e->rows);
    e->entries = calloc(count, sizeof *e->entries);
    return !e->model.failed && e->rows && e->entries
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for the hops of %d layers", e->layers);
}

void sl_group_epoch_close(struct sl_group_epoch *e)
{
    free(e->model.layer);
    free(e->rows);
    free(e->entries);
    *e = (struct sl_group_epoch){0};
}

void sl_group_epoch_count(struct sl_group_epoch *e, const struct sl_selection *all)
{
    const struct sl_source *source = &all->source;
    e->inner = source->selection.inner;
    e->inner_entries = sl_npy_integer(&source->adjacency.indptr, e->inner);
    for (int h = 0; h <= e->most; h++) {
        const int64_t before = h > 0 ? sl_selection_within(all, h - 1) : 0,
                      first = source->selection.hop_cut ? before : source->vertices;
        e->rows[h] = source->selection.hop_cut ? sl_selection_within(all, h) : source->vertices;
        e->entries[h] = sl_npy_integer(&source->adjacency.indptr, first);
    }
}

/* Return how many hops away rows are known after `done` layers that aggregate. After the last
 * refreshing, count only hops that later layers need. */
static int hops_after(const struct sl_group_epoch *e, int h, int done)
{
    const int first = done - done % h, last = first + h < e->layers ? first + h : e->layers;
    return last - done;
}

/* Return the columns of the rows that a walk of a layer moves. Relations multiply rows that have
 * been moved. Without work of its own on entries, a layer has the narrower rows moved both ways. */
static double width_of(const struct sl_layer_shape *layer, bool back)
{
    const bool narrow =
        layer->kind->seconds ? layer->relations > 0 && !back : layer->in < layer->out;
    return (double)(narrow ? layer->in : layer->out);
}

/* Return the seconds of a layer's sparse products: two, or three of them. The input needs no
 * gradient, so a product with the input counts once. A walk back goes from the rows of the output
 * to those of the input. */
static double seconds_of_sums(const struct sl_group_epoch *e, const struct sl_rates *rates, int h,
                              int done, const struct sl_layer_shape *layer,
                              struct sl_group_ranks by)
{
    const int reach = hops_after(e, h, done);
    const bool first = layer == e->model.layer;
    const int walks = layer->reducer->again                                       ? 3
                      : !first || layer->kind->seconds || layer->in >= layer->out ? 2
                                                                                  : 1;
    double seconds = 0.0;
    for (int w = 0; w < walks; w++) {
        const bool back = w == SL_WALK_BACK;
        const int from = back ? reach - 1 : reach, to = back ? reach : reach - 1;
        const struct sl_walk_size walk = {.rates = rates,
                                          .way = (enum sl_walk_way)w,
                                          .first = first,
                                          .columns = 1,
                                          .entries = (double)e->entries[reach] / by.ranks,
                                          .rows = (double)e->rows[to] * by.clones / by.ranks};
        seconds +=
            sl_cost_walk(layer, &walk, width_of(layer, back) * e->size, (double)e->rows[from]);
    }
    return seconds;
}

/* Return the seconds of a layer's products with weights and of passes over its rows, on each rank.
 */
static double seconds_of_rows(const struct sl_group_epoch *e, const struct sl_rates *rates,
                              double rows, const struct sl_layer_shape *layer)
{
    const bool first = layer == e->model.layer,
               sparse = first && (e->cached || layer->in >= layer->out);
    const struct sl_layer_work weight = {.rates = rates,
                                         .n = rows,
                                         .entries = sparse ? rows * e->features : 0.0,
                                         .in = (double)layer->in,
                                         .out = (double)layer->out,
                                         .kept = e->kept,
                                         .first = first};
    return layer->kind->weights.count * (layer->inputs > 1 ? layer->inputs : 1) *
               sl_cost_weight(&weight, 1) +
           sl_cost_passes(rates, layer, rows, e->size);
}

/* Each layer computes the rows that later layers read. */
double sl_group_epoch_computing(const struct sl_group_epoch *e, const struct sl_rates *rates, int h,
                                struct sl_group_ranks by)
{
    double seconds = 0.0;
    int done = 0;
    for (int l = 0; l < e->model.count; l++) {
        const struct sl_layer_shape *layer = &e->model.layer[l];
        int hops = done < e->layers ? hops_after(e, h, done) : 0;
        if (counts(e, layer)) {
            const bool aggregated = l == 0 && e->cached;
            if (!aggregated)
                seconds += seconds_of_sums(e, rates, h, done, layer, by);
            hops -= aggregated || layer->in < layer->out; /* if not, the GEMM is first */
            done++;
        }
        seconds += seconds_of_rows(e, rates, (double)e->rows[hops] * by.clones / by.ranks, layer);
    }
    return seconds;
}

/* The next layer waits, so nothing overlaps the messages of a layer that is refreshed. */
struct sl_group_refreshed sl_group_epoch_refreshed(const struct sl_group_epoch *e, int h)
{
    struct sl_group_refreshed refreshed = {0, 0.0};
    int done = 0;
    for (int l = 0; h > 0 && l < e->model.count; l++) {
        const struct sl_layer_shape *layer = &e->model.layer[l];
        if (!counts(e, layer) || ++done % h != 0 || done == e->layers)
            continue;
        refreshed.times += 2;
        refreshed.bytes += 2.0 * (double)layer->out * e->size;
    }
    return refreshed;
}

int64_t sl_group_epoch_outer(const struct sl_group_epoch *e, int h)
{
    return e->rows[h] - e->inner;
}

double sl_group_epoch_messages(const struct sl_group_epoch *e, const struct sl_link *link, int h,
                               const struct sl_group_among *among)
{
    const struct sl_group_refreshed refreshed = sl_group_epoch_refreshed(e, h);
    const double peers = (among->groups - 1.0) * among->ranks / among->columns;
    double seconds = among->outer > 0.0
                         ? sl_link_seconds(link, among->outer / among->ranks * refreshed.bytes,
                                           refreshed.times * peers)
                         : 0.0;
    for (int l = 0; l < e->model.count; l++)
        seconds += sl_cost_trees(&e->model.layer[l], link, among->groups);
    return seconds;
}
