/* Data that layer_rgcn.c and reduce_rgcn.c share. */
#ifndef SL_GRAPHS_LAYER_RGCN_H
#define SL_GRAPHS_LAYER_RGCN_H

#include "graphs/edge_sums.h"

/* A walk of a layer: `parameters` of its reduction. */
struct sl_rgcn_pass {
    int64_t relations;
    struct sl_tile *weight; // (weight_row + relations · in …, out)
    int64_t weight_row;
    struct sl_edge_sums *sums; /* back: the gradient of the relations' weights */
    bool first;                /* back: nobody reads D, whose matrix is a column of zeros */
};

#endif
