#include "graphs/cost.h"

#include <math.h>

#include "graphs/layer_jump.h"

/* ---- A layer ---- */

/* Return the seconds of a product of the input, of which `entries` are stored (0: all), with a
 * weight matrix. */
static double product(const struct sl_layer_work *w, double entries, double kept)
{
    return entries > 0.0 ? sl_rates_features_seconds(w->rates, entries, w->out, kept)
                         : 2.0 * w->n * w->in * w->out / w->rates->gemm;
}

double sl_cost_layer(const struct sl_layer_work *w, enum sl_product_order order)
{
    const double row = order == SL_GEMM_FIRST ? w->out : w->in,
                 back = w->back[order == SL_SPMM_FIRST];
    const double gemms = 2.0 * product(w, 0.0, 1.0), inputs = 2.0 * product(w, w->entries, w->kept);
    if (order == SL_AGGREGATED)
        return w->entries > 0.0 ? (w->weights - 1.0) * inputs + 2.0 * product(w, w->aggregated, 1.0)
                                : 0.0;
    double seconds = sl_rates_spmm_seconds(w->rates, w->nnz, w->n, w->bytes * row, w->n);
    /* A first layer whose input is aggregated needs no gradient of it. */
    if (order == SL_GEMM_FIRST || !w->first)
        seconds += sl_rates_spmm_seconds(w->rates, w->nnz, w->n, back * row, w->n);
    if (w->entries <= 0.0)
        return seconds;
    if (order == SL_GEMM_FIRST)
        return seconds + w->weights * inputs;
    return seconds + w->weights * gemms +
           sl_rates_densify_seconds(w->rates, w->entries, w->bytes * w->n * w->in, w->kept);
}

double sl_cost_dense_layer(const struct sl_layer_work *w, enum sl_product_order order)
{
    struct sl_layer_work dense = *w;
    dense.entries = dense.aggregated = 0.0;
    return sl_cost_layer(&dense, order) + w->weights * 2.0 * product(w, 0.0, 1.0) +
           sl_rates_dropout_seconds(w->rates, w->n * w->in, w->bytes, w->kept);
}

double sl_cost_weight(const struct sl_layer_work *w, int passes)
{
    return (passes + (w->first ? 1 : 2)) * product(w, w->entries, w->kept);
}

double sl_cost_passes(const struct sl_rates *rates, const struct sl_layer_shape *shape, double rows,
                      double bytes)
{
    enum { PASSES = 6 };
    return (PASSES * bytes + sl_jump_max_bytes(shape)) * rows * (double)shape->out / rates->stream;
}

double sl_cost_walk(const struct sl_layer_shape *shape, const struct sl_walk_size *walk,
                    double row_bytes, double table_rows)
{
    return sl_rates_spmm_seconds(walk->rates, walk->entries, walk->rows, row_bytes, table_rows) +
           sl_cost_entries(shape, walk);
}

double sl_cost_entries(const struct sl_layer_shape *shape, const struct sl_walk_size *walk)
{
    const double numbers =
        (double)(shape->relations > 0 ? SL_RELATION_FEATURES : shape->edge_features);
    return walk->entries * 4.0 * numbers / walk->rates->stream +
           (shape->kind->seconds ? shape->kind->seconds(shape, walk) : 0.0);
}

double sl_cost_parameter_bytes(const struct sl_layer_shape *shape)
{
    return 4.0 * (double)(sl_layer_shape_rows(shape) * sl_layer_shape_columns(shape));
}

double sl_cost_trees(const struct sl_layer_shape *shape, const struct sl_link *link, double ranks)
{
    const double bytes = sl_cost_parameter_bytes(shape);
    return bytes > 0.0 ? 2.0 * ceil(log2(ranks)) * sl_link_seconds(link, bytes, 1.0) : 0.0;
}

/* ---- Row tiles of an epoch ---- */

