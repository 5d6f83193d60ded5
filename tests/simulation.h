/* A slow simulation of training on a vertex-cut, all ranks of it, in double precision: DistGNN's
 * algorithm 4, step by step, with everything that ever was sent at hand. */
#ifndef SL_TESTS_SIMULATION_H
#define SL_TESTS_SIMULATION_H

#include "data/dataset.h"
#include "tests/reference.h"

enum { SL_SIMULATED_LAYERS = 3, SL_SIMULATED_HIDDEN = 6, SL_SIMULATED_RANKS = 8 /* most */ };
#define SL_SIMULATED_RATE 0.5

/* A fixture cut by Libra with seed 1; roots and bins as in docs/DISTRIBUTIONS.md. */
struct sl_simulated {
    const struct sl_dataset *data;
    enum sl_reference_norm norm; /* not SL_REFERENCE_ROW, _SUM or _MAX */
    int ranks, delay;            /* -1: 0c */
    bool scaled;                 /* sums of clones that have not met */
    bool degrees;                /* means by the rule of DistGNN's code: below */
    bool gemm_first;
};

/* With `degrees`, for SL_REFERENCE_MEAN without weights of edges: each message row carries the
 * number of entries behind its sum. Roots add these numbers as they add rows, and leaves take
 * them. A clone divides its sum by the number it knows. Going back, nothing is exchanged; a clone
 * divides by the number of its own entries. DistGNN's code divides by the number it knew forward,
 * which is another one where clones have met. */

/* Simulate at most 64 plain steps of gradient descent from the weights of seed 1, without dropout.
 * Set losses (steps) to the loss before each step, and `leaves` to the number of leaves. */
void sl_simulate(const struct sl_simulated *what, int steps, double *losses, int64_t *leaves);

#endif
