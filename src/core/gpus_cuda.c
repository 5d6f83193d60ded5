#include "core/gpus.h"

#include <cuda_runtime_api.h>
#include <starpu_cublas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/runtime.h"

bool sl_runtime_knows_gpus(void)
{
    return true;
}

int sl_gpus_count(void)
{
    const char *limit = getenv("STARPU_NCUDA");
    int devices;
    if ((limit && strcmp(limit, "0") == 0) || cudaGetDeviceCount(&devices) != cudaSuccess)
        return 0;
    return devices;
}

void sl_gpus_describe(int d, char name[64], int64_t *mib)
{
    struct cudaDeviceProp device = {.name = "?"};
    if (cudaGetDeviceProperties(&device, d) != cudaSuccess)
        device.totalGlobalMem = 0;
    snprintf(name, 64, "%.63s", device.name);
    *mib = (int64_t)(device.totalGlobalMem >> 20);
}

int64_t sl_gpus_spare_bytes(void)
{
    enum { PART = 32 };
    const int devices = sl_gpus_count();
    int64_t least = INT64_MAX;
    for (int d = 0; d < devices; d++) {
        struct cudaDeviceProp device;
        if (cudaGetDeviceProperties(&device, d) == cudaSuccess &&
            (int64_t)device.totalGlobalMem < least)
            least = (int64_t)device.totalGlobalMem;
    }
    return devices ? least / PART : 0;
}

int64_t sl_gpus_bytes(void)
{
    const int workers = (int)starpu_cuda_worker_get_count();
    int64_t least = INT64_MAX;
    for (int w = 0; w < workers; w++) {
        const int worker = starpu_worker_get_by_type(STARPU_CUDA_WORKER, w);
        const int64_t bytes =
            starpu_memory_get_total(starpu_worker_get_memory_node((unsigned)worker));
        least = bytes >= 0 && bytes < least ? bytes : least;
    }
    return least;
}

void sl_gpus_name(char text[SL_GPUS_TEXT])
{
    enum { ADDRESS = 16 };
    const int devices = sl_gpus_count();
    size_t used = 0;
    text[0] = '\0';
    for (int d = 0; d < devices && used + ADDRESS + 1 < SL_GPUS_TEXT; d++) {
        if (cudaDeviceGetPCIBusId(text + used, ADDRESS, d) != cudaSuccess)
            strcpy(text + used, "?");
        strcat(text + used, " ");
        used += strlen(text + used);
    }
}

/* ---- Workspaces ---- */

static void *workspaces[STARPU_NMAXWORKERS];

void *sl_runtime_workspace(void)
{
    return workspaces[starpu_worker_get_id()];
}

static struct {
    void *kept;
    void (*destroy)(void *kept);
} keeps[STARPU_NMAXWORKERS];

void **sl_runtime_kept(void (*destroy)(void *kept))
{
    const int worker = starpu_worker_get_id();
    if (keeps[worker].kept && keeps[worker].destroy != destroy)
        sl_fatal("a GPU worker is to keep two things");
    keeps[worker].destroy = destroy;
    return &keeps[worker].kept;
}

static void destroy_kept(void *unused)
{
    const int worker = starpu_worker_get_id();
    (void)unused;
    if (keeps[worker].kept)
        keeps[worker].destroy(keeps[worker].kept);
    keeps[worker].kept = NULL;
}

void sl_runtime_drop_kept(void)
{
    if (starpu_cuda_worker_get_count())
        starpu_execute_on_each_worker(destroy_kept, NULL, STARPU_CUDA);
}

static void create_workspace(void *unused)
{
    void **workspace = &workspaces[starpu_worker_get_id()];
    (void)unused;
    if (cudaMalloc(workspace, SL_RUNTIME_WORKSPACE) != cudaSuccess)
        *workspace = NULL;
}

static int check_workspaces(void)
{
    const int workers = (int)starpu_cuda_worker_get_count();
    for (int w = 0; w < workers; w++)
        if (!workspaces[starpu_worker_get_by_type(STARPU_CUDA_WORKER, w)])
            return sl_error(SL_ERR_SYSTEM, "a GPU has no %d MiB of memory for its tasks to work in",
                            SL_RUNTIME_WORKSPACE >> 20);
    return 0;
}

static void destroy_workspace(void *unused)
{
    destroy_kept(unused);
    cudaFree(workspaces[starpu_worker_get_id()]);
}

/* ---- Pinned memory ---- */

static void pin(void *memory, size_t bytes)
{
    static bool told;
    sl_runtime_touch(memory, bytes); /* pinning touches pages: let workers be first */
    if (starpu_memory_pin(memory, bytes) == 0 || told)
        return;
    told = true;
    sl_note("%zu MiB of memory could not be pinned: copies to GPUs and back will be slower",
            bytes >> 20);
}

static void unpin(void *memory, size_t bytes)
{
    (void)starpu_memory_unpin(memory, bytes);
}

int sl_gpus_start(void)
{
    if (starpu_cuda_worker_get_count() == 0)
        return 0;
    starpu_cublas_init();
    starpu_execute_on_each_worker(create_workspace, NULL, STARPU_CUDA);
    sl_memory_watch(pin, unpin);
    return check_workspaces();
}

void sl_gpus_stop(void)
{
    if (starpu_cuda_worker_get_count() == 0)
        return;
    sl_memory_watch(NULL, NULL);
    starpu_execute_on_each_worker(destroy_workspace, NULL, STARPU_CUDA);
    starpu_cublas_shutdown();
}
