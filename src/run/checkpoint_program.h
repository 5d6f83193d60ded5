/* The forward program of a checkpoint of any version: the stored one, or in older files one from
 * the configuration. */
#ifndef SL_RUN_CHECKPOINT_PROGRAM_H
#define SL_RUN_CHECKPOINT_PROGRAM_H

#include "checkpoint/checkpoint.h"
#include "forward/program.h"
#include "recipe/config.h"

/* Set *config to the options of a checkpoint that belong to the model; all others have their
 * defaults. `name`: of the checkpoint, for errors. Return 0, SL_ERR_DATA or SL_ERR_SYSTEM; the
 * caller frees *config with sl_options_free in either case. */
int sl_checkpoint_configuration(const struct sl_checkpoint *checkpoint, const char *name,
                                struct sl_config *config);

/* Set *program to the forward program of a checkpoint. Where an older version stored none, or why
 * there is none, make it from the configuration. `name`: of the checkpoint, for errors. Return 0;
 * SL_ERR_USAGE where the model has no program; SL_ERR_DATA where the stored program or the
 * configuration is wrong; SL_ERR_SYSTEM. Call sl_program_free in either case. */
int sl_checkpoint_program(const struct sl_checkpoint *checkpoint, const char *name,
                          struct sl_program *program);

/* Return a copy of the description with the member "forward", or the description itself. It stays
 * as it is where it has a program, or where its configuration cannot be read. The caller drops the
 * reference. NULL: no memory (sl_error set). */
json_t *sl_checkpoint_describe_program(const struct sl_checkpoint *checkpoint, const char *name);

#endif
