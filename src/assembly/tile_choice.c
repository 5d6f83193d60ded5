#include "assembly/tile_choice.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/rates.h"
#include "core/tile.h"

/* ---- What an epoch costs ---- */

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
 * tile, and their rate. EXPOSED: share of messages that the first tiles' work cannot hide. Fitted
 * to two ranks on two cores and thirteen graphs. */
static const double GRADIENT_PASSES[] = {3.0, 2.0}, GRADIENT_BYTES_PER_SECOND = 8e9,
                    MESSAGE_BYTES_PER_SECOND = 2e9, EXPOSED = 0.2, VISIT_SECONDS = 16e-9;
/* Aggregations of an epoch that travel: two forward, one backward. */
static const double AGGREGATIONS = 3.0;
/* Largest share of GPUs' time that tasks may cost, so that cores get some tasks, too. */
static const double COST_OF_SHARING = 0.1;

/* Return the modelled seconds of an epoch's multiplications in a two-layer network, on one worker.
 */
static double work_seconds(const struct sl_source *source, int64_t width, bool gpu)
{
    const double n = (double)source->vertices, w = (double)width;
    const double nnz = (double)source->adjacency.indices.count + n;
    double features = n;
    if (source->feature_form == SL_FEATURES_CSR)
        features = (double)source->features_csr.indices.count;
    else if (source->feature_form == SL_FEATURES_DENSE)
        features = n * (double)source->features / 16.0; /* the BLAS is 16 times faster */
    return (4.0 * (nnz + ENTRIES_PER_ROW * n) * w + 3.0 * features * w) *
               MULTIPLY_ADD_SECONDS[gpu] +
           4.0 * nnz * ENTRY_SECONDS[gpu];
}

/* Parts of an epoch's seconds, on one worker, that any number of tiles scales. */
struct tile_costs {
    double work;     /* all multiplications */
    double gradient; /* writing and summing one tile's gradient of the first layer's weights */
    double messages; /* messages of one rank with one tile that nothing overlaps */
    double visit;    /* visiting all rows, for each tile of another rank that they meet */
    double meeting;  /* waiting of several workers after each operation */
    double imbalance;
    int64_t workers, ranks;
};

/* Return the seconds that a tile's gradient of the first weights costs. A task writes it; the sums
 * of a rank and of all ranks read and write it. A tile writes few rows of the identity's gradient,
 * but the sums pass over all of it. */
static double gradient_seconds(const struct sl_source *source, int64_t width)
{
    const bool identity = source->feature_form == SL_FEATURES_IDENTITY;
    const int64_t rows = identity ? source->vertices : source->features;
    return GRADIENT_PASSES[identity] * 4.0 * (double)rows * (double)width /
           GRADIENT_BYTES_PER_SECOND;
}

/* Return the seconds of a rank's messages in all aggregations that nothing hides. A link quicker
 * than the fitted rate counts as the fitted rate, since it would make fewer tiles than fit. */
static double message_seconds(const struct sl_source *source, int64_t width, int64_t ranks,
                              int64_t link)
{
    const bool slow = link > 0 && (double)link < MESSAGE_BYTES_PER_SECOND;
    return EXPOSED * AGGREGATIONS * 4.0 * (double)source->vertices * (double)width / (double)ranks /
           (slow ? (double)link : MESSAGE_BYTES_PER_SECOND);
}

/* Return the seconds of visiting all rows. An aggregation visits a tile's rows once for each tile
 * of another rank with entries there, be the entries few and the rows narrow. */
static double visit_seconds(const struct sl_source *source)
{
    return AGGREGATIONS * (double)source->vertices * VISIT_SECONDS;
}

enum { OPERATIONS = 16 }; /* operations of an epoch */

/* Return the seconds of T row tiles' tasks, without their work. A task has T tiles of its row. */
static double task_seconds(double t)
{
    return OPERATIONS * t * sl_rates_usual.task + 8.0 * t * t * BUFFER_SECONDS;
}

/* Return the modelled seconds of an epoch with T row tiles, each of which meets `met` tiles of
 * other ranks. More tiles feed more workers, balance them and hide messages, but cost tasks,
 * gradients and visits. */
static double epoch_seconds(const struct tile_costs *costs, int64_t tiles, double met)
{
    const double t = (double)tiles, c = (double)costs->workers, ranks = (double)costs->ranks;
    const bool alone = costs->workers <= costs->ranks; /* one worker a rank */
    const double busy = fmin(t, c), idle = alone ? 0.0 : costs->imbalance * busy / t;
    const double meetings = alone || t <= ranks ? 0.0 : OPERATIONS * costs->meeting;
    const double rounds = ceil(t / c) * busy / t; /* 3 equal tasks on 2 workers take as long as 4 */
    return (costs->work * fmax(rounds, 1.0) * (1.0 + idle) + task_seconds(t) + costs->gradient * t +
            costs->visit * met) /
               busy +
           costs->messages * ranks / t + meetings;
}

