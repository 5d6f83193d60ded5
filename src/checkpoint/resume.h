/* Options that a resumed run takes from its checkpoint: the model, its training, and the execution
 * options that decide the order of sums. The run does not take --device and --spmm: they are the
 * machine's. */
#ifndef SL_CHECKPOINT_RESUME_H
#define SL_CHECKPOINT_RESUME_H

#include "checkpoint/checkpoint.h"
#include "recipe/config.h"

/* Read config->resume, and take from it the options that the command line did not give; `given` is
 * as of sl_options_parse. An option is left out where it contradicts a given one. A grid that does
 * not fit the ranks is left out with a note. SL_ERR_DATA; sl_checkpoint_free in either case. */
int sl_resume_read(struct sl_config *config, const bool *given, int ranks,
                   struct sl_checkpoint *checkpoint);

#endif
