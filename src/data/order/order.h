/* Orders of vertices. A vertex aggregates from its neighbours' rows: where neighbours have numbers
 * close together, rows are still in the cache when they are read again. A new order is a function,
 * its prototype, its row in order.c and its name in SL_ORDER_CHOICES. */
#ifndef SL_DATA_ORDER_H
#define SL_DATA_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "data/dataset.h"

/* As an option's choices. */
#define SL_ORDER_CHOICES "none|degree|rcm|rabbit|metis|random"

/* vertices[r] (n) becomes the vertex that comes at place r. `graph` is a symmetric pattern: its
 * values say nothing. The same graph and seed give the same order, on every machine. */
typedef int sl_order_function(const struct sl_csr *graph, uint64_t seed, int32_t *vertices);

struct sl_order {
    const char *name, *summary;
    sl_order_function *compute; /* NULL: the order as it is */
    bool needs_edges;           /* else the graph has only its number of rows */
};

/* All orders; a row whose name is NULL ends the table. */
extern const struct sl_order sl_orders[];

/* Whether an order leaves the vertices as they are. */
static inline bool sl_order_is_none(const struct sl_order *order)
{
    return order == sl_orders; /* the first row */
}

/* The order of that name; NULL (SL_ERR_USAGE with the names that there are) if there is none. */
const struct sl_order *sl_order_find(const char *name);

/* The order of a graph that need not be symmetric: that of the union with its transpose. `order`
 * must have a function. Without `needs_edges` no more of the dataset is there than the rows of the
 * adjacency, and `symmetric`, which is set. */
int sl_order_compute(const struct sl_order *order, const struct sl_dataset *data, uint64_t seed,
                     int32_t *vertices);

/* By the length of rows; equal ones stay as they are. */
int sl_order_by_degree(const struct sl_csr *graph, bool descending, int32_t *vertices);

/* Reverse Cuthill-McKee (Cuthill and McKee 1969; George 1971), component by component, each from a
 * pseudo-peripheral vertex (George and Liu, "An implementation of a pseudoperipheral node finder",
 * ACM TOMS 5(3), 1979). */
int sl_order_rcm(const struct sl_csr *graph, uint64_t seed, int32_t *vertices);

/* Rabbit Order (Arai et al., "Rabbit Order: just-in-time parallel reordering for fast graph
 * analysis", IPDPS 2016): communities merge as modularity tells, and vertices follow the tree of
 * merges. */
int sl_order_rabbit(const struct sl_csr *graph, uint64_t seed, int32_t *vertices);

/* The same on so many threads, which the order does not depend on. */
int sl_order_rabbit_by(int threads, const struct sl_csr *graph, int32_t *vertices);

/* METIS' k-way partition into parts whose rows fit a cache; parts one after the other, vertices of
 * a part as they were. SL_ERR_DATA: more entries than METIS can count. */
int sl_order_metis(const struct sl_csr *graph, uint64_t seed, int32_t *vertices);

#endif
