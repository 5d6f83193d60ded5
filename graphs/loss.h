/* Losses: what an epoch does with the outputs of the last layer, its logits, and the targets of
 * vertices. Each loss has a file loss_<name>.c. */
#ifndef SL_GRAPHS_LOSS_H
#define SL_GRAPHS_LOSS_H

#include "codelets/operation.h"

/* Tiles of the same rows. */
struct sl_loss_tiles {
    struct sl_tile *facts, *target, *metrics;
    struct sl_tile *z; /* the logits */
};

struct sl_loss {
    int targets; /* numbers of a vertex, int32 */
    /* Set the targets of a vertex with that label (-1: none) in that split (core/split.h). */
    void (*set)(int32_t *target, int32_t label, int32_t split);
    /* Submit metrics = the sums over the training vertices, Z = the gradient of their mean loss,
     * times the fact `factor` of each row. */
    void (*differentiate)(struct sl_runtime *rt, int64_t train_count, enum sl_row_fact factor,
                          const struct sl_loss_tiles *tiles);
    /* Submit metrics = the sums over all vertices, for each split. */
    void (*count)(struct sl_runtime *rt, const struct sl_loss_tiles *tiles);
};

/* Softmax cross-entropy; targets {label or -1, split}. */
extern const struct sl_loss sl_loss_softmax;

#endif