/* ---- How many tiles of other ranks a tile meets ---- */

/* Limits: sampled rows of all ranks, entries of a sampled row, and rows times numbers of tiles. */
enum { SAMPLED_ROWS = 4096, SAMPLED_ENTRIES = 512, LOOKS = 1 << 19 };

/* The numbers of tiles to compare: first, first + step, … */
struct candidates {
    int64_t first, step, count;
};

/* A sample of rows, in order. The position of a row is its rank plus the share of the rank's rows
 * before it. */
struct sample {
    const struct sl_source *source;
    int64_t ranks, rows;
    double *row;        // (rows): positions
    int64_t *begin;     // (rows + 1)
    double *neighbours; // (begin[rows]): positions of neighbours on other ranks
};

/* Return the first row of a rank: of its part, or of an equal share. */
static int64_t first_row(const struct sample *s, int64_t rank)
{
    const struct sl_source *source = s->source;
    return source->order.part_cut && source->order.parts == s->ranks
               ? source->order.part_cut[rank]
               : (source->vertices * rank + s->ranks - 1) / s->ranks;
}

static double position(const struct sample *s, int64_t row)
{
    int64_t rank = 0, end = s->ranks;
    while (end - rank > 1) {
        const int64_t middle = (rank + end) / 2;
        if (first_row(s, middle) <= row)
            rank = middle;
        else
            end = middle;
    }
    const int64_t first = first_row(s, rank), rows = first_row(s, rank + 1) - first;
    return (double)rank + (double)(row - first) / (double)rows;
}

/* Add a row at its position, and the positions of its neighbours on other ranks. */
static void read_row(struct sample *s, int64_t row, double at)
{
    const struct sl_source *source = s->source;
    const struct sl_stored_csr *a = &source->adjacency;
    const int64_t v = sl_source_vertex(source, row);
    const int64_t first = sl_npy_integer(&a->indptr, v), end = sl_npy_integer(&a->indptr, v + 1);
    int64_t *begin = &s->begin[s->rows], count = begin[0];
    s->row[s->rows++] = at;
    if (first >= 0 && end <= a->indices.count) /* a wrong row is refused when it is read */
        for (int64_t e = first; e < end; e += (end - first) / SAMPLED_ENTRIES + 1) {
            const int64_t u = sl_npy_integer(&a->indices, e);
            if (u < 0 || u >= source->vertices)
                continue;
            s->neighbours[count] = position(s, source->order.place ? source->order.place[u] : u);
            count += (int64_t)s->neighbours[count] != (int64_t)at;
        }
    begin[1] = count;
}

/* Read as many rows of each rank. A process reads the rows of its share of the ranks, so a plan has
 * the sample of its run. Return whether there was memory. */
static bool read_sample(const struct sl_runtime *rt, int64_t rows, struct sample *s)
{
    const int64_t each = (rows + s->ranks - 1) / s->ranks;
    const int64_t first = s->ranks * rt->rank / rt->ranks,
                  end = s->ranks * (rt->rank + 1) / rt->ranks;
    const size_t most = (size_t)((end - first) * each);
    s->row = calloc(most + 1, sizeof *s->row);
    s->begin = calloc(most + 1, sizeof *s->begin);
    s->neighbours = malloc((most * SAMPLED_ENTRIES + 1) * sizeof *s->neighbours);
    if (!s->row || !s->begin || !s->neighbours)
        return false;
    for (int64_t rank = first; rank < end; rank++) {
        const int64_t from = first_row(s, rank), all = first_row(s, rank + 1) - from;
        const int64_t count = all < each ? all : each;
        for (int64_t k = 0; k < count; k++) {
            const int64_t row = from + all * k / count;
            read_row(s, row, (double)rank + (double)(row - from) / (double)all);
        }
    }
    return true;
}

/* Return the sum, over all sampled rows, of how many of `tiles` tiles the row's tile meets. If most
 * sampled entries of a tile are in different tiles, more entries would find more tiles. Then the
 * tile counts as meeting all tiles of other ranks. seen (tiles). */
static int64_t count_met(const struct sample *s, int64_t tiles, int64_t *seen)
{
    const int64_t each = tiles / s->ranks;
    int64_t met = 0;
    for (int64_t t = 0; t < tiles; t++)
        seen[t] = -1;
    for (int64_t k = 0, end; k < s->rows; k = end) {
        const int64_t own = (int64_t)(s->row[k] * (double)each);
        int64_t here = 0;
        for (end = k; end < s->rows && (int64_t)(s->row[end] * (double)each) == own; end++)
            for (int64_t e = s->begin[end]; e < s->begin[end + 1]; e++) {
                int64_t *last = &seen[(int64_t)(s->neighbours[e] * (double)each)];
                here += *last != own;
                *last = own;
            }
        if (2 * here > s->begin[end] - s->begin[k])
            here = tiles - each;
        met += here * (end - k);
    }
    return met;
}

