/* The CUDA devices of a process, for src/core/runtime.c. A build with CUDA links gpus_cuda.c, any
 * other gpus_none.c. Both files also define the GPU functions of runtime.h. */
#ifndef SL_CORE_GPUS_H
#define SL_CORE_GPUS_H

#include <stdint.h>

#include <starpu.h>

#include "core/runtime.h"

/* Return how many devices this process sees; 0 if CUDA does not start, or STARPU_NCUDA is 0. */
int sl_gpus_count(void);

/* Set `name` and *mib to the model and the memory in MiB of device `d`, 0 <= d < sl_gpus_count().
 */
void sl_gpus_describe(int d, char name[64], int64_t *mib);

/* Return the bytes that may be taken from each device besides StarPU's; 0 without a device. StarPU
 * leaves a tenth of a device free. The result is less than a third of this tenth on the smallest
 * device. */
int64_t sl_gpus_spare_bytes(void);

/* Return the bytes that StarPU, already started, may take on the smallest device; INT64_MAX without
 * a device. */
int64_t sl_gpus_bytes(void);

enum { SL_GPUS_TEXT = 512 };

/* Write the identities of this process's devices as text that the ranks of a node can compare; ""
 * without a device. */
void sl_gpus_name(char text[SL_GPUS_TEXT]);

/* Choose the share of rank `index` among `sharers` ranks of a node that see the same `devices`
 * devices. Set *first and *count to an equal run of devices. With fewer devices than ranks, several
 * ranks share a device. */
void sl_gpus_share(int devices, int sharers, int index, int *first, int *count);

/* Give this rank its share of the devices that its node's ranks see, at most STARPU_NCUDA. Leave
 * the choice to the user where STARPU_WORKERS_CUDAID is set. Set gpu_sharers of *process. Return
 * how many devices StarPU is to take. Collective. */
int sl_gpus_choose(struct sl_process *process, struct starpu_conf *conf);

/* Return SL_ERR_USAGE where GPUs leave a rank less than two pieces of 32 MiB; `bytes`: on the
 * smallest GPU of all ranks, 0 without one. StarPU takes GPU memory for small tiles in such pieces,
 * and asks for a missing piece for ever: a task may have half of the memory (sl_task_holds). */
int sl_gpus_check_bytes(int64_t bytes);

/* Make a cuBLAS handle and a workspace for every GPU worker, and pin the mappings of
 * sl_memory_alloc: pinned memory is copied while kernels run. Call start after StarPU's start, and
 * stop before its end, also after SL_ERR_SYSTEM: a GPU has no memory for a workspace. */
int sl_gpus_start(void);
void sl_gpus_stop(void);

#endif
