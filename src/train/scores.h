/* Losses and scores of a trainer's records. */
#ifndef SL_TRAIN_SCORES_H
#define SL_TRAIN_SCORES_H

#include "train/trainer.h"

/* Scores of no split. */
extern const struct sl_scores sl_unmeasured;

/* Return the share of correct vertices in a split; NaN for numbers to predict. */
double sl_accuracy(const struct sl_trainer *trainer, double correct, enum sl_split split);

/* Return the accuracy of an evaluation in a split. */
double sl_accuracy_of(const struct sl_trainer *trainer, const struct sl_record *record,
                      enum sl_split split);

/* Return a metric of an evaluation, for each split. */
struct sl_scores sl_scores_of(const struct sl_trainer *trainer, const struct sl_record *record,
                              const struct sl_metric *metric);

/* Return the scores of an evaluation between epochs; without a record or a metric, none. Without
 * evaluation of the whole graph, only validation vertices have a score. */
struct sl_scores sl_scores_between(struct sl_trainer *trainer, const struct sl_record *record,
                                   const struct sl_metric *metric);

/* Return the mean loss of the training vertices, over all sub-models. */
double sl_loss_of(const struct sl_trainer *trainer, const struct sl_record *record);

/* Return the validation metric, or its negative if it falls: more is better. */
double sl_value_of(const struct sl_trainer *trainer, const struct sl_record *record);

#endif
