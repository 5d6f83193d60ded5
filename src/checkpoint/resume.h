/* Options that a resumed run takes from its checkpoint: the model, its training, and the execution
 * options that decide the order of sums. A resumed run does not take --device and --spmm, which
 * belong to the machine. */
#ifndef SL_CHECKPOINT_RESUME_H
#define SL_CHECKPOINT_RESUME_H

#include "checkpoint/checkpoint.h"
#include "recipe/config.h"

/* Read config->files.resume, and take the options from it that the command line did not give.
 * `given`: see sl_options_parse. Skip an option that contradicts a given one. Skip a grid that does
 * not fit the ranks, with a note. Return 0 or SL_ERR_DATA; call sl_checkpoint_free in either case.
 */
int sl_resume_read(struct sl_config *config, const bool *given, int ranks,
                   struct sl_checkpoint *checkpoint);

#endif