/* Set met (all->count) to the mean number of tiles of other ranks that a tile meets, from a sample
 * of the adjacency. Without an adjacency, a tile meets all. Ranks must choose alike, so a rank
 * without memory ends the run. */
static void measure_met(struct sl_runtime *rt, const struct sl_source *source,
                        const struct candidates *all, int64_t ranks, double *met)
{
    struct sample sample = {.source = source, .ranks = ranks};
    const int64_t most = all->first + (all->count - 1) * all->step, looks = LOOKS / all->count + 1;
    const int64_t rows = looks < SAMPLED_ROWS ? looks : SAMPLED_ROWS;
    int64_t *seen = calloc((size_t)most, sizeof *seen),
            *sums = calloc((size_t)all->count + 1, sizeof *sums);
    for (int64_t k = 0; k < all->count; k++)
        met[k] = (double)(all->first + k * all->step) * (1.0 - 1.0 / (double)ranks);
    if (source->adjacency.indices.data) {
        if (!seen || !sums || !read_sample(rt, rows, &sample))
            sl_fatal("no memory for a sample of %lld rows", (long long)rows);
        for (int64_t k = 0; k < all->count; k++)
            sums[k] = count_met(&sample, all->first + k * all->step, seen);
        sums[all->count] = sample.rows;
        sl_runtime_sum(rt, sums, all->count + 1);
        for (int64_t k = 0; k < all->count; k++)
            met[k] = (double)sums[k] / (double)sums[all->count];
    }
    free(sample.row);
    free(sample.begin);
    free(sample.neighbours);
    free(seen);
    free(sums);
}

/* ---- The choice ---- */

/* Return the least number of tiles whose dense tiles stay well under 2 GiB. Nonzeros of a tile are
 * checked when it is cut. */
static int64_t needed_tiles(const struct sl_source *source,
                            const struct sl_partition_options *options, int64_t ranks)
{
    int64_t widest = source->classes > options->width ? source->classes : options->width;
    if (source->feature_form == SL_FEATURES_DENSE && source->features > widest)
        widest = source->features;
    /* A GPU holds a task's few dense tiles, and the tiles of tasks to come. */
    const int64_t most_bytes =
        options->gpus > 0 && options->gpu_bytes / 16 < 1 << 30 ? options->gpu_bytes / 16 : 1 << 30;
    const int64_t rows = most_bytes / (4 * sl_leading(widest, SL_FLOAT32)) + 1;
    return (source->vertices / rows / ranks + 1) * ranks;
}

int64_t sl_tile_choice(struct sl_runtime *rt, const struct sl_source *source,
                       const struct sl_partition_options *options, int64_t ranks)
{
    const bool gpus = options->gpus > 0, sends = !gpus && ranks > 1;
    const int64_t width = options->width, cores = options->cores,
                  workers = gpus ? options->gpus : cores, units = cores > workers ? cores : workers;
    const struct tile_costs costs = {
        .work = work_seconds(source, width, gpus),
        .gradient = gpus ? 0.0 : gradient_seconds(source, width),
        .messages = sends ? message_seconds(source, width, ranks, options->link) : 0.0,
        .visit = sends ? visit_seconds(source) : 0.0,
        .meeting = gpus ? 0.0 : MEETING_SECONDS,
        .imbalance = gpus ? IMBALANCE_OF_GPUS : IMBALANCE * log2((double)workers),
        .workers = workers,
        .ranks = ranks};
    const int64_t needed = needed_tiles(source, options, ranks);
    const struct candidates all = {needed, ranks,
                                   8 * units > needed ? (8 * units - needed) / ranks + 1 : 1};
    double *met = calloc((size_t)all.count, sizeof *met);
    if (!met)
        sl_fatal("no memory to compare %lld numbers of tiles", (long long)all.count);
    if (sends && all.count > 1)
        measure_met(rt, source, &all, ranks, met);
    int64_t best = 0;
    for (int64_t k = 1; k < all.count; k++) {
        const int64_t tiles = needed + k * ranks;
        if (epoch_seconds(&costs, tiles, met[k]) <
                epoch_seconds(&costs, needed + best * ranks, met[best]) ||
            (gpus && options->shared && task_seconds((double)tiles) < COST_OF_SHARING * costs.work))
            best = k;
    }
    free(met);
    return needed + best * ranks;
}
