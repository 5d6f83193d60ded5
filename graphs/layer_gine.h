/* Data that layer_gine.c and reduce_gine.c share. */
#ifndef SL_GRAPHS_LAYER_GINE_H
#define SL_GRAPHS_LAYER_GINE_H

#include "graphs/edge_sums.h"

/* A walk of a layer: `parameters` of its reduction. */
struct sl_gine_pass {
    struct sl_tile *edge;      // (K + 1, columns): the weight of edge features and its bias
    struct sl_edge_sums *sums; /* back: the gradient of `edge` */
    bool first;                /* back: nobody reads D, whose matrix is a column of zeros */
};

#endif
