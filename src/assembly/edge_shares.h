/* Finds which rank has which edges in a vertex-cut. */
#ifndef SL_ASSEMBLY_EDGE_SHARES_H
#define SL_ASSEMBLY_EDGE_SHARES_H

#include "data/partition/parts.h"
#include "data/source.h"

/* Cut all edges of `graph` into `parts` parts, on this process alone. `partition`: a method of
 * starling partition, or a file that it wrote; NULL: metis. Edges follow parts of vertices
 * (data/partition/edge_parts.h). SL_ERR_DATA: the file is wrong, or of another graph or number of
 * parts. Call sl_parts_close in any case. */
int sl_edge_shares_cut(const struct sl_source *source, const struct sl_dataset *graph,
                       const char *partition, int parts, uint64_t seed, struct sl_parts *out);

/* Cut the edges after given parts of the vertices, vertex_part (n), on this process alone. */
int sl_edge_shares_follow(const struct sl_dataset *graph, int parts, uint64_t seed,
                          const int32_t *vertex_part, struct sl_parts *out);

/* Set share[e], for each entry e of this rank's rows `home`, to the rank that gets the entry. The
 * source is in the order of its files. Rank 0 cuts, and holds the whole adjacency meanwhile, unless
 * `partition` is a file of edges or the source has the parts already. Collective. Return 0,
 * SL_ERR_SYSTEM, or SL_ERR_DATA as sl_edge_shares_cut does. */
int sl_edge_shares_find(struct sl_runtime *rt, const struct sl_source *source,
                        const struct sl_part *home, const char *partition, uint64_t seed,
                        int32_t *share);

#endif
