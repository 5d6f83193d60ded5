/* Rabbit Order takes time once and saves some in each epoch:
 *
 *     cost = seconds to find and apply it, some for each entry
 *     gain = epochs · (aggregations · entries · row bytes · seconds of a byte
 *                      + what its rows are out of balance)
 *
 * The seconds of a byte follow from the gathered rows that miss a core's own cache, or all caches.
 * Windows of rows, in the order of the file, tell how many do.
 *
 * Tiles have equal shares of all entries. Where vertices are sorted, one tile has most entries of
 * the adjacency, another most features, and workers wait for each other in each operation. Rabbit
 * Order mixes the vertices. docs/measurements/PERFORMANCE.md has the measurements.
 *
 * On several ranks in 1D, random order makes stages even, and makes all ranks need all rows. It is
 * taken where the predicted epoch is shorter by a tenth (predict/random_order.c).
 *
 * On several ranks otherwise, rank 0 finds the order, where it reads the whole graph to cut it into
 * parts. In each part the vertices are then in this order. Parts are balanced by themselves, and
 * the rows of a part may fit a cache where the rows of all parts do not. */
#include "predict/order_choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/rates.h"

/* Seconds of a core for each entry: to find the order, gather rows and sort them, on all cores; and
 * on one core, for which the others wait. */
static const double ENTRY_SECONDS = 90e-9, ALONE_SECONDS = 10e-9;
/* On several ranks METIS cuts the graph on one core. Rabbit Order saves METIS so many seconds for
 * each entry, measured on two ranks of one core. */
static const double METIS_ENTRY_SECONDS = 65e-9;
/* For a graph of any size. */
static const double START_SECONDS = 5e-3;
/* Caches, and the seconds that Rabbit Order saves for each byte of a row that misses the cache. The
 * seconds of a core were measured, the seconds of a GPU not. Half to three quarters of the misses
 * go where graphs have communities, none elsewhere. A core's part of a last-level cache hardly
 * depends on the cache's size; GPUs' own caches are small. */
enum { OF_CORE, OF_ALL, CACHES };
static const int64_t CACHE_BYTES[CACHES] = {1 << 20, 16 << 20};
static const double BYTE_SECONDS[CACHES] = {6e-12, 5e-12},
                    GPU_BYTE_SECONDS[CACHES] = {0, 0.125e-12};
/* Vertices with more neighbours have them in more communities: a core's cache holds few of those.
 */
static const double FEW_NEIGHBOURS = 32.0;
/* A window has at most so many entries for each row of the cache. */
enum { WINDOWS = 8, ENTRIES_PER_ROW = 16 };

struct window {
    const struct sl_source *source;
    int64_t capacity; /* rows */
    int32_t *seen;    // (vertices): the last window that gathered the row
    int64_t entries, distinct;
};

/* Rows from vertex `v` on, until the cache is full. Nobody has checked the numbers yet. */
static void look_at_window(struct window *w, int64_t v, int32_t number)
{
    const struct sl_npy *indices = &w->source->adjacency.indices;
    const struct sl_npy *indptr = &w->source->adjacency.indptr;
    int64_t e = sl_npy_integer(indptr, v), rows = 0;
    if (e < 0 || e > indices->count)
        return;
    const int64_t most = e + ENTRIES_PER_ROW * w->capacity;
    for (; e < indices->count && e < most && rows < w->capacity; e++) {
        const int64_t c = sl_npy_integer(indices, e);
        if (c < 0 || c >= w->source->vertices)
            continue;
        rows += w->seen[c] != number;
        w->seen[c] = number;
        w->entries++;
    }
    w->distinct += rows;
}

static int64_t rows_of(const struct sl_training *training, int64_t bytes)
{
    return bytes / (training->assembly.model.hidden * (int64_t)sizeof(float)) + 1;
}

static int measure_misses(const struct sl_source *source, int ranks, int64_t capacity,
                          double *misses)
{
    struct window w = {.source = source, .capacity = capacity};
    *misses = 0.0;
    if (source->vertices / ranks <= capacity)
        return 0;
    w.seen = calloc((size_t)source->vertices, sizeof *w.seen);
    if (!w.seen)
        return sl_error(SL_ERR_SYSTEM, "no memory to look at %lld vertices",
                        (long long)source->vertices);
    for (int32_t k = 0; k < WINDOWS; k++)
        look_at_window(&w, source->vertices * k / WINDOWS, k + 1);
    free(w.seen);
    *misses = w.entries > 0 ? (double)w.distinct / (double)w.entries : 0.0;
    return 0;
}

