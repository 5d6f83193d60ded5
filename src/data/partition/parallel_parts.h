/* Parts of the vertices of a graph that no rank can hold: all ranks find them together. One file
 * with PT-Scotch, one without; the build takes either. */
#ifndef SL_DATA_PARTITION_PARALLEL_PARTS_H
#define SL_DATA_PARTITION_PARALLEL_PARTS_H

#include "data/source.h"

/* Whether the program was built with PT-Scotch. */
bool sl_parallel_parts_exist(void);

/* Set part[v] (n), on all ranks: the part, 0 … parts - 1, of row v of the files, by PT-Scotch: few
 * edges between parts of about equally many entries. Each rank reads its share of the rows alone.
 * The parts follow from the seed and the number of ranks. Collective. SL_ERR_USAGE: the program was
 * built without it. SL_ERR_DATA: the rows are wrong. SL_ERR_SYSTEM. */
int sl_parallel_parts(struct sl_runtime *rt, const struct sl_source *source, int parts,
                      uint64_t seed, int32_t *part);

#endif
