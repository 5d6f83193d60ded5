/* The confusion matrix of the last evaluation, for the log and the report. */
#ifndef SL_TRAIN_CONFUSION_H
#define SL_TRAIN_CONFUSION_H

#include <jansson.h>

#include "train/trainer.h"

enum { SL_CONFUSION_CLASSES = 64 /* the most classes for a log: a line has their square */ };

/* Set *out to {"train": rows, "val": rows, "test": rows} for the last sl_trainer_evaluate. Each
 * class has a row, with the numbers of its vertices by predicted class. Set it to NULL if the run
 * evaluates nothing, or has no classes or more than `most`. The caller owns the object. Collective;
 * waits. Return 0, or SL_ERR_SYSTEM on some rank. */
int sl_confusion_describe(struct sl_trainer *trainer, int64_t most, json_t **out);

#endif
