/* A build without CUDA has CPU workers alone. */
#include "core/gpus.h"
#include "core/runtime.h"

bool sl_runtime_knows_gpus(void)
{
    return false;
}

int sl_gpus_count(void)
{
    return 0;
}

void sl_gpus_describe(int d, char name[64], int64_t *mib)
{
    (void)d;
    name[0] = '\0';
    *mib = 0;
}

int64_t sl_gpus_spare_bytes(void)
{
    return 0;
}

int64_t sl_gpus_bytes(void)
{
    return INT64_MAX;
}

void sl_gpus_name(char text[SL_GPUS_TEXT])
{
    text[0] = '\0';
}

void sl_runtime_drop_kept(void)
{
}

int sl_gpus_start(void)
{
    return 0;
}

void sl_gpus_stop(void)
{
}
