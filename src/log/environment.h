/* Versions and machine that a log's figures depend on, beside the configuration. */
#ifndef SL_LOG_ENVIRONMENT_H
#define SL_LOG_ENVIRONMENT_H

#include <jansson.h>

#include "core/runtime.h"

/* Return {"starling": …, "starpu": …, "mpi", "cblas", "hwloc", "cuda", "compiler", "flags"}, all
 * text. */
json_t *sl_environment_versions(void);

/* Return {"host", "processor", "packages", "cores", "threads", "numa_nodes", "memory_bytes",
 * "gpus": [names]} of this rank's node. The object is empty if the hardware cannot be read. */
json_t *sl_environment_hardware(void);

/* Return the hardware's members, and "ranks", "workers_per_rank", "gpus_per_rank", "gpus_send"
 * (runtime.h), "cores_per_rank", "scheduler". */
json_t *sl_environment_machine(const struct sl_runtime *rt);

#endif
