/* Losses: what an epoch does with the outputs of the last layer, its logits, and the targets of
 * vertices. */
#ifndef SL_GRAPHS_LOSS_H
#define SL_GRAPHS_LOSS_H

#include "codelets/operation.h"

/* Tiles of the same rows. */
struct sl_loss_tiles {
    struct sl_tile *facts, *target, *metrics;
    struct sl_tile *z; /* the logits */
};

struct sl_loss {
    const char *name; /* of --loss */
    int targets;      /* numbers of a vertex, int32 */
    /* Set the targets of a vertex with that label (-1: none) in that split (core/split.h). */
    void (*set)(int32_t *target, int32_t label, int32_t split);
    /* Submit metrics = the sums over the training vertices, Z = the gradient of their mean loss,
     * times the fact `factor` of each row. */
    void (*differentiate)(struct sl_runtime *rt, int64_t train_count, enum sl_row_fact factor,
                          const struct sl_loss_tiles *tiles);
    /* Submit metrics = the sums over all vertices, for each split. */
    void (*count)(struct sl_runtime *rt, const struct sl_loss_tiles *tiles);
};

/* The losses: one entry and one file loss_<id>.c with sl_loss_<id> each. --loss offers them by the
 * name in quotes.
 *
 *   softmax   cross-entropy of the softmax over classes; targets {label or -1, split} */
#define SL_LOSSES(ENTRY) ENTRY(softmax, "cross-entropy")

#define SL_LOSS_DECLARED(id, name) extern const struct sl_loss sl_loss_##id;
SL_LOSSES(SL_LOSS_DECLARED)
#undef SL_LOSS_DECLARED

/* "|cross-entropy". */
#define SL_LOSS_NAMED(id, name) "|" name
#define SL_LOSS_NAMES           SL_LOSSES(SL_LOSS_NAMED)

/* Return the loss of that name, or NULL. */
const struct sl_loss *sl_loss_find(const char *name);

#endif
