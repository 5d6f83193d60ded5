/* Whether a loss and a metric are defined for the labels of a dataset. */
#ifndef SL_TRAIN_OBJECTIVE_H
#define SL_TRAIN_OBJECTIVE_H

#include "data/source.h"
#include "train/config.h"

/* Check --loss, --metric, --decision, --class-weights and --label-smoothing with each other and
 * with the labels, if there are any. Return 0, or SL_ERR_USAGE with the sentence. */
int sl_objective_check(const struct sl_config *config, const struct sl_source *source);

#endif
