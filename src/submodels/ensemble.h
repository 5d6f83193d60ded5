/* Evaluation of an ensemble, of sub-models that never meet (--share none), on the whole graph.
 * Their softmax probabilities have a mean, whose logarithms are the logits:
 *
 *     logits = log(1/M Σ over sub-models m: softmax(network m(X)))
 *
 * Members are best in different epochs, by their validation vertices (table A2 of the paper). The
 * logits of a member's best epoch are kept. At the end of the run, they make an ensemble, too. */
#ifndef SL_SUBMODELS_ENSEMBLE_H
#define SL_SUBMODELS_ENSEMBLE_H

#include "batches/pass.h"
#include "submodels/submodels.h"

/* A member at its best validation so far. */
struct sl_ensemble_best {
    struct sl_tile value;    // (1, 2) of double {value, epoch}, on rank 0
    struct sl_matrix logits; // (n, classes)
};

struct sl_ensemble {
    struct sl_pass *pass; /* of the wide network, which has logits alone; NULL: there is none */
    struct sl_submodels *members;
    struct sl_model *model;        // (members): members of one shape share the first member's
    struct sl_network *net;        // (members): likewise
    struct sl_ensemble_best *best; // (members)
};

/* Return 0, or SL_ERR_USAGE where there are no whole rows of classes to average, the same on all
 * ranks. */
int sl_ensemble_check(const struct sl_network *whole);

/* Make the members' networks on the graph of `pass`, whose network is on the global model and has
 * logits alone. They take memory from `places`, of networks on the same ranks that run before or
 * after; NULL: of their own. Collective. Return 0 or SL_ERR_SYSTEM; sl_ensemble_destroy in either
 * case. */
int sl_ensemble_create(struct sl_ensemble *ensemble, struct sl_pass *pass, struct sl_places *places,
                       struct sl_submodels *members, const struct sl_config *config);
void sl_ensemble_destroy(struct sl_ensemble *ensemble);

/* Add what the networks take on this rank to a plan, but shared places. */
struct sl_plan;
void sl_ensemble_plan(const struct sl_ensemble *ensemble, struct sl_plan *plan);

/* Submit the evaluation of the ensemble. In an epoch (the whole network's, unless it is 0), keep
 * members whose validation is the best so far. */
void sl_ensemble_evaluate(struct sl_ensemble *ensemble);

/* Wait for the evaluations of a run. Set epoch (members), on all ranks, to the epochs in which
 * their validation was best; 0: none was evaluated. Collective. */
void sl_ensemble_best_epochs(struct sl_ensemble *ensemble, int64_t *epoch);

/* Submit the evaluation of a member at its best, or, of member -1, of the ensemble of all. */
void sl_ensemble_evaluate_best(struct sl_ensemble *ensemble, int member);

#endif
