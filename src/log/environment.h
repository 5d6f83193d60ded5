/* What a figure in a log depends on beside the configuration: versions and the machine. */
#ifndef SL_LOG_ENVIRONMENT_H
#define SL_LOG_ENVIRONMENT_H

#include <jansson.h>

#include "core/runtime.h"

/* {"starling": …, "starpu": …, "mpi", "cblas", "hwloc", "cuda", "compiler", "flags"}, all text. */
json_t *sl_environment_versions(void);

/* {"host", "processor", "packages", "cores", "threads", "numa_nodes", "memory_bytes", "gpus":
 * [names]}: of this rank's node. Empty if it cannot be read. */
json_t *sl_environment_hardware(void);

/* The same, and "ranks", "workers_per_rank", "gpus_per_rank", "gpus_send" (runtime.h),
 * "cores_per_rank", "scheduler". */
json_t *sl_environment_machine(const struct sl_runtime *rt);

#endif
