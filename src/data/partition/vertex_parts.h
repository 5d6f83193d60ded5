/* Edge-cuts: every vertex in one of several parts. */
#ifndef SL_DATA_PARTITION_VERTEX_PARTS_H
#define SL_DATA_PARTITION_VERTEX_PARTS_H

#include <stdint.h>

#include "data/dataset.h"

/* part[v] (rows), 0 … parts - 1: at random, so that sizes differ by one at most. Any number of
 * parts, also more than vertices. */
void sl_vertex_parts_random(int64_t vertices, int parts, uint64_t seed, int32_t *part);

enum sl_vertex_weights {
    SL_VERTICES_EQUAL,
    SL_VERTICES_BY_WORK, /* a vertex weighs its entries and SL_VERTEX_WORK */
};

/* Dense products, epilogues and loss of a row take about as long as the sparse products of this
 * many entries: 20 to 40, with 16 to 256 columns. */
enum { SL_VERTEX_WORK = 30 };

/* Return the weight of a vertex with so many entries: its entries and SL_VERTEX_WORK. Where `sum`,
 * that of all vertices, is over `most`, weights are divided, so that they add up to at most `most`.
 * No weight is below 1. */
int64_t sl_vertex_weight(int64_t entries, int64_t sum, int64_t most);

/* The same by METIS' k-way partition: few edges between parts of about equal weight (METIS takes 3
 * % more than the mean to be equal). `graph` is a symmetric pattern, of which loops and values say
 * nothing; parts may be empty where there are few vertices. The same on all machines. SL_ERR_DATA:
 * more entries than METIS can count. */
int sl_vertex_parts_metis(const struct sl_csr *graph, enum sl_vertex_weights weights, int parts,
                          uint64_t seed, int32_t *part);

/* The same, weighed by work, but each part has about its share of every class of vertices. Class
 * c are the vertices cut[c] … cut[c + 1] - 1; an empty class is none. METIS keeps the shares less
 * well, the more classes there are. */
int sl_vertex_parts_metis_classes(const struct sl_csr *graph, int classes, const int64_t *cut,
                                  int parts, uint64_t seed, int32_t *part);

/* The most memory that METIS and the graph it reads take, as measured: 37 to 50 bytes for each
 * entry where it counts in 32 bits. A second and a third class take 7 to 37 bytes more for each
 * vertex, which are in it. */
int64_t sl_vertex_parts_bytes(int64_t vertices, int64_t entries);

/* What an edge-cut comes to. */
struct sl_vertex_parts_report {
    double cut;            /* share of the entries, loops aside, whose ends are in two parts */
    double vertex_balance; /* vertices of the largest part / mean */
    double entry_balance;  /* entries of A + I in the rows of the part with most / mean */
    double halo;           /* vertices of other parts that parts read, per vertex of the graph */
};

/* `graph` need not be symmetric. SL_ERR_SYSTEM: out of memory. */
int sl_vertex_parts_report(const struct sl_csr *graph, int parts, const int32_t *part,
                           struct sl_vertex_parts_report *out);

/* The largest of `parts` loads over their mean; 1 where there is no load. */
double sl_parts_balance(const int64_t *load, int parts);

#endif
