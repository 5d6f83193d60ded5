/* Partition a graph, whose rows are spread over the ranks, by PT-Scotch. A build with PT-Scotch
 * links scotch.c, any other no_scotch.c. */
#ifndef SL_DATA_PARTITION_SCOTCH_H
#define SL_DATA_PARTITION_SCOTCH_H

#include "core/runtime.h"

/* Rows of the symmetric pattern of a graph, without loops. The rows of rank 0, 1, … one after the
 * other are the graph's. */
struct sl_scotch_rows {
    int64_t count;
    int64_t *start;  // (count + 1)
    int64_t *column; // (start[count])
    int64_t *weight; // (count): parts have about equal sums of weights
};

bool sl_scotch_exists(void);

/* Set part[r] (count), 0 … parts - 1, so that few edges are between parts. The parts depend on the
 * seed and the ranks. Collective. Return the same code on all ranks: 0; SL_ERR_USAGE, there is no
 * PT-Scotch; SL_ERR_SYSTEM, no memory, or more rows or edges than it counts. */
int sl_scotch_partition(struct sl_runtime *rt, const struct sl_scotch_rows *rows, int parts,
                        uint64_t seed, int32_t *part);

#endif