/* ---- Balance ---- */

/* Largest over mean of the entries of a CSR matrix in shares of rows. Nobody has checked the row
 * pointers yet. */
static double imbalance(const struct sl_npy *indptr, const int64_t *cut, int shares)
{
    const double all = (double)sl_npy_integer(indptr, cut[shares]);
    double most = 0.0;
    for (int s = 0; s < shares; s++)
        most = fmax(most, (double)sl_npy_integer(indptr, cut[s + 1]) -
                              (double)sl_npy_integer(indptr, cut[s]));
    return all > 0.0 ? fmin(fmax(most * shares / all, 1.0), shares) : 1.0;
}

/* Rows with equal shares of all entries, as tiles have (assembly/partition.h), for each core. */
static void cut_shares(const struct sl_source *source, int64_t *cut, int shares)
{
    const int64_t n = source->vertices;
    const double all = (double)(n + sl_source_entries_before(source, n));
    cut[0] = 0;
    for (int s = 1; s <= shares; s++) {
        int64_t low = cut[s - 1], high = n;
        while (low < high) {
            const int64_t v = low + (high - low) / 2;
            if ((double)(v + sl_source_entries_before(source, v)) < all * s / shares)
                low = v + 1;
            else
                high = v;
        }
        cut[s] = low;
    }
    cut[shares] = n;
}

double sl_order_sum_seconds(const struct sl_source *source, const struct sl_training *training)
{
    const double n = (double)source->vertices,
                 row = (double)training->assembly.model.hidden * sizeof(float);
    return sl_assembly_aggregations(&training->assembly) *
           sl_rates_spmm_seconds(&sl_rates_usual, (double)source->adjacency.indices.count, n, row,
                                 n);
}

enum { LEAST_VERTICES = 1000 }; /* smaller graphs wait for tasks alone */

/* Returns the seconds of an epoch in which cores wait for the core with most entries. */
static double waiting_seconds(const struct sl_source *source, const struct sl_training *training,
                              int shares)
{
    enum { MOST_SHARES = 256 };
    int64_t cut[MOST_SHARES + 1];
    if (shares < 2 || shares > MOST_SHARES || source->vertices < LEAST_VERTICES)
        return 0.0;
    cut_shares(source, cut, shares);
    double seconds = (imbalance(&source->adjacency.indptr, cut, shares) - 1.0) *
                     sl_order_sum_seconds(source, training);
    if (source->feature_form == SL_FEATURES_CSR)
        seconds +=
            (imbalance(&source->features_csr.indptr, cut, shares) - 1.0) * 2.0 *
            sl_rates_features_seconds(&sl_rates_usual, (double)source->features_csr.indices.count,
                                      (double)training->assembly.model.hidden, 1.0);
    return seconds / shares;
}

/* ---- The choice ---- */

/* Seconds of an epoch that are saved where rows are in a cache. */
static double gather_seconds(const struct sl_runtime *rt, const struct sl_source *source,
                             const struct sl_training *training, const double misses[CACHES])
{
    const double cores = rt->all_cores > 0 ? (double)rt->all_cores : 1.0;
    const double entries = (double)source->adjacency.indices.count;
    const double few = fmin(1.0, FEW_NEIGHBOURS * (double)source->vertices / fmax(entries, 1.0));
    const double bytes = sl_assembly_aggregations(&training->assembly) * entries *
                         (double)training->assembly.model.hidden * (double)sizeof(float);
    double seconds = 0.0;
    for (int c = 0; c < CACHES; c++)
        seconds +=
            bytes * misses[c] * (c == OF_CORE ? few : 1.0) *
            (rt->all_gpus > 0 ? GPU_BYTE_SECONDS[c] / rt->all_gpus : BYTE_SECONDS[c] / cores);
    return seconds;
}

