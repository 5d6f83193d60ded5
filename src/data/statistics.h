/* Statistics of a graph for `starling info`. */
#ifndef SL_DATA_STATISTICS_H
#define SL_DATA_STATISTICS_H

#include <stdint.h>

#include "data/dataset.h"

struct sl_graph_statistics {
    int64_t vertices, entries;      /* entries: stored entries of the adjacency */
    int64_t edges;                  /* undirected: pairs, a self loop once; directed: entries */
    double density;                 /* entries / vertices^2 */
    int64_t degree_min, degree_max; /* the degree of a vertex is its row's number of entries */
    double degree_mean;
    int64_t degree_median, degree_p90, degree_p99; /* nearest rank */
    int64_t isolated;                              /* vertices whose row is empty */
    int64_t self_loops;
    int64_t components, largest_component; /* directions ignored */
    int64_t labelled;     /* vertices with a class, or with any of several labels */
    int64_t *class_sizes; // (classes), NULL without labels; owned
    int64_t classes;
    double edge_homophily; /* share of edges between two vertices of equal class among edges, self
                              loops aside, whose ends both have a class. NAN without such edges, or
                              with several labels per vertex */
    double clustering; /* mean over vertices of the share of pairs of neighbours that are joined;
                          vertices without pairs are left out. In large graphs samples give it to
                          about 0.003. NAN without such vertices, in directed graphs and in graphs
                          with loops */
};

/* Compute all statistics in about O(vertices + entries). SL_ERR_SYSTEM: out of memory; *out is then
 * empty. */
int sl_graph_statistics_compute(const struct sl_dataset *data, struct sl_graph_statistics *out);
void sl_graph_statistics_free(struct sl_graph_statistics *statistics);

/* Return the edges as people count them: pairs of an undirected graph, a self loop once; every
 * entry of a directed graph. */
int64_t sl_dataset_edge_count(const struct sl_dataset *data);

#endif
