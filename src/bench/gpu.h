/* What measurements on a GPU share, in a build with CUDA: its memory, and its clock, on the default
 * stream. Functions return 0 or SL_ERR_SYSTEM, if they say nothing else. */
#ifndef SL_BENCH_GPU_H
#define SL_BENCH_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "core/tile.h"

bool sl_bench_gpu_is_there(void);

/* 0, or SL_ERR_SYSTEM and CUDA's sentence. */
int sl_bench_gpu_check(cudaError_t code);

/* *device is for cudaFree. */
int sl_bench_gpu_allocate(void **device, size_t bytes);
int sl_bench_gpu_upload(void **device, const void *host, size_t bytes);
/* `count` numbers, as elements of that type on the device. */
int sl_bench_gpu_upload_floats(void **device, const float *host, int64_t count, enum sl_type type);
/* Elements [first, first + count) of that type, as float32. What fails stops the program. */
void sl_bench_gpu_download_floats(float *host, const void *device, int64_t first, int64_t count,
                                  enum sl_type type);

int sl_bench_gpu_create_blas(cublasHandle_t *handle);

struct sl_bench_gpu_clock {
    cudaEvent_t begin, end;
};
int sl_bench_gpu_create_clock(struct sl_bench_gpu_clock *clock);
void sl_bench_gpu_destroy_clock(struct sl_bench_gpu_clock *clock); /* also one of zeros */
void sl_bench_gpu_start(const struct sl_bench_gpu_clock *clock);
/* Waits for what was put on the stream since the start; returns the seconds that took. What failed
 * stops the program. */
double sl_bench_gpu_seconds(const struct sl_bench_gpu_clock *clock);

#endif
