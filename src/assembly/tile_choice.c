#include "assembly/tile_choice.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/tile.h"
#include "graphs/cost.h"

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

/* Return the work of an epoch of a two-layer network on the source. */
static struct sl_epoch_work work_of(const struct sl_source *source,
                                    const struct sl_partition_options *options, int64_t ranks)
{
    const double n = (double)source->vertices, features = (double)source->features;
    const bool identity = source->feature_form == SL_FEATURES_IDENTITY;
    return (struct sl_epoch_work){
        .vertices = n,
        .entries = (double)source->adjacency.indices.count + n,
        .width = (double)options->width,
        .features = identity ? n
                    : source->feature_form == SL_FEATURES_CSR
                        ? (double)source->features_csr.indices.count
                        : n * features / 16.0, /* the BLAS is 16 times faster */
        .rows = identity ? n : features,
        .identity = identity,
        .link = (double)options->link,
        .workers = options->gpus > 0 ? options->gpus : options->cores,
        .ranks = ranks,
        .gpus = options->gpus > 0,
    };
}

/* Largest share of GPUs' time that tasks may cost, so that cores get some tasks, too. */
static const double COST_OF_SHARING = 0.1;

int64_t sl_tile_choice(struct sl_runtime *rt, const struct sl_source *source,
                       const struct sl_partition_options *options, int64_t ranks)
{
    const struct sl_epoch_work work = work_of(source, options, ranks);
    const int64_t units = options->cores > work.workers ? options->cores : work.workers,
                  needed = needed_tiles(source, options, ranks);
    const double shared =
        work.gpus && options->shared ? COST_OF_SHARING * sl_cost_multiplications(&work) : 0.0;
    const struct candidates all = {needed, ranks,
                                   8 * units > needed ? (8 * units - needed) / ranks + 1 : 1};
    double *met = calloc((size_t)all.count, sizeof *met), least = HUGE_VAL;
    if (!met)
        sl_fatal("no memory to compare %lld numbers of tiles", (long long)all.count);
    if (!work.gpus && ranks > 1 && all.count > 1)
        measure_met(rt, source, &all, ranks, met);
    int64_t best = needed;
    for (int64_t k = 0; k < all.count; k++) {
        const int64_t tiles = needed + k * ranks;
        const double seconds = sl_cost_epoch(&work, (double)tiles, met[k]);
        if (seconds < least || sl_cost_tasks((double)tiles) < shared) {
            least = seconds;
            best = tiles;
        }
    }
    free(met);
    return best;
}
