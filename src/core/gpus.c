#include "core/gpus.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/ranks.h"

void sl_gpus_share(int devices, int sharers, int index, int *first, int *count)
{
    *first = (int)((int64_t)devices * index / sharers);
    *count = (int)((int64_t)devices * (index + 1) / sharers) - *first;
    if (*count == 0 && devices > 0)
        *count = 1;
}

bool sl_runtime_lacks_gpus(void)
{
    return sl_runtime_knows_gpus() && sl_gpus_count() == 0;
}

/* Count the devices that the user names, as StarPU reads the list. */
static int count_names(const char *names)
{
    int count = 0;
    for (const char *at = names; *(at += strspn(at, " \t"));) {
        at += strcspn(at, " \t");
        count++;
    }
    return count;
}

int sl_gpus_choose(struct sl_process *process, struct starpu_conf *conf)
{
    char text[SL_GPUS_TEXT];
    int sharers, index, first, count;
    const char *limit = getenv("STARPU_NCUDA"), *names = getenv("STARPU_WORKERS_CUDAID");
    sl_gpus_name(text);
    sl_ranks_count_sharers(text, &sharers, &index);
    const int devices = sl_gpus_count();
    if (devices == 0)
        return 0;
    sl_gpus_share(devices, sharers, index, &first, &count);
    process->gpu_sharers = (sharers + devices - 1) / devices;
    if (names)
        count = count_names(names);
    if (limit && atoi(limit) >= 0 && atoi(limit) < count)
        count = atoi(limit);
    conf->use_explicit_workers_cuda_gpuid = !names;
    for (int w = 0; w < STARPU_NMAXWORKERS; w++)
        conf->workers_cuda_gpuid[w] = (unsigned)(first + (count ? w % count : 0));
    return count;
}

int sl_gpus_check_bytes(int64_t bytes)
{
    enum { MIB = 1 << 20, LEAST = 64 * MIB };
    if (bytes == 0 || bytes >= LEAST)
        return 0;
    return sl_error(SL_ERR_USAGE,
                    "a GPU has %lld MiB for tiles of a rank (expected at least %d: a larger "
                    "STARPU_LIMIT_CUDA_MEM, fewer ranks, or --device cpu)",
                    (long long)(bytes / MIB), LEAST / MIB);
}
