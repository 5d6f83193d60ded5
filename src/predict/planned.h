/* Networks that are planned: made as the real ones are, and as large, without memory. */
#ifndef SL_PREDICT_PLANNED_H
#define SL_PREDICT_PLANNED_H

#include "graphs/network.h"
#include "predict/scenario.h"

/* The network of one group of ranks, which is a row of a grid. Its tiles have no memory. */
struct sl_planned {
    struct sl_runtime rt;
    struct sl_sparse_matrix adjacency; /* sizes alone */
    struct sl_partials partials;
    struct sl_distribution d;
    struct sl_graph graph;
    struct sl_model model;
    struct sl_network net;
    struct sl_tile *scales, *target; /* the graph's */
    int *rank_cut;
    int64_t *row_cut;
};

/* Make the network of the group of `columns` ranks from rank `first` on. Return 0 or SL_ERR_SYSTEM;
 * sl_planned_destroy in either case. */
int sl_planned_create(struct sl_planned *planned, const struct sl_scenario *scenario, int first,
                      int columns);
void sl_planned_destroy(struct sl_planned *planned);

#endif
