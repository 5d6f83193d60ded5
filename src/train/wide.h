/* Evaluation of a network that is too wide for its activations to be in memory. A network of two
 * layers is a sum of narrow ones: blocks of hidden units depend on the features alone, and the last
 * layer adds what blocks give.
 *
 *     logits = Σ over blocks b: layer 2(layer 1(X; W1[:, b]); W2[b, :])    bias in one of them
 *
 * Blocks are taken from the global parameters one after the other. The logits are those of the wide
 * network, but for rounding. */
#ifndef SL_TRAIN_WIDE_H
#define SL_TRAIN_WIDE_H

#include "train/pass.h"
#include "train/rounds.h"

enum { SL_WIDE_SHAPES = 2 }; /* blocks have one width, or two that differ by one */

struct sl_wide {
    struct sl_pass *pass; /* of the wide network, which has logits alone */
    struct sl_layer_list list;
    struct sl_axes axes;
    struct sl_rounds blocks; /* parts of one round */
    int shapes;
    struct sl_model model[SL_WIDE_SHAPES];
    struct sl_network net[SL_WIDE_SHAPES];
};

/* Whether a model can be evaluated by blocks, and has more than one. */
bool sl_wide_fits(const struct sl_model_shape *shape, int64_t vertices, enum sl_type type);

/* Make the narrow networks on the graph of `pass`, whose network is on the global model and has
 * logits alone. They take memory from `places`, of networks on the same ranks that run before or
 * after; NULL: of their own. Return 0 or SL_ERR_SYSTEM; sl_wide_destroy in either case. */
int sl_wide_create(struct sl_wide *wide, struct sl_pass *pass, struct sl_places *places,
                   const struct sl_model_shape *shape, const struct sl_config *config);
void sl_wide_destroy(struct sl_wide *wide);

/* Add what the narrow networks take on this rank to a plan, but shared places. */
struct sl_plan;
void sl_wide_plan(const struct sl_wide *wide, struct sl_plan *plan);

/* Submit the evaluation of the wide network. */
void sl_wide_evaluate(struct sl_wide *wide);

#endif
