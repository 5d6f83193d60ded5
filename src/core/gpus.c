#include "core/gpus.h"

#include <stdlib.h>

#include "core/ranks.h"

void sl_gpus_share(int devices, int sharers, int index, int *first, int *count)
{
    *first = (int)((int64_t)devices * index / sharers);
    *count = (int)((int64_t)devices * (index + 1) / sharers) - *first;
    if (*count == 0 && devices > 0)
        *count = 1;
}

int sl_gpus_choose(struct starpu_conf *conf)
{
    char name[SL_GPUS_TEXT];
    int sharers, index, first, count;
    const char *limit = getenv("STARPU_NCUDA");
    sl_gpus_name(name);
    sl_ranks_count_sharers(name, &sharers, &index);
    const int devices = sl_gpus_count();
    if (devices == 0)
        return 0;
    sl_gpus_share(devices, sharers, index, &first, &count);
    if (limit && atoi(limit) >= 0 && atoi(limit) < count)
        count = atoi(limit);
    if (!getenv("STARPU_WORKERS_CUDAID")) {
        conf->use_explicit_workers_cuda_gpuid = 1;
        for (int w = 0; w < STARPU_NMAXWORKERS; w++)
            conf->workers_cuda_gpuid[w] = (unsigned)(first + (count ? w % count : 0));
    }
    conf->ncuda = count;
    return count;
}
