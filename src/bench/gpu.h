/* Memory and clock of the GPU for measurements, on the default stream, in a build with CUDA.
 * Functions return 0 or SL_ERR_SYSTEM, unless they say otherwise. */
#ifndef SL_BENCH_GPU_H
#define SL_BENCH_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "core/tile.h"

bool sl_bench_gpu_is_there(void);

/* Return 0 if the code is success, or SL_ERR_SYSTEM with CUDA's sentence. */
int sl_bench_gpu_check(cudaError_t code);

/* Allocate bytes on the device. The caller frees *device with cudaFree. */
int sl_bench_gpu_allocate(void **device, size_t bytes);
int sl_bench_gpu_upload(void **device, const void *host, size_t bytes);
/* Copy `count` numbers to the device, as elements of a type. */
int sl_bench_gpu_upload_floats(void **device, const float *host, int64_t count, enum sl_type type);
/* Copy elements [first, first + count) of a type from the device, as float32. A failure stops the
 * program. */
void sl_bench_gpu_download_floats(float *host, const void *device, int64_t first, int64_t count,
                                  enum sl_type type);

int sl_bench_gpu_create_blas(cublasHandle_t *handle);

struct sl_bench_gpu_clock {
    cudaEvent_t begin, end;
};
int sl_bench_gpu_create_clock(struct sl_bench_gpu_clock *clock);
void sl_bench_gpu_destroy_clock(struct sl_bench_gpu_clock *clock); /* zeros are allowed */
void sl_bench_gpu_start(const struct sl_bench_gpu_clock *clock);
/* Wait for the work on the stream since the start. Return its seconds. A failure stops the program.
 */
double sl_bench_gpu_seconds(const struct sl_bench_gpu_clock *clock);

#endif
