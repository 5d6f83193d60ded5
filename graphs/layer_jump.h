/* Jumps: outputs that a later layer reads, beside the next layer. */
#ifndef SL_GRAPHS_LAYER_JUMP_H
#define SL_GRAPHS_LAYER_JUMP_H

#include "graphs/network.h"

/* Return whether a jump reads the output of layer `l`, and the next layer does, too. */
bool sl_jump_reads(const struct sl_network *net, int l);

/* The work of a maximum over several inputs (codelets/jump_max.h) in a training step: tasks of each
 * row tile, and bytes that the tasks read and write for each element. 0 for all other layers. */
int sl_jump_max_tasks(const struct sl_layer_shape *shape);
double sl_jump_max_bytes(const struct sl_layer_shape *shape);

/* Submit the gradient of the pre-activation of the layer before `layer`, whose output a jump reads,
 * and of the jump's weights for that output. D, float32: the share of `layer` alone, before the
 * epilogue. Return the gradient, in the place of the output. */
struct sl_matrix *sl_jump_back(struct sl_network *net, struct sl_layer *layer,
                               const struct sl_matrix *d);

#endif
