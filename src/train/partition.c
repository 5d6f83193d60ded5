#include "train/partition.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"

/* Multiply-adds that a task should have: several hundred microseconds of gathering rows (SpMM tiles, of which there are
 * T²), and of streaming them (everything else, T tasks per operation). */
static const double SPMM_GRAIN = 1.5e6, ROW_GRAIN = 0.5e6;

static int64_t row_weight(const struct sl_dataset *data, int64_t r)
{
    int64_t weight = 1 + data->adjacency.indptr[r + 1] - data->adjacency.indptr[r];
    if (data->feature_form == SL_FEATURES_CSR)
        weight += data->features_csr.indptr[r + 1] - data->features_csr.indptr[r];
    return weight;
}

static int64_t count_tiles(const struct sl_dataset *data, int ranks, int64_t width)
{
    const double nnz = (double)(data->adjacency.indptr[data->vertices] + data->vertices);
    const double spmm = sqrt(nnz * (double)width / SPMM_GRAIN);
    double per_row = (double)data->features;
    if (data->feature_form == SL_FEATURES_CSR)
        per_row = (double)data->features_csr.indptr[data->vertices] / (double)data->vertices;
    else if (data->feature_form == SL_FEATURES_IDENTITY)
        per_row = 1.0;
    const double rows = (double)data->vertices * per_row * (double)width / ROW_GRAIN;
    const double most = 16.0; /* enough to keep the workers of one node busy; more only where SpMM tiles ask for it */
    const double tiles = ceil(fmax(spmm, fmin(rows, most)));
    return ((int64_t)tiles + ranks - 1) / ranks * ranks;
}

int sl_partition_create(struct sl_partition *partition, const struct sl_dataset *data, int64_t tiles, int ranks,
                        int64_t width)
{
    if (tiles == 0)
        tiles = count_tiles(data, ranks, width);
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
