/* The memory of a network's matrices. */
#ifndef SL_GRAPHS_NETWORK_PLACES_H
#define SL_GRAPHS_NETWORK_PLACES_H

#include "graphs/network.h"

/* Add a described matrix to a place of the network. Return 0 or SL_ERR_SYSTEM. */
int sl_network_share(struct sl_network *net, enum sl_place_use use, int number,
                     struct sl_matrix *matrix);

/* Give memory to all described matrices of the network. Where networks share places, give each
 * matrix a place, whose memory the caller allocates. Return 0 or SL_ERR_SYSTEM. */
int sl_network_allocate(struct sl_network *net);

/* Take the network's matrices out of places that other networks share. */
void sl_network_leave_places(struct sl_network *net);

#endif
