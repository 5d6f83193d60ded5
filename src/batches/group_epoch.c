#include "batches/group_epoch.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "data/aggregated.h"
#include "graphs/layer.h"
#include "graphs/layer_jump.h"

bool sl_group_epoch_counts(const struct sl_group_epoch *e, const struct sl_layer_shape *layer)
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
        e->layers += sl_group_epoch_counts(e, &e->model.layer[l]);
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
        seconds += sl_rates_spmm_seconds(rates, walk.entries, walk.rows,
                                         width_of(layer, back) * e->size, (double)e->rows[from]) +
                   sl_layer_walk_seconds(layer, &walk);
    }
    return seconds;
}

/* Return the seconds of a layer's dense products and of passes over its rows, on each rank. A
 * weight takes three products; in the first layer, two. */
static double seconds_of_rows(const struct sl_group_epoch *e, const struct sl_rates *rates,
                              double rows, const struct sl_layer_shape *layer)
{
    enum { PASSES = 6 };
    const bool first = layer == e->model.layer;
    const double products =
        (first ? 2.0 : 3.0) * layer->kind->weights.count * (layer->inputs > 1 ? layer->inputs : 1);
    const double in = (double)layer->in, out = (double)layer->out;
    const double product = first && e->features > 0.0 && (e->cached || layer->in >= layer->out)
                               ? sl_rates_features_seconds(rates, rows * e->features, out, e->kept)
                               : 2.0 * rows * in * out / rates->gemm;
    return products * product +
           (PASSES * e->size + sl_jump_max_bytes(layer)) * rows * out / rates->stream;
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
        if (sl_group_epoch_counts(e, layer)) {
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

/* Return 2 (rows, and their gradients) for every h-th layer that aggregates, except the last one.
 * The next layer waits, so nothing overlaps these messages. */
int sl_group_epoch_times(const struct sl_group_epoch *e, int h)
{
    return e->layers > 0 ? 2 * ((e->layers - 1) / h) : 0;
}

int64_t sl_group_epoch_outer(const struct sl_group_epoch *e, int h)
{
    return e->rows[h] - e->inner;
}

double sl_group_epoch_messages(const struct sl_group_epoch *e, const struct sl_link *link, int h,
                               const struct sl_group_among *among)
{
    const double peers = (among->groups - 1.0) * among->ranks / among->columns;
    double seconds = 0.0;
    int done = 0;
    for (int l = 0; l < e->model.count; l++)
        seconds += sl_layer_tree_seconds(&e->model.layer[l], link, among->groups);
    for (int l = 0; among->outer > 0.0 && l < e->model.count; l++) {
        const double row = (double)e->model.layer[l].out * e->size;
        done += sl_group_epoch_counts(e, &e->model.layer[l]);
        if (sl_group_epoch_counts(e, &e->model.layer[l]) && done % h == 0 && done < e->layers)
            seconds += 2.0 * sl_link_seconds(link, among->outer / among->ranks * row, peers);
    }
    return seconds;
}
