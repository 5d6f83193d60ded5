/* Where the rows of a graph are cut. */
#ifndef SL_TRAIN_PARTITION_H
#define SL_TRAIN_PARTITION_H

#include "data/dataset.h"

struct sl_partition {
    int tiles;
    int64_t *row_cut; // (tiles + 1)
};

/* Cuts the vertices into `tiles` contiguous runs of about equal work (nonzeros of adjacency and
 * features). 0 tiles: as many as make the modelled epoch at this width shortest on `cores` cores in
 * all, a multiple of `ranks`; how many workers then use those cores does not matter, so that
 * results do not change with them. Never more tiles than vertices. */
int sl_partition_create(struct sl_partition *partition, const struct sl_dataset *data,
                        int64_t tiles, int ranks, int cores, int64_t width);
void sl_partition_destroy(struct sl_partition *partition);

#endif
