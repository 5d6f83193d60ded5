/* How many entries the tiles of a graph have, before there are any: what follows from it for a
 * distribution is in graphs/counts.h and predict/prediction.h. */
#ifndef SL_PREDICT_TILE_COUNTS_H
#define SL_PREDICT_TILE_COUNTS_H

#include "assembly/partition.h"
#include "core/sparse.h"
#include "data/source.h"
#include "graphs/counts.h"

/* Reads this rank's share of the adjacency, the rows of some of the partition's ranks, and counts
 * it, with `loops` A + I; all ranks get the counts of all. `halo`, unless it is NULL, counts the
 * rows that travel, too. Collective. SL_ERR_SYSTEM or SL_ERR_DATA; sl_tile_counts_destroy in either
 * case. */
struct sl_halo_counts;
struct sl_cover_counts;
int sl_tile_counts_read(struct sl_runtime *rt, const struct sl_source *source,
                        const struct sl_partition *partition, bool loops,
                        struct sl_halo_counts *halo, struct sl_cover_counts *cover,
                        struct sl_tile_counts *out);

/* Counts the tiles of clones, which meet clones of the same rank alone: entries (ranks, hops, hops)
 * by the hops of row and column; one hop where none are known. Each tile of a rank and its hops
 * gets as many. */
int sl_tile_counts_spread(const struct sl_partition *partition, int hops, const int64_t *entries,
                          bool symmetric, int64_t numbers, struct sl_tile_counts *out);

/* Counts the tiles of a matrix and of its transpose, which is empty where it is the same. Tiles
 * that are one count as the first tile of them. */
int sl_tile_counts_of(const struct sl_sparse_matrix *matrix,
                      const struct sl_sparse_matrix *transposed, struct sl_tile_counts *out);

/* Expects the counts of an undirected graph of so many entries, its vertices in random order. */
int sl_tile_counts_expect(const struct sl_partition *partition, int64_t entries, bool loops,
                          struct sl_tile_counts *out);

/* How even the stages of 1D are (MG-GCN, section 4). In stage s rank r multiplies the entries of
 * its rows in the columns of rank r + s, round. */
struct sl_stage_balance {
    double worst; /* entries, largest / mean over ranks, in the least even stage */
    double all;   /* the sum of the stages' largest over that of their means: 1 if no rank waits */
};

/* Rank r has the row tiles rank_cut[r] … rank_cut[r + 1] - 1, and the same columns. Stages without
 * entries are left out. `window` stages count as one, since a rank may be that far ahead of others;
 * MG-GCN's figures have 1. */
struct sl_stage_balance sl_tile_counts_stages(const struct sl_tile_counts *counts,
                                              const int *rank_cut, int ranks, int window);

void sl_tile_counts_destroy(struct sl_tile_counts *counts);

#endif
