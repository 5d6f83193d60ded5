/* Orders of vertices. A vertex aggregates from its neighbours' rows: where neighbours have numbers
 * close together, rows are still in the cache when they are read again. A new order is a function,
 * its prototype, its row in order.c and its name in SL_ORDER_CHOICES. */
#ifndef SL_DATA_ORDER_H
#define SL_DATA_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "data/dataset.h"

/* Choices of options for an order. */
#define SL_ORDER_CHOICES "none|degree|rcm|rabbit|metis|random"

/* Set vertices[r] (n) to the vertex that comes at place r. `graph` is a symmetric pattern: its
 * values mean nothing. Equal graph and seed give an equal order on every machine. */
typedef int sl_order_function(const struct sl_csr *graph, uint64_t seed, int32_t *vertices);

struct sl_order {
    const char *name, *summary;
    sl_order_function *compute; /* NULL: keep the present order */
    bool needs_edges;           /* the order looks at edges; else it uses only the number of rows */
};

/* All orders; a row whose name is NULL ends the table. */
extern const struct sl_order sl_orders[];

/* Return whether an order leaves the vertices as they are. */
static inline bool sl_order_is_none(const struct sl_order *order)
{
    return order == sl_orders; /* the first row is "none" */
}

/* Return the order of that name; NULL if there is none (SL_ERR_USAGE lists the names). */
const struct sl_order *sl_order_find(const char *name);

/* Compute the order of a graph that need not be symmetric, from the union with its transpose.
 * `order` must have a function. Without `needs_edges`, the dataset needs only the rows of the
 * adjacency, and `symmetric`, which must be set. */
int sl_order_compute(const struct sl_order *order, const struct sl_dataset *data, uint64_t seed,
                     int32_t *vertices);

/* Order vertices by the length of their rows; rows of equal length keep their order. */
int sl_order_by_degree(const struct sl_csr *graph, bool descending, int32_t *vertices);

/* Compute reverse Cuthill-McKee (Cuthill and McKee 1969; George 1971), component by component, each
 * from a pseudo-peripheral vertex (George and Liu, "An implementation of a pseudoperipheral node
 * finder", ACM TOMS 5(3), 1979). */
int sl_order_rcm(const struct sl_csr *graph, uint64_t seed, int32_t *vertices);

/* Compute Rabbit Order (Arai et al., "Rabbit Order: just-in-time parallel reordering for fast graph
 * analysis", IPDPS 2016): communities merge as modularity tells, and vertices follow the tree of
 * merges. */
int sl_order_rabbit(const struct sl_csr *graph, uint64_t seed, int32_t *vertices);

/* Compute Rabbit Order on so many threads; the order does not depend on their number. */
int sl_order_rabbit_by(int threads, const struct sl_csr *graph, int32_t *vertices);

/* Order vertices by METIS' k-way partition into parts whose rows fit a cache. Parts come one after
 * the other; vertices of a part keep their order. SL_ERR_DATA: more entries than METIS can count.
 */
int sl_order_metis(const struct sl_csr *graph, uint64_t seed, int32_t *vertices);

#endif