static void predict(const struct sl_runtime *rt, const struct sl_source *source,
                    const struct sl_training *training, struct sl_order_choice *out)
{
    const double cores = rt->all_cores > 0 ? (double)rt->all_cores : 1.0;
    const double entries = (double)source->adjacency.indices.count;
    const double waiting =
        rt->all_gpus > 0 || rt->ranks > 1 ? 0.0 : waiting_seconds(source, training, rt->all_cores);
    const double own_cores = fmax(cores / rt->ranks, 1.0),
                 saved = rt->ranks > 1 ? METIS_ENTRY_SECONDS : 0.0;
    out->cost = START_SECONDS +
                entries * fmax(ENTRY_SECONDS / own_cores + ALONE_SECONDS - saved, ALONE_SECONDS);
    out->gain =
        (double)training->epochs * (gather_seconds(rt, source, training, out->misses) + waiting);
    const bool pays = out->gain > out->cost;
    out->order = pays ? "rabbit" : "none";
    snprintf(out->reason, sizeof out->reason,
             "%s: of gathered rows %.0f %% miss a core's cache and %.0f %% all caches; rabbit is "
             "predicted to take %.2g s and to save %.2g s in %lld epoch%s",
             out->order, 100.0 * out->misses[OF_CORE], 100.0 * out->misses[OF_ALL], out->cost,
             out->gain, (long long)training->epochs, training->epochs == 1 ? "" : "s");
}

/* ---- Random order in 1D ---- */

/* Return the share of rows, gathered at random, that a cache of `capacity` rows misses.
 * measure_misses counts the same share in windows. */
static double random_misses(const struct sl_source *source, int ranks, int64_t capacity)
{
    const double n = (double)source->vertices, c = (double)capacity;
    return source->vertices / ranks <= capacity ? 0.0 : -c / (n * log1p(-c / n));
}

/* Shorter epochs than this gains are within the prediction's error. */
static const double LEAST_GAIN = 0.1;
/* To sort the entries of rows that come from anywhere. */
static const double MOVED_SECONDS = 20e-9;

static void predict_random(const struct sl_runtime *rt, const struct sl_source *source,
                           const struct sl_training *training, const struct sl_random_order *random,
                           struct sl_order_choice *out)
{
    const double cores = rt->all_cores > 0 ? (double)rt->all_cores : 1.0;
    double misses[CACHES];
    for (int c = 0; c < CACHES; c++)
        misses[c] = random_misses(source, rt->ranks, rows_of(training, CACHE_BYTES[c]));
    const double now = random->seconds[0] + gather_seconds(rt, source, training, out->misses),
                 then = random->seconds[1] + gather_seconds(rt, source, training, misses);
    out->cost = START_SECONDS + (double)source->adjacency.indices.count * MOVED_SECONDS / cores;
    out->gain = (double)training->epochs * (now - then);
    if (then < (1.0 - LEAST_GAIN) * now && out->gain > out->cost &&
        source->vertices >= LEAST_VERTICES)
        out->order = "random";
    snprintf(
        out->reason, sizeof out->reason,
        "%s: stages of 1d take %.2f times as long as even ones, in random order %.2f; an epoch "
        "is predicted to take %.3g ms, in random order %.3g",
        out->order, random->stages[0], random->stages[1], 1e3 * now, 1e3 * then);
}

int sl_order_choose(const struct sl_runtime *rt, const struct sl_source *source,
                    const struct sl_training *training, bool whole,
                    const struct sl_random_order *random, struct sl_order_choice *out)
{
    const bool spread = random && random->counted;
    const char *reason = training->assembly.owners.kind->clones ? "a vertex-cut has none"
                         : rt->ranks == 1                       ? NULL
                         : training->inexact ? "a vertex-cut of several ranks has none"
                         : !whole && !spread ? "one of several ranks would need the whole graph"
                                             : NULL;
    int code = 0;
    *out = (struct sl_order_choice){.order = "none"};
    if (reason) {
        snprintf(out->reason, sizeof out->reason, "none: %s", reason);
        return 0;
    }
    for (int c = 0; !code && c < CACHES; c++)
        code =
            measure_misses(source, rt->ranks, rows_of(training, CACHE_BYTES[c]), &out->misses[c]);
    if (!code && spread)
        predict_random(rt, source, training, random, out);
    else if (!code)
        predict(rt, source, training, out);
    return code;
}