/* Seconds on a core [0] and on a GPU [1]. Rates of cores were fitted to epochs of ten datasets with
 * hidden 16 to 256 and 1 to 8 tiles, on two cores of an Intel Xeon with AVX2. An entry of the
 * adjacency costs the same at any width, beside its multiplications. The rate of a GPU is for 4
 * bytes at 4 TB/s: an H100 took 3.5 TB/s of gathered rows, some of them from its cache. */
static const double MULTIPLY_ADD_SECONDS[] = {0.04e-9, 1e-12}, ENTRY_SECONDS[] = {0.5e-9, 0.0},
                    BUFFER_SECONDS = 0.5e-6;
/* A row of the output costs as much as this many more entries. */
static const double ENTRIES_PER_ROW = 1.5;
/* Share of a task's length for which several workers idle at the end of an operation. Tasks on
 * cores differ by chance: the share grows by as much whenever the workers double. */
static const double IMBALANCE = 0.03, IMBALANCE_OF_GPUS = 0.1;
/* Seconds that an operation of several workers ends late, because the next operation's tasks wait
 * for all workers. */
static const double MEETING_SECONDS = 8e-6;
/* Passes of a gradient of features' [0] or the identity's [1] weights through the caches, once a
 * tile, and their rate. A tile writes few rows of the identity's gradient, but the sums pass over
 * all of it. EXPOSED: share of messages that the first tiles' work cannot hide. VISIT_SECONDS: an
 * aggregation visits each of a tile's rows once for each tile of another rank with entries there.
 * Fitted to two ranks on two cores and thirteen graphs. */
static const double GRADIENT_PASSES[] = {3.0, 2.0}, GRADIENT_BYTES_PER_SECOND = 8e9, EXPOSED = 0.2,
                    VISIT_SECONDS = 16e-9;
/* Aggregations of an epoch that travel: two forward, one backward. */
static const double AGGREGATIONS = 3.0;
enum { OPERATIONS = 16 }; /* operations of an epoch */

double sl_cost_multiplications(const struct sl_epoch_work *e)
{
    return (4.0 * (e->entries + ENTRIES_PER_ROW * e->vertices) * e->width +
            3.0 * e->features * e->width) *
               MULTIPLY_ADD_SECONDS[e->gpus] +
           4.0 * e->entries * ENTRY_SECONDS[e->gpus];
}

double sl_cost_tasks(double tiles)
{
    return OPERATIONS * tiles * sl_rates_usual.task + 8.0 * tiles * tiles * BUFFER_SECONDS;
}

double sl_cost_epoch(const struct sl_epoch_work *e, double tiles, double met)
{
    const double workers = (double)e->workers, ranks = (double)e->ranks;
    const bool alone = e->workers <= e->ranks, sends = !e->gpus && e->ranks > 1;
    const double busy = fmin(tiles, workers),
                 imbalance = e->gpus ? IMBALANCE_OF_GPUS : IMBALANCE * log2(workers),
                 idle = alone ? 0.0 : imbalance * busy / tiles,
                 meetings = alone || e->gpus || tiles <= ranks ? 0.0 : OPERATIONS * MEETING_SECONDS;
    const double gradient = e->gpus ? 0.0
                                    : GRADIENT_PASSES[e->identity] * 4.0 * e->rows * e->width /
                                          GRADIENT_BYTES_PER_SECOND;
    /* A link quicker than the usual one, to which tiles were fitted, counts as the usual one. */
    const double usual = sl_rates_usual.network.bytes_per_second,
                 link = e->link > 0.0 ? fmin(e->link, usual) : usual;
    const double messages =
        sends ? EXPOSED * AGGREGATIONS * 4.0 * e->vertices * e->width / ranks / link : 0.0;
    const double visit = sends ? AGGREGATIONS * e->vertices * VISIT_SECONDS : 0.0;
    /* 3 equal tasks on 2 workers take as long as 4. */
    const double rounds = ceil(tiles / workers) * busy / tiles;
    return (sl_cost_multiplications(e) * fmax(rounds, 1.0) * (1.0 + idle) + sl_cost_tasks(tiles) +
            gradient * tiles + visit * met) /
               busy +
           messages * ranks / tiles + meetings;
}
