/* How many rows and results travel with covers (graphs/cover.h), before any rank trains. The covers
 * are found as training finds them. */
#ifndef SL_PREDICT_COVER_COUNTS_H
#define SL_PREDICT_COVER_COUNTS_H

#include "assembly/adjacency_rows.h"
#include "assembly/operands.h"
#include "predict/halo_counts.h"
#include "predict/tile_counts.h"

struct sl_cover_counts {
    struct sl_halo_counts rows;  /* rows that travel; their halos have the covers */
    struct sl_tile_counts tiles; /* entries that are served by row, or meet own rows */
    /* While counting: */
    const struct sl_assembly *assembly;
    const int32_t *tile; // (rows): of each vertex
    int64_t *bounds;     // (ranks + 1): rank r has the rows bounds[r] … bounds[r + 1] - 1
    int32_t *place;      // (rows)
    bool *by_row;        // (rows)
    bool *row_message, *result_message; // (numbers): of a pair of ranks, whether there is one
};

/* Count nothing yet, of a partition, which stays the caller's. SL_ERR_SYSTEM;
 * sl_cover_counts_destroy in either case. */
int sl_cover_counts_create(struct sl_cover_counts *counts, const struct sl_runtime *rt,
                           const struct sl_partition *partition, int64_t row_bytes,
                           const struct sl_assembly *assembly);
void sl_cover_counts_destroy(struct sl_cover_counts *counts);

/* Count the rows of the partition's ranks from … to - 1. tile (rows) has the row tile of each
 * vertex. SL_ERR_SYSTEM. */
int sl_cover_counts_add(struct sl_cover_counts *counts, const struct sl_adjacency_rows *rows,
                        const int32_t *tile, bool symmetric, int64_t numbers, int from, int to);

/* Make them those of all rows. `all` are the tiles of all entries. Collective. */
void sl_cover_counts_sum(struct sl_runtime *rt, struct sl_cover_counts *counts,
                         const struct sl_tile_counts *all);

#endif
