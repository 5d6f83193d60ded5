/* Where the rows of a graph are cut. */
#ifndef SL_TRAIN_PARTITION_H
#define SL_TRAIN_PARTITION_H

#include "data/dataset.h"

struct sl_partition {
    int tiles;
    int64_t *row_cut;   // (tiles + 1)
    int64_t block_cols; /* columns of a block of the adjacency's tiles (core/sparse.h) */
};

/* What the cuts follow from, beside the dataset: the same on every rank. */
struct sl_partition_options {
    int64_t tiles;      /* 0: by cost */
    int64_t block_cols; /* 0: by cost */
    int ranks;
    int cores;           /* of all ranks; how many workers use them does not matter, so that results
                            do not change with them */
    int64_t cache_bytes; /* last-level cache */
    int cache_sharers;   /* cores of a rank that share it */
    int64_t width;       /* columns of the matrices that are aggregated */
};

/* Cuts the vertices into contiguous runs of about equal work (nonzeros of adjacency and features):
 * by cost, as many as make the modelled epoch shortest, a multiple of the ranks; never more than
 * vertices. And the columns of the adjacency into blocks whose dense rows stay in the last-level
 * cache, if the model says that this moves fewer bytes. Returns 0 or SL_ERR_SYSTEM. */
int sl_partition_create(struct sl_partition *partition, const struct sl_dataset *data,
                        const struct sl_partition_options *options);
/* Columns of a block for the aggregation of `width` columns, by cost: all of them, or fewer.
 * `waves`: how often the rows of the graph, cut into tiles, come by one core. */
int64_t sl_partition_block_cols(const struct sl_csr *adjacency, int64_t width, int64_t cache_bytes,
                                int sharers, double waves);
void sl_partition_destroy(struct sl_partition *partition);

#endif
