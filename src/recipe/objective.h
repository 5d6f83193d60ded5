/* Whether a loss and a metric are defined for the labels of a dataset. */
#ifndef SL_RECIPE_OBJECTIVE_H
#define SL_RECIPE_OBJECTIVE_H

#include <jansson.h>

#include "data/source.h"
#include "recipe/config.h"

/* Take labels for what the loss of a run needs. A loss of classes takes whole numbers for classes.
 * Another one takes classes for numbers, where the trained model predicts a number. `trained`: as
 * of sl_meaning_describe, or NULL. Other labels stay. Collective. SL_ERR_DATA, SL_ERR_SYSTEM. */
int sl_objective_take_labels(struct sl_runtime *rt, const struct sl_config *config,
                             const json_t *trained, struct sl_source *source);

/* Check --loss, --metric, --decision, --class-weights and --label-smoothing with each other and
 * with the labels, if there are any. Return 0, or SL_ERR_USAGE with the sentence. */
int sl_objective_check(const struct sl_config *config, const struct sl_source *source);

#endif
