/* Rabbit Order takes time once and saves some in each epoch:
 *
 *     cost = entries · seconds to find and apply it
 *     gain = epochs · aggregations · entries · row bytes · misses · what it saves of them · seconds
 *
 * where `misses` is measured in windows of rows as they are now: of the rows that they gather,
 * those that no cache of CACHE_BYTES can have. docs/PERFORMANCE.md has the measurements. */
#include "train/order_choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

/* Of a core, per entry: to find the order, to gather rows in it and to sort them; and what one core
 * does while the others wait. */
static const double ENTRY_SECONDS = 90e-9, ALONE_SECONDS = 10e-9;
/* Of a core, and of a GPU (not measured), for a byte of a row that misses the cache. */
static const double BYTE_SECONDS = 10e-12, GPU_BYTE_SECONDS = 0.25e-12;
/* Of the misses there are, the part that Rabbit Order saves: half to three quarters where graphs
 * have communities, none where they have not. */
static const double SAVED = 0.5;
/* What a core has of a last-level cache in effect, however large that is. */
static const int64_t CACHE_BYTES = 16 << 20;
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

static int measure_misses(const struct sl_source *source, int64_t capacity, double *misses)
{
    struct window w = {.source = source, .capacity = capacity};
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

/* Forward and back, but for the first layer, whose input needs no gradient. */
static double aggregations(const struct sl_config *config)
{
    return 2.0 * (double)config->layers - 1.0;
}

static void predict(const struct sl_runtime *rt, const struct sl_source *source,
                    const struct sl_config *config, struct sl_order_choice *out)
{
    const double cores = rt->all_cores > 0 ? (double)rt->all_cores : 1.0;
    const double entries = (double)source->adjacency.indices.count;
    const double second = rt->all_gpus > 0 ? GPU_BYTE_SECONDS / rt->all_gpus : BYTE_SECONDS / cores;
    const double bytes =
        aggregations(config) * entries * (double)config->hidden * (double)sizeof(float);
    out->cost = entries * (ENTRY_SECONDS / cores + ALONE_SECONDS);
    out->gain = (double)config->epochs * bytes * out->misses * SAVED * second;
    const bool pays = out->gain > out->cost;
    out->order = pays ? "rabbit" : "none";
    snprintf(
        out->reason, sizeof out->reason,
        "%s: %.0f %% of gathered rows miss the cache; rabbit is predicted to take %.2g s and to "
        "save %.2g s in %lld epoch%s",
        out->order, 100.0 * out->misses, out->cost, out->gain, (long long)config->epochs,
        config->epochs == 1 ? "" : "s");
}

int sl_order_choose(const struct sl_runtime *rt, const struct sl_source *source,
                    const struct sl_config *config, struct sl_order_choice *out)
{
    const int64_t capacity = CACHE_BYTES / (config->hidden * (int64_t)sizeof(float)) + 1;
    const char *reason = rt->ranks > 1 ? "one of several ranks would need the whole graph"
                         : sl_config_vertex_cut(config) ? "a vertex-cut has none"
                         : source->vertices <= capacity ? "all rows fit the cache"
                                                        : NULL;
    *out = (struct sl_order_choice){.order = "none"};
    if (reason) {
        snprintf(out->reason, sizeof out->reason, "none: %s", reason);
        return 0;
    }
    const int code = measure_misses(source, capacity, &out->misses);
    if (!code)
        predict(rt, source, config, out);
    return code;
}
