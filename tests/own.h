/* What a program could bring (include/starling.h), for tests that train in every way. */
#ifndef SL_TESTS_OWN_H
#define SL_TESTS_OWN_H

/* Give names to --block-norm own-blend, x + v ∘ tanh(x·W + b). Ends the program if that cannot be.
 */
void sl_test_add_own(void);

#endif
