/* Evaluation of an ensemble of sub-models that never meet (--share none), on the whole graph.
 * The logits are logarithms of the mean of their softmax probabilities:
 *
 *     logits = log(1/M Σ over sub-models m: softmax(network m(X)))
 *
 * Members are best in different epochs, by their validation vertices (table A2 of the paper). The
 * logits of a member's best epoch are kept. At the end of the run, they make an ensemble, too. */
#ifndef SL_SUBMODELS_ENSEMBLE_H
#define SL_SUBMODELS_ENSEMBLE_H

#include "batches/pass.h"
#include "submodels/submodels.h"

/* A member's logits in the epoch of its best validation so far. */
struct sl_ensemble_best {
    struct sl_tile value;    // (1, 2) of double {value, epoch}, on rank 0
    struct sl_matrix logits; // (n, classes)
};

struct sl_ensemble {
    struct sl_pass *pass; /* the wide network's pass, with logits alone; NULL: no ensemble */
    struct sl_submodels *members;
    struct sl_model *model;        // (members): members of one shape share the first member's
    struct sl_network *net;        // (members): members of one shape share the first member's
    struct sl_ensemble_best *best; // (members)
};

/* Return 0, or SL_ERR_USAGE if the loss is not cross-entropy or ranks hold columns of the logits.
 * All ranks return the same. */
int sl_ensemble_check(const struct sl_network *whole);

/* Make the members' networks on the graph of `pass`. The network of `pass` is on the global model
 * and has logits alone. The members' networks take memory from `places`, which networks on the same
 * ranks use before or after; NULL: they have places of their own. Collective. Return 0 or
 * SL_ERR_SYSTEM; call sl_ensemble_destroy in either case. */
int sl_ensemble_create(struct sl_ensemble *ensemble, struct sl_pass *pass, struct sl_places *places,
                       struct sl_submodels *members, const struct sl_config *config);
void sl_ensemble_destroy(struct sl_ensemble *ensemble);

/* Add the memory of the members' networks on this rank to a plan, without shared places. */
struct sl_plan;
void sl_ensemble_plan(const struct sl_ensemble *ensemble, struct sl_plan *plan);

/* Submit the evaluation of the ensemble. Unless the whole network's epoch is 0, keep the logits of
 * members whose validation is the best so far. */
void sl_ensemble_evaluate(struct sl_ensemble *ensemble);

/* Wait for the evaluations of a run. Set epoch (members), on all ranks, to the epoch of each
 * member's best validation; 0: the member was not evaluated. Collective. */
void sl_ensemble_best_epochs(struct sl_ensemble *ensemble, int64_t *epoch);

/* Submit the evaluation of a member's best logits; member -1: of the mean of all members. */
void sl_ensemble_evaluate_best(struct sl_ensemble *ensemble, int member);

#endif
