/* Which rank has which edges, of a vertex-cut. */
#ifndef SL_TRAIN_EDGE_SHARES_H
#define SL_TRAIN_EDGE_SHARES_H

#include "data/source.h"

/* share[e] (entries of `home`) = the rank that has the entry, for this rank's rows `home` of a
 * source in the order of its files. `partition`: a method of starling partition, or a file that it
 * wrote; NULL: metis. Edges follow parts of vertices (data/edge_parts.h). Unless it is a file of
 * edges, rank 0 cuts, and has the whole adjacency in its memory meanwhile. Collective. SL_ERR_DATA:
 * the file is wrong, or of another graph or number of ranks. */
int sl_edge_shares_find(struct sl_runtime *rt, const struct sl_source *source,
                        const struct sl_part *home, const char *partition, uint64_t seed,
                        int32_t *share);

#endif
