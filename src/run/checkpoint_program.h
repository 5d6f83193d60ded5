/* The forward program of a checkpoint of any version, from its configuration. */
#ifndef SL_RUN_LOWERED_H
#define SL_RUN_LOWERED_H

#include "checkpoint/checkpoint.h"
#include "forward/program.h"

/* Set *program to the forward program of a checkpoint. `name`: of the checkpoint, for errors.
 * Return 0; SL_ERR_USAGE where the model has no program; SL_ERR_DATA where the configuration is
 * wrong; SL_ERR_SYSTEM. Call sl_program_free in either case. */
int sl_lowered(const struct sl_checkpoint *checkpoint, const char *name,
               struct sl_program *program);

/* Return a copy of the description with the member "forward", or the description itself. It stays
 * as it is where it has the member, or where its configuration cannot be read. The caller drops the
 * reference. NULL: no memory (sl_error set). */
json_t *sl_lowered_description(const struct sl_checkpoint *checkpoint, const char *name);

#endif
