/* Where the rows of a graph are cut, and which rank has which of them. */
#ifndef SL_ASSEMBLY_PARTITION_H
#define SL_ASSEMBLY_PARTITION_H

#include "data/source.h"

struct sl_partition {
    int tiles, ranks;
    int asked;        /* tiles before each part of the vertices, or of their clones, had its own */
    int64_t *row_cut; // (tiles + 1)
    int *rank_cut;    // (ranks + 1): rank r has the tiles rank_cut[r] … rank_cut[r + 1] - 1
    int64_t *workers; // (ranks)
    int *hop;     // (tiles): of the nearest row (sl_source_hop), 0 of the first tile; NULL: no hops
    int64_t *nnz; // (tiles): entries of A + I and of sparse features in a tile's rows
    int64_t block_cols; /* columns of a block of the adjacency's tiles (core/sparse.h) */
    double tile_imbalance, rank_imbalance; /* largest / mean nnz; of ranks, per worker */
};

/* Row tiles get equal shares of nonzeros, or of rows. */
#define SL_BALANCES(ENTRY) ENTRY(SL_BALANCE_NNZ, "nnz") ENTRY(SL_BALANCE_ROWS, "rows")
enum sl_balance { SL_BALANCES(SL_CHOICE_CONSTANT) };

/* What the cuts follow from, beside the dataset: the same on every rank, but for `workers`. */
struct sl_partition_options {
    enum sl_balance balance;
    int64_t tiles;     /* 0: by cost */
    int cores;         /* of all ranks; how many workers use them does not matter, so that results
                          do not change with them */
    int gpus;          /* workers of all ranks; tiles are theirs, if there are any */
    bool shared;       /* and cores take some of those */
    int64_t gpu_bytes; /* of the smallest GPU, for tiles */
    int workers;   /* of this rank, at least 1: its tiles are a share like that of its workers */
    int64_t width; /* columns of the matrices that are aggregated */
    int ranks;     /* to plan for; 0: the run's own */
    const int64_t *rank_workers; // (ranks): of each rank to plan for; NULL: as many on each
    int64_t link; /* bytes per second of messages; 0: not measured, as quick as usual */
};

/* Cut the vertices into contiguous runs of about equal work (nonzeros of adjacency and features) or
 * of equally many rows. Without a number of tiles, take the multiple of the ranks that makes the
 * modelled epoch shortest. Never make more tiles than vertices. Where the source has hops, a tile
 * has rows of one hop, or of several small ones. So there may be more tiles. Read no more of the
 * source than row pointers and a sample of rows. Collective. Return 0 or SL_ERR_SYSTEM;
 * sl_partition_destroy in either case. */
int sl_partition_create(struct sl_runtime *rt, struct sl_partition *partition,
                        const struct sl_source *source, const struct sl_partition_options *options);

/* Count the nonzeros of all tiles, once every rank has read its rows. */
void sl_partition_measure(struct sl_runtime *rt, struct sl_partition *partition,
                          const struct sl_part *part);

/* Caches of the cores, and the tiles of rows that all ranks multiply. */
struct sl_caches {
    int64_t last_bytes, own_bytes; /* the last level; what a core has for itself, 0: unknown */
    int sharers;                   /* cores of a rank that share the last level */
    int cores;                     /* of all ranks */
    int64_t tiles;
    int ranks;               /* whose rows this rank has, rank after rank; 0: its own rows alone */
    const int64_t *rank_cut; // (ranks + 1)
};

/* Return the columns of a block for aggregations of `width` columns: all, or fewer where the model
 * predicts fewer bytes. Dense rows of a block stay in a core's own cache where the last-level cache
 * has all dense rows, else in the last-level cache. `rows` are this rank's rows of the adjacency.
 * Collective. */
int64_t sl_partition_block_cols(struct sl_runtime *rt, const struct sl_csr *rows, int64_t width,
                                const struct sl_caches *caches);

/* Cut the clones of a vertex-cut instead, at equal work. Rank r has the clones from bounds[r] to
 * bounds[r + 1] - 1. A rank keeps its number of tiles, or gets one, but never more tiles than
 * clones. `part` has this rank's clones. Where `hop` (rows of this rank, ascending; NULL on all
 * ranks: not known) has their hops, tiles end where hops end, as above. Neighbouring hops with few
 * clones are one hop then, the same on all ranks. Collective. Return 0 or SL_ERR_SYSTEM. */
int sl_partition_recut(struct sl_runtime *rt, struct sl_partition *partition, const int64_t *bounds,
                       const struct sl_part *part, const int32_t *hop);

/* Numbers of clones on each rank, by the hop of their vertices. */
struct sl_clone_hops {
    int count;     /* of hops */
    int64_t *rows; // (ranks, count)
};

/* Do the same for a planned run, with equally many rows in each tile of a rank and hop. Make `out`
 * from `partition`, the cuts of the vertices, which stays as it is. `hops`: NULL, not known. Not
 * collective; sl_partition_destroy in either case. */
int sl_partition_recut_evenly(const struct sl_partition *partition, const int64_t *bounds,
                              const struct sl_clone_hops *hops, struct sl_partition *out);

void sl_partition_destroy(struct sl_partition *partition);

#endif
