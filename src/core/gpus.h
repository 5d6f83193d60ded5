/* The CUDA devices of a process, for src/core/runtime.c: gpus_cuda.c, or gpus_none.c in a build
 * without CUDA. Both have what runtime.h says of GPUs, too. */
#ifndef SL_CORE_GPUS_H
#define SL_CORE_GPUS_H

#include <stdint.h>

#include <starpu.h>

#include "core/runtime.h"

/* How many devices this process sees; 0 if CUDA does not start, or STARPU_NCUDA is 0. */
int sl_gpus_count(void);

/* What device `d` of those is, and the MiB of its memory. */
void sl_gpus_describe(int d, char name[64], int64_t *mib);

/* Return the bytes of each device that may be taken besides StarPU's; 0 without a device. StarPU
 * leaves a tenth of a device alone. Less than a third of this tenth, on the smallest device, may be
 * taken. */
int64_t sl_gpus_spare_bytes(void);

/* Bytes that StarPU, which has started, may take of each device; of the smallest, INT64_MAX without
 * any. */
int64_t sl_gpus_bytes(void);

enum { SL_GPUS_TEXT = 512 };

/* Which they are, as text that the ranks of a node can compare; empty without any. */
void sl_gpus_name(char text[SL_GPUS_TEXT]);

/* Of `devices` that `sharers` ranks of a node see, those of the index-th: equal runs of them, or
 * one for several ranks where there are fewer devices than ranks. */
void sl_gpus_share(int devices, int sharers, int index, int *first, int *count);

/* Gives a rank its share of the devices that the ranks of its node see, unless the user names them
 * (STARPU_WORKERS_CUDAID), and no more than STARPU_NCUDA. All ranks call it. Returns how many
 * StarPU is to take; *process gets gpu_sharers. */
int sl_gpus_choose(struct sl_process *process, struct starpu_conf *conf);

/* Between StarPU's start and its end: a cuBLAS handle and a workspace for every GPU worker, and
 * mappings of sl_memory_alloc are pinned, so that copies from and to them overlap with kernels. */
void sl_gpus_start(void);
void sl_gpus_stop(void);

#endif
