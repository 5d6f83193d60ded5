/* The largest of neighbours, elementwise, on grids of one column and one layer. */
#ifndef SL_GRAPHS_LARGEST_H
#define SL_GRAPHS_LARGEST_H

#include "graphs/network.h"

/* Z(v, j) = the largest of w(v, u)·H(u, j) over the neighbours u of v, 0 where there is none, and
 * FROM, of int32, the row that it comes from. Both are float32, and so is G. */
void sl_network_largest(struct sl_network *net, const struct sl_matrix *h, struct sl_matrix *from,
                        struct sl_matrix *z);

/* DH = the gradient of H from G, that of Z. */
void sl_network_largest_back(struct sl_network *net, const struct sl_matrix *g,
                             const struct sl_matrix *from, struct sl_matrix *dh);

#endif
