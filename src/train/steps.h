/* The training steps of an epoch: one network, or all sub-models, on each batch. */
#ifndef SL_TRAIN_STEPS_H
#define SL_TRAIN_STEPS_H

#include "train/trainer.h"

/* Submit the steps of an epoch, with their records. All ranks leave out steps without a training
 * vertex, which learn nothing. Return whether the last step was submitted. If the run ends earlier,
 * all ranks leave out the same steps. */
bool sl_trainer_submit_steps(struct sl_trainer *trainer, int64_t epoch);

/* Pass a stop request of this rank to rank 0, once. Rank 0 tells all ranks, which stop together. */
void sl_trainer_pass_on_stop(struct sl_trainer *trainer);

/* Submit the steps of this group's sub-models alone, without records. Groups wait for one another
 * only when a round begins. */
void sl_trainer_train_group(struct sl_trainer *trainer, int64_t epoch);

#endif
