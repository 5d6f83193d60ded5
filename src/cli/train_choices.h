/* What starling train --verbose prints before the first epoch. */
#ifndef SL_CLI_TRAIN_CHOICES_H
#define SL_CLI_TRAIN_CHOICES_H

#include "run/run.h"

/* Print a memory plan, a line for each kind of memory, in MiB. */
void sl_train_print_memory(const struct sl_plan *plan);

/* Print how sub-models are evaluated, if they are, on a line. */
void sl_train_print_evaluation(const struct sl_config *config, const struct sl_plan *plan);

/* Print what was chosen for this run, why, and the memory plan. Rank 0, after the event start. */
void sl_train_print_choices(const struct sl_train_run *run);

#endif
