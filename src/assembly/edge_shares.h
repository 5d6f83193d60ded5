/* Which rank has which edges, of a vertex-cut. */
#ifndef SL_ASSEMBLY_EDGE_SHARES_H
#define SL_ASSEMBLY_EDGE_SHARES_H

#include "data/partition/parts.h"
#include "data/source.h"

/* Parts of the edges of `graph`, all of it, on this process alone: by a method of starling
 * partition, or out of a file that it wrote; NULL: metis. Edges follow parts of vertices
 * (data/partition/edge_parts.h). SL_ERR_DATA: the file is wrong, or of another graph or number of
 * parts. sl_parts_close in any case. */
int sl_edge_shares_cut(const struct sl_source *source, const struct sl_dataset *graph,
                       const char *partition, int parts, uint64_t seed, struct sl_parts *out);

/* Those that follow vertex_part (n); alone, too. */
int sl_edge_shares_follow(const struct sl_dataset *graph, int parts, uint64_t seed,
                          const int32_t *vertex_part, struct sl_parts *out);

/* Whether `partition` is a method, and no file. */
bool sl_edge_shares_is_method(const char *partition);

/* share[e] (entries of `home`) = the rank that has the entry, for this rank's rows `home` of a
 * source in the order of its files. Unless it is a file of edges, or the source has the parts
 * already, rank 0 cuts, and has the whole adjacency in its memory meanwhile. Collective.
 * SL_ERR_DATA, as above. */
int sl_edge_shares_find(struct sl_runtime *rt, const struct sl_source *source,
                        const struct sl_part *home, const char *partition, uint64_t seed,
                        int32_t *share);

#endif
