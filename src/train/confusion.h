/* Which class the last evaluation took for which, for the log and the report. */
#ifndef SL_TRAIN_CONFUSION_H
#define SL_TRAIN_CONFUSION_H

#include <jansson.h>

#include "train/trainer.h"

enum { SL_CONFUSION_CLASSES = 64 /* most for a log: a line has their square */ };

/* Count what sl_trainer_evaluate has evaluated last: {"train": rows, "val": rows, "test": rows}. A
 * row, one for each class, has the numbers of its vertices by predicted class. Return NULL where
 * the run evaluates nothing, has no classes or more than `most`. The caller's. Collective; waits.
 */
json_t *sl_confusion_describe(struct sl_trainer *trainer, int64_t most);

#endif
