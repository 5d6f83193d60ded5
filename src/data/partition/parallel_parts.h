/* Partition the vertices of a graph that no rank can hold: all ranks work together. */
#ifndef SL_DATA_PARTITION_PARALLEL_PARTS_H
#define SL_DATA_PARTITION_PARALLEL_PARTS_H

#include "data/source.h"

/* Set part[v] (n), on all ranks, to the part, 0 … parts - 1, of row v of the files. PT-Scotch makes
 * parts of about equally many entries with few edges between them. Each rank reads only its share
 * of the rows. The parts depend on the seed and the number of ranks. Collective. SL_ERR_USAGE: a
 * build without PT-Scotch. SL_ERR_DATA: the rows are wrong. SL_ERR_SYSTEM. */
int sl_parallel_parts(struct sl_runtime *rt, const struct sl_source *source, int parts,
                      uint64_t seed, int32_t *part);

#endif
