/* Objectives, layers and reducers that a program could bring (include/starling.h), for tests that
 * train in every way. */
#ifndef SL_TESTS_OWN_H
#define SL_TESTS_OWN_H

/* Make --block-norm own-blend, x + v ∘ tanh(x·W + b), and --aggregator own-power, log(Σ w e^h). End
 * the program if that cannot be. */
void sl_test_add_own(void);

#endif
