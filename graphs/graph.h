/* A distributed graph to train on. The caller owns all of it. */
#ifndef SL_GRAPHS_GRAPH_H
#define SL_GRAPHS_GRAPH_H

#include "graphs/distribution.h"
#include "graphs/metric.h"

/* diag(right) times the features, or Â times the features. */
struct sl_input {
    bool sparse;
    bool aggregated;
    int row_order;
    int64_t width;
    struct sl_matrix dense;      // (n, f)
    struct sl_sparse_matrix csr; // (n, f), cut as `dense`
};

struct sl_links;

/* The links of a planned network, which has no struct sl_links. */
struct sl_planned_links {
    int64_t negatives; /* negatives of each training link; 0: labels of vertices are trained on */
    int64_t measured;  /* links and negatives of validation and test */
    int64_t numbered;  /* vertices whose rows each rank lists; 0: rows are their numbers */
};

struct sl_graph {
    /* With two vertex orders, each aggregation goes from one order to the other. Members
     * (row_orders) have an entry for each order. `distribution` without an index is the first
     * order's. */
    int row_orders;
    const struct sl_distribution *distribution; // (row_orders)
    /* S = A or A + I, where Â = diag(left)·S·diag(right); rows in this vertex order, columns in the
     * other */
    const struct sl_sparse_matrix *adjacency;            // (row_orders)
    const struct sl_sparse_matrix *adjacency_transposed; /* `adjacency` where S is symmetric */
    struct sl_tile *const *scales; // (row_orders) x T tiles (SL_ROW_SCALES, rows)
    struct sl_input input;
    bool scaled; /* rows of the features are stored multiplied by diag(right) */
    struct sl_input
        own; /* the features, where a layer multiplies them beside the aggregated input */
    struct sl_objective objective;
    struct sl_tile *const *target; // (row_orders) x T tiles (rows, sl_target_width) of int32
    struct sl_tile *weights; // (2, columns): weights of the values 0 and 1, on this rank; NULL: 1
    enum sl_type type;       /* type of the features, of layers' outputs and of their gradients */
    int64_t vertices;
    int64_t train_count;
    struct sl_links *links; /* links to train on (graphs/links.h); NULL: labels of vertices */
    struct sl_planned_links planned_links;
};

#endif
