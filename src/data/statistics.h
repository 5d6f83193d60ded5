/* What `starling info` tells about a graph. */
#ifndef SL_DATA_STATISTICS_H
#define SL_DATA_STATISTICS_H

#include <stdint.h>

#include "data/dataset.h"

struct sl_graph_statistics {
    int64_t vertices, entries;      /* entries: stored entries of the adjacency */
    int64_t edges;                  /* undirected: pairs, a self loop once; directed: entries */
    double density;                 /* entries / vertices^2 */
    int64_t degree_min, degree_max; /* a degree is a row's entries */
    double degree_mean;
    int64_t degree_median, degree_p90, degree_p99; /* nearest rank */
    int64_t isolated;                              /* vertices whose row is empty */
    int64_t self_loops;
    int64_t components, largest_component; /* directions ignored */
    int64_t labelled;                      /* vertices with a class, or with any of several */
    int64_t *class_sizes;                  // (classes), NULL without labels; owned
    int64_t classes;
    double edge_homophily; /* share of edges, self loops aside, between two vertices of equal class
                            * among those whose ends both have one; NAN without such edges, or where
                            * labels are multi-label */
    double clustering; /* share of the pairs of a vertex's neighbours that are joined: mean over the
                        * vertices that have pairs, from samples in large graphs, to about 0.003;
                        * NAN without such vertices, and in directed graphs and those with loops */
};

/* About O(vertices + entries). SL_ERR_SYSTEM: out of memory; *out is then empty. */
int sl_graph_statistics_compute(const struct sl_dataset *data, struct sl_graph_statistics *out);
void sl_graph_statistics_free(struct sl_graph_statistics *statistics);

/* Edges as people count them: pairs of an undirected graph, a self loop once; every entry of a
 * directed one. */
int64_t sl_dataset_edge_count(const struct sl_dataset *data);

#endif
