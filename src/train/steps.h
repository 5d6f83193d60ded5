/* The training steps of an epoch: one network, or all sub-models, on each batch. */
#ifndef SL_TRAIN_STEPS_H
#define SL_TRAIN_STEPS_H

#include "train/trainer.h"

/* Submit the steps of an epoch, with their records. Steps without a training vertex, which all
 * ranks leave out, learn nothing. Return whether the last step was submitted: where the run ends
 * before it, all ranks leave out the same steps. */
bool sl_trainer_submit_steps(struct sl_trainer *trainer, int64_t epoch);

/* Ranks stop together: tell rank 0 that this rank was asked to. Rank 0 tells the others. */
void sl_trainer_pass_on_stop(struct sl_trainer *trainer);

/* Submit the steps of this group's sub-models alone. Nobody records what they measure, so no group
 * waits for another one, but at the beginning of a round. */
void sl_trainer_train_group(struct sl_trainer *trainer, int64_t epoch);

#endif
