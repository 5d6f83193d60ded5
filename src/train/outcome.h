/* Evaluations outside epochs: results of a run. */
#ifndef SL_TRAIN_OUTCOME_H
#define SL_TRAIN_OUTCOME_H

#include "train/trainer.h"

/* Submit an evaluation of the current parameters on the whole graph. */
void sl_trainer_evaluate_whole(struct sl_trainer *trainer);

/* Return the accuracies of each member of an ensemble at its best validation, and of the ensemble,
 * as a new JSON object; NULL: there is none. */
json_t *sl_members_describe(struct sl_trainer *trainer);

#endif
