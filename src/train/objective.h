/* Whether a loss and a metric are defined for the labels of a dataset. */
#ifndef SL_TRAIN_OBJECTIVE_H
#define SL_TRAIN_OBJECTIVE_H

#include <jansson.h>

#include "data/source.h"
#include "train/config.h"

/* Take labels for what the loss of a run needs: whole numbers for classes, where it is one of
 * classes; classes for numbers, where the model that `trained` describes (sl_meaning_describe; or
 * NULL) predicts one. Other labels stay. Collective. SL_ERR_DATA, SL_ERR_SYSTEM. */
int sl_objective_take_labels(struct sl_runtime *rt, const struct sl_config *config,
                             const json_t *trained, struct sl_source *source);

/* Check --loss, --metric, --decision, --class-weights and --label-smoothing with each other and
 * with the labels, if there are any. Return 0, or SL_ERR_USAGE with the sentence. */
int sl_objective_check(const struct sl_config *config, const struct sl_source *source);

#endif
