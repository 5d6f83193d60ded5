/* Vertex-cuts: every edge belongs to one part. A part holds a clone of every vertex that its edges
 * touch. */
#ifndef SL_DATA_PARTITION_EDGE_PARTS_H
#define SL_DATA_PARTITION_EDGE_PARTS_H

#include <stdint.h>

#include "data/dataset.h"

enum { SL_EDGE_PARTS_MOST = 16384 };

/* The functions below set part[k] (entries), 0 … parts - 1, for every stored entry k. `parts` may
 * be any number up to SL_EDGE_PARTS_MOST. Edges come one after the other in random order. Where the
 * graph is `symmetric`, an undirected edge is one edge: both of its entries go to the same part. No
 * part takes over 3 % more entries than the mean, and 1; sl_edge_parts_follow has no such limit.
 * Rows are sorted and without duplicates. The same graph and seed give the same parts.
 * SL_ERR_SYSTEM: out of memory. */

/* Partition by Libra (Xie et al., "Distributed power-law graph computing: theoretical and empirical
 * analysis", NIPS 2014) as DistGNN describes it (SC'21, section 5.1). An edge goes to the least
 * loaded part that holds both of its ends. Else it goes to the least loaded part that holds one
 * end, or to the least loaded part of all. Of equal loads, the first part wins. */
int sl_edge_parts_libra(const struct sl_csr *graph, bool symmetric, int parts, uint64_t seed,
                        int32_t *part);

/* Partition by HDRF (Petroni et al., "HDRF: stream-based partitioning for power-law graphs", CIKM
 * 2015) with known degrees: vertices of high degree are split first. `lambda` is the weight of even
 * loads. */
int sl_edge_parts_hdrf(const struct sl_csr *graph, bool symmetric, int parts, uint64_t seed,
                       double lambda, int32_t *part);

/* Let edges follow an edge-cut: an edge goes to the part of its ends. If its ends are in two parts,
 * it goes to the part that already holds both ends. Where both parts hold both ends, or neither
 * does, it goes to the less loaded part. `vertex_part` (rows): 0 … parts - 1. Parts are only as
 * even as the edge-cut. */
int sl_edge_parts_follow(const struct sl_csr *graph, bool symmetric, int parts, uint64_t seed,
                         const int32_t *vertex_part, int32_t *part);

/* Quality of a vertex-cut. */
struct sl_edge_parts_report {
    double replication;    /* mean clones of a vertex; a vertex without edges counts 1 */
    double random;         /* expected replication if edges went to random parts (Gonzalez et al.,
                              "PowerGraph", OSDI 2012, theorem 5.2) */
    double split;          /* share of the vertices that have several clones */
    double edge_balance;   /* entries of the part with most entries / mean */
    double vertex_balance; /* clones of the part with most clones / mean */
};

int sl_edge_parts_report(const struct sl_csr *graph, bool symmetric, int parts, const int32_t *part,
                         struct sl_edge_parts_report *out);

#endif
