/* Output of starling train --verbose before the first epoch. */
#ifndef SL_CLI_TRAIN_CHOICES_H
#define SL_CLI_TRAIN_CHOICES_H

#include "run/run.h"

/* Print a memory plan, a line for each kind of memory, in MiB. */
void sl_train_print_memory(const struct sl_plan *plan);

/* Print a line on how sub-models are evaluated, if the run has any. */
void sl_train_print_evaluation(const struct sl_config *config, const struct sl_plan *plan);

/* Print the choices of this run, their reasons, and the memory plan. Only rank 0 calls it, after
 * the event start. */
void sl_train_print_choices(const struct sl_train_run *run);

#endif
