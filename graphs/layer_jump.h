/* Jumps: outputs that a later layer reads, beside the next layer. */
#ifndef SL_GRAPHS_LAYER_JUMP_H
#define SL_GRAPHS_LAYER_JUMP_H

#include "graphs/network.h"

/* Return whether a jump reads the output of layer `l`, and the next layer does, too. */
bool sl_jump_reads(const struct sl_network *net, int l);

/* Submit the gradient of the pre-activation of the layer before `layer`, whose output a jump reads,
 * and of the jump's weights for that output. D, float32: the share of `layer` alone, before the
 * epilogue. Return the gradient, in the place of the output. */
struct sl_matrix *sl_jump_back(struct sl_network *net, struct sl_layer *layer,
                               const struct sl_matrix *d);

#endif
