#include "data/formats/edge_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/free_memory.h"
#include "core/log.h"
#include "data/block.h"
#include "data/csr.h"
#include "data/edge_features.h"

int sl_edge_rows_open(struct sl_edge_rows *rows, struct sl_block **blocks)
{
    rows->start = sl_block_array(blocks, rows->vertices + 1, sizeof *rows->start);
    if (!rows->start)
        return SL_ERR_SYSTEM;
    memset(rows->start, 0, (size_t)(rows->vertices + 1) * sizeof *rows->start);
    return SL_OK;
}

int sl_edge_rows_allocate(struct sl_edge_rows *rows, struct sl_block **blocks)
{
    for (int64_t v = 0; v < rows->vertices; v++)
        rows->start[v + 1] += rows->start[v];
    rows->entries = rows->start[rows->vertices];
    rows->columns = sl_block_array(blocks, rows->entries, sizeof *rows->columns);
    if (rows->weighted)
        rows->weights = sl_block_array(blocks, rows->entries, sizeof *rows->weights);
    if (rows->numbered)
        rows->edges = sl_block_array(blocks, rows->entries, sizeof *rows->edges);
    return rows->columns && (rows->weights || !rows->weighted) && (rows->edges || !rows->numbered)
               ? SL_OK
               : SL_ERR_SYSTEM;
}

int sl_edge_rows_close(struct sl_edge_rows *rows, int64_t columns, const float *features,
                       struct sl_dataset *out)
{
    /* Each pointer is at the end of its row now, where the next row starts. */
    memmove(rows->start + 1, rows->start, (size_t)rows->vertices * sizeof *rows->start);
    rows->start[0] = 0;
    out->adjacency = (struct sl_csr){rows->vertices, rows->vertices, rows->start,
                                     rows->columns,  rows->weights,  NULL};
    if (!rows->numbered)
        return sl_csr_mend(&out->adjacency, &out->merged_edges);
    if (rows->entries > INT32_MAX)
        return sl_error(SL_ERR_DATA,
                        "%s: %" PRId64 " entries have features, expected fewer than 2^31",
                        out->path, rows->entries);
    out->edge_features = columns;
    return sl_edge_features_mend(out, &out->adjacency, rows->edges, features, &out->merged_edges);
}

void sl_edge_rows_say(const char *path, const struct sl_read_options *options, int64_t edges,
                      int64_t vertices, int64_t bytes)
{
    static const double MIB = 1 << 20;
    enum { MUCH = 16 << 20 };
    if (!options->tell || bytes < MUCH)
        return;
    int64_t left[SL_MEMORY_BOUNDS], least = INT64_MAX;
    sl_free_memory("", left);
    for (int bound = 0; bound < SL_MEMORY_BOUNDS; bound++)
        least = left[bound] < least ? left[bound] : least;
    char lack[64] = "";
    if (least < bytes)
        snprintf(lack, sizeof lack, ", and only %.0f MiB are free", (double)least / MIB);
    sl_note("%s: %" PRId64 " edges of %" PRId64 " vertices take %.0f MiB of memory%s", path, edges,
            vertices, (double)bytes / MIB, lack);
}
