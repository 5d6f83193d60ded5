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

/* What an epoch costs, to a factor that does not matter for choosing the tiles: measured on one
 * core at width 16 to 64. */
static const double MULTIPLY_ADD_SECONDS = 0.4e-9, TASK_SECONDS = 4e-6;
/* A tile reads and writes its piece of the output row, which costs as much as this many more
 * entries. */
static const double ENTRIES_PER_TILE_ROW = 1.5;
/* Part of a task's length for which workers idle at the end of an operation. */
static const double IMBALANCE = 0.25;

/* Modelled seconds of an epoch of a two-layer network with T x T tiles: more tiles feed more cores
 * and balance them, but cost tasks and passes over the output. */
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
    const double work = 4.0 * (nnz + ENTRIES_PER_TILE_ROW * n * t) * w + 3.0 * features * w;
    const double tasks = 4.0 * t * t + 12.0 * t, busy = fmin(t, c);
    const double rounds = ceil(t / c) * c / t; /* 3 equal tasks on 2 cores take as long as 4 */
    return (work * MULTIPLY_ADD_SECONDS * fmax(rounds, 1.0) * (1.0 + IMBALANCE * busy / t) +
            tasks * TASK_SECONDS) /
           busy;
}

static int64_t count_tiles(const struct sl_dataset *data, int ranks, int cores, int64_t width)
{
    /* A dense tile stays well under 2 GiB; how many nonzeros a tile gets is checked when it is cut.
     */
    const int64_t widest =
        data->feature_form == SL_FEATURES_DENSE && data->features > width ? data->features : width;
    const int64_t rows = (1 << 30) / (4 * widest) + 1;
    const int64_t needed = (data->vertices / rows / ranks + 1) * ranks;
    int64_t best = needed;
    const int64_t most = 8 * (int64_t)cores > needed ? 8 * (int64_t)cores : needed;
    for (int64_t tiles = needed; tiles <= most; tiles += ranks)
        if (epoch_seconds(data, tiles, cores, width) < epoch_seconds(data, best, cores, width))
            best = tiles;
    return best;
}

int sl_partition_create(struct sl_partition *partition, const struct sl_dataset *data,
                        int64_t tiles, int ranks, int cores, int64_t width)
{
    if (tiles == 0)
        tiles = count_tiles(data, ranks, cores, width);
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
    return 0;
}

void sl_partition_destroy(struct sl_partition *partition)
{
    free(partition->row_cut);
    *partition = (struct sl_partition){0};
}
