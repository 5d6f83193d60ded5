/* Evaluation of a network that is too wide for its activations to be in memory. A network of two
 * layers is a sum of narrow ones: blocks of hidden units depend on the features alone, and the last
 * layer adds what blocks give.
 *
 *     logits = Σ over blocks b: layer 2(layer 1(X; W1[:, b]); W2[b, :])    bias in one of them
 *
 * Blocks are taken from the global parameters one after the other. The logits are those of the wide
 * network, but for rounding.
 *
 * The sub-models of an ensemble are evaluated in the same way, with any number of layers. Their
 * softmax probabilities have a mean, whose logarithms are the logits:
 *
 *     logits = log(1/M Σ over sub-models b: softmax(network b(X)))                               */
#ifndef SL_TRAIN_WIDE_H
#define SL_TRAIN_WIDE_H

#include "train/pass.h"
#include "train/submodels.h"

struct sl_wide {
    struct sl_pass *pass;   /* of the wide network, which has logits alone; NULL: nothing to do */
    struct sl_store *store; /* its parameters */
    const struct sl_submodels *members; /* of an ensemble; NULL: logits of blocks add up */
    struct sl_layer_list list;
    struct sl_axes axes;
    struct sl_rounds blocks; /* parts of one round */
    struct sl_model *model;  // (blocks): those of the first block of each shape, which others share
    struct sl_network *net;  // (blocks): likewise
};

/* Whether a model can be evaluated by blocks, and has more than one. */
bool sl_wide_fits(const struct sl_model_shape *shape, int64_t vertices, enum sl_type type);

/* Return 0, or SL_ERR_USAGE where there are no whole rows of classes to average, the same on all
 * ranks. */
int sl_wide_check_ensemble(const struct sl_network *whole);

/* Make the narrow networks on the graph of `pass`, whose network is on the store's model and has
 * logits alone. `members`: an ensemble, or NULL. They take memory from `places`, of networks on the
 * same ranks that run before or after; NULL: of their own. Collective. Return 0 or SL_ERR_SYSTEM;
 * sl_wide_destroy in either case. */
int sl_wide_create(struct sl_wide *wide, struct sl_pass *pass, struct sl_store *store,
                   struct sl_places *places, const struct sl_model_shape *shape,
                   const struct sl_config *config, const struct sl_submodels *members);
void sl_wide_destroy(struct sl_wide *wide);

/* Add what the narrow networks take on this rank to a plan, but shared places. */
struct sl_plan;
void sl_wide_plan(const struct sl_wide *wide, struct sl_plan *plan);

/* Submit the evaluation of the wide network. */
void sl_wide_evaluate(struct sl_wide *wide);

#endif
