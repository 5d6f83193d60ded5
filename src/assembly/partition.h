/* Cuts the rows of a graph into tiles, and tiles among ranks. */
#ifndef SL_ASSEMBLY_PARTITION_H
#define SL_ASSEMBLY_PARTITION_H

#include "data/source.h"

struct sl_partition {
    int tiles, ranks;
    int asked;        /* tiles wanted, before parts and hops got tiles of their own */
    int64_t *row_cut; // (tiles + 1)
    int *rank_cut;    // (ranks + 1): rank r has the tiles rank_cut[r] … rank_cut[r + 1] - 1
    int64_t *workers; // (ranks)
    int *hop;     // (tiles): hop of the nearest row (sl_source_hop), first tile 0; NULL: no hops
    int64_t *nnz; // (tiles): entries of A + I and of sparse features in a tile's rows
    int64_t block_cols; /* columns of a block of the adjacency's tiles (core/sparse.h) */
    double tile_imbalance, rank_imbalance; /* largest / mean nnz; ranks: per worker */
};

/* Row tiles get equal shares of nonzeros, or of rows. */
#define SL_BALANCES(ENTRY) ENTRY(SL_BALANCE_NNZ, "nnz") ENTRY(SL_BALANCE_ROWS, "rows")
enum sl_balance { SL_BALANCES(SL_CHOICE_CONSTANT) };

/* Options of the cuts, the same on every rank except `workers`. */
struct sl_partition_options {
    enum sl_balance balance;
    int64_t tiles; /* number of tiles; 0: the cost model decides */
    int cores;     /* cores of all ranks; results must not depend on how many workers use them */
    int gpus;      /* GPUs of all ranks; they get the tiles, if there are any */
    bool shared;   /* cores get some of the GPUs' tiles */
    int64_t gpu_bytes; /* memory of the smallest GPU, which bounds a tile */
    int workers;   /* workers of this rank, at least 1: its share of the tiles is in proportion */
    int64_t width; /* columns of the matrices that are aggregated */
    int ranks;     /* ranks to plan for; 0: the run's own */
    const int64_t *rank_workers; // (ranks): workers of each rank to plan for; NULL: equal
    int64_t link; /* bytes per second of messages; 0: not measured, as quick as usual */
};

/* Cut the vertices into contiguous runs of about equal work (nonzeros of adjacency and features) or
 * of equally many rows. Without a number of tiles, take the multiple of the ranks that makes the
 * modelled epoch shortest. Never make more tiles than vertices. If the source has hops, a tile has
 * rows of one hop, or of several small ones, so there may be more tiles. Read only row pointers and
 * a sample of rows. Collective. Return 0 or SL_ERR_SYSTEM; call sl_partition_destroy in either
 * case. */
int sl_partition_create(struct sl_runtime *rt, struct sl_partition *partition,
                        const struct sl_source *source, const struct sl_partition_options *options);

/* Count the nonzeros of all tiles, once every rank has read its rows. Collective. */
void sl_partition_measure(struct sl_runtime *rt, struct sl_partition *partition,
                          const struct sl_part *part);

/* Caches of the cores, and the row tiles that all ranks multiply. */
struct sl_caches {
    int64_t last_bytes, own_bytes; /* the last-level cache; a core's own cache, 0: unknown */
    int sharers;                   /* cores of a rank that share the last level */
    int cores;                     /* cores of all ranks */
    int64_t tiles;
    int ranks;               /* ranks whose rows this rank has, in order; 0: its own rows only */
    const int64_t *rank_cut; // (ranks + 1)
};

/* Return the columns of a block for aggregations of `width` columns: all, or fewer if the model
 * predicts fewer bytes. If the last-level cache has all dense rows, a block's rows fit a core's own
 * cache; otherwise they fit the last-level cache. `rows`: this rank's rows of the adjacency.
 * Collective. */
int64_t sl_partition_block_cols(struct sl_runtime *rt, const struct sl_csr *rows, int64_t width,
                                const struct sl_caches *caches);

/* Cut the clones of a vertex-cut, instead of vertices, at equal work. Rank r has the clones
 * bounds[r] … bounds[r + 1] - 1, and `part` has this rank's. A rank keeps its number of tiles, or
 * gets one, but never more tiles than clones. hop (clones of this rank, ascending): hops of the
 * clones; NULL on all ranks: unknown. If hops are known, tiles end where hops end; neighbouring
 * hops with few clones are one, the same on all ranks. Collective. Return 0 or SL_ERR_SYSTEM. */
int sl_partition_recut(struct sl_runtime *rt, struct sl_partition *partition, const int64_t *bounds,
                       const struct sl_part *part, const int32_t *hop);

/* Numbers of clones on each rank, by the hop of their vertices. */
struct sl_clone_hops {
    int count;     /* number of hops */
    int64_t *rows; // (ranks, count)
};

/* Cut the clones of a planned run, with equally many rows in each tile of a rank and hop. Make
 * `out` from `partition`, the cuts of the vertices, which does not change. `hops`: NULL if unknown.
 * Not collective. Return 0 or SL_ERR_SYSTEM; call sl_partition_destroy in either case. */
int sl_partition_recut_evenly(const struct sl_partition *partition, const int64_t *bounds,
                              const struct sl_clone_hops *hops, struct sl_partition *out);

void sl_partition_destroy(struct sl_partition *partition);

#endif
