/* --submodel-share auto: shares of the units that sub-models have, by measured speed of groups. */
#ifndef SL_RUN_SHARE_CHOICE_H
#define SL_RUN_SHARE_CHOICE_H

#include "core/runtime.h"
#include "data/source.h"
#include "recipe/config.h"

/* Turn the seconds that groups took with equal shares into shares of 1 to 100, which are in
 * proportion to their speed. Groups that differ by less than a tenth have equal ones. */
void sl_shares_of_seconds(int groups, const double *seconds, int64_t *share);

/* With --submodel-share auto, measure the groups, and set the option to the shares of their
 * sub-models: each group trains for some epochs with equal shares, and nothing is left of them.
 * Without groups shares are equal. `chosen` as of sl_defaults_say. Collective; returns the codes of
 * sl_trainer_create, the same on all ranks. */
int sl_shares_measure(struct sl_runtime *rt, const struct sl_source *source,
                      struct sl_config *config, char *chosen);

#endif
