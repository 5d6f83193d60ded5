/* Axes of a model: between two layers lies an axis of units, along which parameters split. The
 * units of a layer's output are the units of the next layer's input. A layer without weights, such
 * as a norm, keeps its axis, and outputs that are added share one. So a residual network has one
 * axis for its whole stream. */
#ifndef SL_GRAPHS_AXES_H
#define SL_GRAPHS_AXES_H

#include "graphs/model.h"

struct sl_axis {
    int64_t width; /* units */
    int heads;     /* heads with equally many units, which split alike; 1: none */
    bool hidden;   /* neither features nor classes */
};

struct sl_axes {
    int count;            /* from the features to the classes */
    struct sl_axis *axis; // (count)
    int *in, *out;        // (layers): the axes of each layer's input and output
};

/* Find the axes of a list of layers. Return 0 or SL_ERR_SYSTEM; sl_axes_free in either case. */
int sl_axes_find(const struct sl_layer_list *list, struct sl_axes *axes);
void sl_axes_free(struct sl_axes *axes);

#endif
