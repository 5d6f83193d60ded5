#include "train/partition.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"

static int64_t row_weight(const struct sl_dataset *data, int64_t r)
{
    int64_t weight = 1 + data->adjacency.indptr[r + 1] - data->adjacency.indptr[r];
    if (data->feature_form == SL_FEATURES_CSR)
        weight += data->features_csr.indptr[r + 1] - data->features_csr.indptr[r];
    return weight;
}

/* ---- How many tiles ---- */

/* What an epoch costs, to a factor that does not matter for choosing the tiles: measured on one
 * core at width 16 to 64. */
static const double MULTIPLY_ADD_SECONDS = 0.1e-9, TASK_SECONDS = 4e-6, BUFFER_SECONDS = 0.5e-6;
/* A row of the output costs as much as this many more entries. */
static const double ENTRIES_PER_ROW = 1.5;
/* Part of a task's length for which workers idle at the end of an operation. */
static const double IMBALANCE = 0.25;

/* Modelled seconds of an epoch of a two-layer network with T row tiles: more tiles feed more cores
 * and balance them, but cost tasks, each of which has T tiles of its row. */
static double epoch_seconds(const struct sl_dataset *data, int64_t tiles, int64_t cores,
                            int64_t width)
{
    const double n = (double)data->vertices, t = (double)tiles, c = (double)cores,
                 w = (double)width;
    const double nnz = (double)data->adjacency.indptr[data->vertices] + n;
    double features = n;
    if (data->feature_form == SL_FEATURES_CSR)
        features = (double)data->features_csr.indptr[data->vertices];
    else if (data->feature_form == SL_FEATURES_DENSE)
        features = n * (double)data->features / 16.0; /* the BLAS is that much faster */
    const double work = 4.0 * (nnz + ENTRIES_PER_ROW * n) * w + 3.0 * features * w;
    const double overhead = 16.0 * t * TASK_SECONDS + 8.0 * t * t * BUFFER_SECONDS;
    const double busy = fmin(t, c);
    const double rounds = ceil(t / c) * c / t; /* 3 equal tasks on 2 cores take as long as 4 */
    return (work * MULTIPLY_ADD_SECONDS * fmax(rounds, 1.0) * (1.0 + IMBALANCE * busy / t) +
            overhead) /
           busy;
}

static int64_t count_tiles(const struct sl_dataset *data,
                           const struct sl_partition_options *options)
{
    /* A dense tile stays well under 2 GiB; how many nonzeros a tile gets is checked when it is cut.
     */
    const int64_t width = options->width, ranks = options->ranks, cores = options->cores;
    int64_t widest = data->classes > width ? data->classes : width;
    if (data->feature_form == SL_FEATURES_DENSE && data->features > widest)
        widest = data->features;
    widest = (widest + 15) / 16 * 16; /* rows are padded */
    const int64_t rows = (1 << 30) / (4 * widest) + 1;
    const int64_t needed = (data->vertices / rows / ranks + 1) * ranks;
    int64_t best = needed;
    const int64_t most = 8 * cores > needed ? 8 * cores : needed;
    for (int64_t tiles = needed; tiles <= most; tiles += ranks)
        if (epoch_seconds(data, tiles, cores, width) < epoch_seconds(data, best, cores, width))
            best = tiles;
    return best;
}

/* ---- Blocks of columns ---- */

/* The last-level cache is read so many times faster than memory, in random rows, and this part of
 * it is there for the rows of a block (docs/PERFORMANCE.md has the measurement). */
static const double CACHE_SPEED = 5.0, CACHE_PART = 0.8;
enum { WINDOWS = 8 };

/* The part of all gathered rows that miss a cache of `capacity` rows when the rows of the graph are
 * walked in order: distinct columns in windows that just fill it. seen (n), zeroed. */
static double miss_ratio(const struct sl_csr *a, int64_t capacity, int32_t *seen)
{
    double distinct = 0.0, entries = 0.0;
    for (int32_t window = 1; window <= WINDOWS; window++) {
        int64_t r = a->rows * (window - 1) / WINDOWS, rows = 0;
        for (; r < a->rows && rows < capacity; r++)
            for (int64_t e = a->indptr[r]; e < a->indptr[r + 1]; e++) {
                rows += seen[a->indices[e]] != window;
                seen[a->indices[e]] = window;
                entries += 1.0;
            }
        distinct += (double)rows;
    }
    return entries > 0.0 ? distinct / entries : 0.0;
}

/* clang-format off */
/* DistGNN (section IV-A) blocks the columns of dense graphs; here the cost decides. Bytes from memory
 * of one aggregation, those from the cache at their price:
 *   one block    entries · row · (miss + hit / speed) + n · row
 *   C blocks     entries · row / speed + waves · n · row + (2 C - 1) · n · row + row pointers
 * where each wave of row tiles walks over all blocks. */
/* clang-format on */
int64_t sl_partition_block_cols(const struct sl_csr *adjacency, int64_t width, int64_t cache_bytes,
                                int sharers, double waves)
{
    const double row = 4.0 * (double)width, n = (double)adjacency->rows;
    const double entries = (double)adjacency->indptr[adjacency->rows] + n;
    const double cached = CACHE_PART * (double)cache_bytes / row; /* rows */
    const double blocks = ceil(n / cached);
    if (blocks <= 1.0)
        return adjacency->rows;
    int32_t *seen = calloc((size_t)adjacency->rows, sizeof *seen);
    if (!seen)
        return adjacency->rows; /* right, if slower */
    /* The cores share the cache, each with rows of its own. */
    const double miss = miss_ratio(adjacency, (int64_t)cached / sharers + 1, seen);
    free(seen);
    const double one = entries * row * (miss + (1.0 - miss) / CACHE_SPEED) + n * row;
    const double many = entries * row / CACHE_SPEED + waves * n * row +
                        (2.0 * blocks - 1.0) * n * row + blocks * n * 4.0;
    return many < one ? (int64_t)ceil(n / blocks) : adjacency->rows;
}

/* ---- All of it ---- */

int sl_partition_create(struct sl_partition *partition, const struct sl_dataset *data,
                        const struct sl_partition_options *options)
{
    int64_t tiles = options->tiles ? options->tiles : count_tiles(data, options);
    if (tiles > data->vertices)
        tiles = data->vertices;
    partition->tiles = (int)tiles;
    partition->row_cut = malloc((size_t)(tiles + 1) * sizeof *partition->row_cut);
    if (!partition->row_cut)
        return sl_error(SL_ERR_SYSTEM, "no memory for %lld cut points", (long long)tiles);
    int64_t total = 0, sum = 0, r = 0;
    for (int64_t v = 0; v < data->vertices; v++)
        total += row_weight(data, v);
    partition->row_cut[0] = 0;
    for (int64_t t = 1; t <= tiles; t++) {
        /* At least one row each, and one left for each tile that follows. */
        const int64_t last = data->vertices - (tiles - t);
        const double goal = (double)total * (double)t / (double)tiles;
        do
            sum += row_weight(data, r++);
        while (r < last && (double)sum + 0.5 * (double)row_weight(data, r) <= goal);
        partition->row_cut[t] = t == tiles ? data->vertices : r;
    }
    partition->block_cols =
        options->block_cols
            ? options->block_cols
            : sl_partition_block_cols(&data->adjacency, options->width, options->cache_bytes,
                                      options->cache_sharers, ceil((double)tiles / options->cores));
    return 0;
}

void sl_partition_destroy(struct sl_partition *partition)
{
    free(partition->row_cut);
    *partition = (struct sl_partition){0};
}
