#include "bench/gpu.h"

#include <stdlib.h>
#include <string.h>

#include "codelets/bfloat16.h"
#include "core/error.h"

bool sl_bench_gpu_is_there(void)
{
    int devices = 0;
    return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

int sl_bench_gpu_check(cudaError_t code)
{
    return code == cudaSuccess ? 0 : sl_error(SL_ERR_SYSTEM, "CUDA: %s", cudaGetErrorString(code));
}

static void insist(cudaError_t code)
{
    if (code != cudaSuccess)
        sl_fatal("CUDA: %s", cudaGetErrorString(code));
}

/* ---- Memory ---- */

int sl_bench_gpu_allocate(void **device, size_t bytes)
{
    return sl_bench_gpu_check(cudaMalloc(device, bytes ? bytes : 1));
}

int sl_bench_gpu_upload(void **device, const void *host, size_t bytes)
{
    const int code = sl_bench_gpu_allocate(device, bytes);
    return code ? code
                : sl_bench_gpu_check(cudaMemcpy(*device, host, bytes, cudaMemcpyHostToDevice));
}

int sl_bench_gpu_upload_floats(void **device, const float *host, int64_t count, enum sl_type type)
{
    if (type == SL_FLOAT32)
        return sl_bench_gpu_upload(device, host, (size_t)count * sizeof *host);
    uint16_t *narrow = malloc((size_t)count * sizeof *narrow);
    if (!narrow)
        return sl_error(SL_ERR_SYSTEM, "no memory for a dense operand in bfloat16");
    for (int64_t i = 0; i < count; i++)
        narrow[i] = sl_narrow(host[i]);
    const int code = sl_bench_gpu_upload(device, narrow, (size_t)count * sizeof *narrow);
    free(narrow);
    return code;
}

void sl_bench_gpu_download_floats(float *host, const void *device, int64_t first, int64_t count,
                                  enum sl_type type)
{
    const size_t size = sl_type_size(type);
    insist(cudaMemcpy(host, (const char *)device + (size_t)first * size, (size_t)count * size,
                      cudaMemcpyDeviceToHost));
    for (int64_t i = count - 1; type == SL_BFLOAT16 && i >= 0; i--) { /* in place, from the end */
        uint16_t half;
        memcpy(&half, (const char *)host + (size_t)i * sizeof half, sizeof half);
        host[i] = sl_widen(half);
    }
}

int sl_bench_gpu_create_blas(cublasHandle_t *handle)
{
    return cublasCreate(handle) == CUBLAS_STATUS_SUCCESS
               ? 0
               : sl_error(SL_ERR_SYSTEM, "cublasCreate fails");
}

/* ---- Time ---- */

int sl_bench_gpu_create_clock(struct sl_bench_gpu_clock *clock)
{
    const int code = sl_bench_gpu_check(cudaEventCreate(&clock->begin));
    return code ? code : sl_bench_gpu_check(cudaEventCreate(&clock->end));
}

void sl_bench_gpu_destroy_clock(struct sl_bench_gpu_clock *clock)
{
    if (clock->begin)
        cudaEventDestroy(clock->begin);
    if (clock->end)
        cudaEventDestroy(clock->end);
}

void sl_bench_gpu_start(const struct sl_bench_gpu_clock *clock)
{
    insist(cudaEventRecord(clock->begin, NULL));
}

double sl_bench_gpu_seconds(const struct sl_bench_gpu_clock *clock)
{
    float milliseconds = 0.0f;
    insist(cudaEventRecord(clock->end, NULL));
    insist(cudaEventSynchronize(clock->end));
    insist(cudaEventElapsedTime(&milliseconds, clock->begin, clock->end));
    return 1e-3 * milliseconds;
}
