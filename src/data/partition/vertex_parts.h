/* Edge-cuts: each vertex is in one part. */
#ifndef SL_DATA_PARTITION_VERTEX_PARTS_H
#define SL_DATA_PARTITION_VERTEX_PARTS_H

#include <stdint.h>

#include "data/dataset.h"

/* Set part[v] (rows) to random parts 0 … parts - 1, whose sizes differ by one at most. There may be
 * more parts than vertices. */
void sl_vertex_parts_random(int64_t vertices, int parts, uint64_t seed, int32_t *part);

enum sl_vertex_weights {
    SL_VERTICES_EQUAL,
    SL_VERTICES_BY_WORK, /* a vertex weighs its entries plus SL_VERTEX_WORK */
};

/* Dense products, epilogues and loss of a row take about as long as the sparse products of this
 * many entries: 20 to 40, with 16 to 256 columns. */
enum { SL_VERTEX_WORK = 30 };

/* Return the weight of a vertex with so many entries: entries plus SL_VERTEX_WORK, at least 1.
 * Where `sum`, the weight of all vertices, is over `most`, divide weights so that they add up to at
 * most `most`. */
int64_t sl_vertex_weight(int64_t entries, int64_t sum, int64_t most);

/* Set part[v] (rows) by METIS' k-way partition: few edges between parts of about equal weight (up
 * to 3 % above the mean). `graph` is a symmetric pattern, whose loops and values mean nothing;
 * parts may be empty where there are few vertices. The parts are equal on all machines.
 * SL_ERR_DATA: more entries than METIS can count. */
int sl_vertex_parts_metis(const struct sl_csr *graph, enum sl_vertex_weights weights, int parts,
                          uint64_t seed, int32_t *part);

/* Partition as sl_vertex_parts_metis does by work, so that each part has about its share of every
 * class of vertices. Class c has the vertices cut[c] … cut[c + 1] - 1 and may be empty. With more
 * classes, METIS keeps the shares less well. */
int sl_vertex_parts_metis_classes(const struct sl_csr *graph, int classes, const int64_t *cut,
                                  int parts, uint64_t seed, int32_t *part);

/* Return the most memory, as measured, of METIS and its graph: 37 to 50 bytes for each entry where
 * METIS counts in 32 bits. It includes a second and a third class, which take 7 to 37 bytes more
 * for each vertex. */
int64_t sl_vertex_parts_bytes(int64_t vertices, int64_t entries);

/* Quality of an edge-cut. */
struct sl_vertex_parts_report {
    double cut;            /* share of the entries, loops aside, whose ends are in two parts */
    double vertex_balance; /* vertices of the largest part / mean */
    double entry_balance;  /* entries of A + I in the rows of the part with most / mean */
    double halo;           /* vertices of other parts that parts read, per vertex of the graph */
};

/* Compute the quality of an edge-cut. `graph` may have directions. SL_ERR_SYSTEM: out of memory. */
int sl_vertex_parts_report(const struct sl_csr *graph, int parts, const int32_t *part,
                           struct sl_vertex_parts_report *out);

/* Return the largest of `parts` loads over their mean; 1 where there is no load. */
double sl_parts_balance(const int64_t *load, int parts);

#endif
