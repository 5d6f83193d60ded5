/* CUDA's language for a C++ compiler, as far as Starling's kernels use it: vectors, the place of a
 * thread, and operations of the threads of a block. tests/software_gpu/execute.cc runs the kernels.
 */
#ifndef SL_SOFTWARE_GPU_CUDA_RUNTIME_H
#define SL_SOFTWARE_GPU_CUDA_RUNTIME_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

using std::isinf;
using std::isnan;

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned across = 1, unsigned down = 1, unsigned deep = 1)
        : x(across), y(down), z(deep)
    {
    }
};

/* Memory accesses of their size are aligned to it, or the sanitizer says so. */
struct __attribute__((aligned(8))) uint2 {
    unsigned x, y;
};

struct __attribute__((aligned(16))) float4 {
    float x, y, z, w;
};

static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

/* ---- Launches ---- */

/* Enqueues a kernel on the stream; `body` is what a thread does. The name is for messages. What
 * cudaGetLastError then returns is a GPU's answer to such a launch. In runtime.cc. */
void software_gpu_launch(const char *kernel, dim3 grid, dim3 block, size_t shared,
                         cudaStream_t stream, const std::function<void()> &body);

/* Whether a GPU takes such a launch, cudaErrorInvalidConfiguration if it does not. */
cudaError_t software_gpu_check_launch(dim3 grid, dim3 block, size_t shared);

/* Runs the blocks, one after the other, on the calling thread. A mistake that threads make together
 * is told on stderr, and the program is aborted. In execute.cc. */
void software_gpu_execute(const char *kernel, dim3 grid, dim3 block, size_t shared,
                          const std::function<void()> &body);

/* ---- Where a thread is ---- */

extern __thread uint3 threadIdx, blockIdx;
extern __thread dim3 blockDim, gridDim;

/* ---- Shared memory, NaN at first ---- */

void *software_gpu_launched_shared();

/* The block's memory for what `which` tells apart. */
void *software_gpu_shared(const void *which, size_t bytes, size_t alignment);

template <class T> struct software_gpu_which {
    static constexpr char here = 0;
};

template <class T> T &software_gpu_shared()
{
    return *(T *)software_gpu_shared(&software_gpu_which<T>::here, sizeof(T), alignof(T));
}

/* ---- Threads together ---- */

enum software_gpu_barrier {
    SOFTWARE_GPU_SYNC_BLOCK,
    SOFTWARE_GPU_SYNC_OR,
    SOFTWARE_GPU_SYNC_AND,
    SOFTWARE_GPU_SYNC_COUNT,
};

/* For all threads of the block: whether any or all have a value that is not 0, or how many. */
int software_gpu_synchronize(software_gpu_barrier what, int value);

enum software_gpu_exchange {
    SOFTWARE_GPU_SYNC_WARP,
    SOFTWARE_GPU_SHUFFLE,
    SOFTWARE_GPU_SHUFFLE_UP,
    SOFTWARE_GPU_SHUFFLE_DOWN,
    SOFTWARE_GPU_SHUFFLE_XOR,
    SOFTWARE_GPU_BALLOT,
    SOFTWARE_GPU_ANY,
    SOFTWARE_GPU_ALL,
};

/* For all lanes of the mask, which must all come here. `argument` of a shuffle: the lane, or the
 * distance to it. */
uint64_t software_gpu_meet(software_gpu_exchange what, unsigned mask, uint64_t value,
                           unsigned argument, unsigned width);

static inline void __syncthreads()
{
    software_gpu_synchronize(SOFTWARE_GPU_SYNC_BLOCK, 0);
}

static inline int __syncthreads_or(int value)
{
    return software_gpu_synchronize(SOFTWARE_GPU_SYNC_OR, value);
}

static inline int __syncthreads_and(int value)
{
    return software_gpu_synchronize(SOFTWARE_GPU_SYNC_AND, value);
}

static inline int __syncthreads_count(int value)
{
    return software_gpu_synchronize(SOFTWARE_GPU_SYNC_COUNT, value);
}

static inline void __syncwarp(unsigned mask = 0xFFFFFFFFu)
{
    software_gpu_meet(SOFTWARE_GPU_SYNC_WARP, mask, 0, 0, 32);
}

template <class T>
T software_gpu_shuffle(software_gpu_exchange what, unsigned mask, T value, unsigned argument,
                       int width)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "what a GPU shuffles");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = software_gpu_meet(what, mask, bits, argument, (unsigned)width);
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T> T __shfl_sync(unsigned mask, T value, int lane, int width = 32)
{
    return software_gpu_shuffle(SOFTWARE_GPU_SHUFFLE, mask, value, (unsigned)lane, width);
}

template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32)
{
    return software_gpu_shuffle(SOFTWARE_GPU_SHUFFLE_UP, mask, value, distance, width);
}

template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32)
{
    return software_gpu_shuffle(SOFTWARE_GPU_SHUFFLE_DOWN, mask, value, distance, width);
}

template <class T> T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32)
{
    return software_gpu_shuffle(SOFTWARE_GPU_SHUFFLE_XOR, mask, value, (unsigned)lanes, width);
}

static inline unsigned __ballot_sync(unsigned mask, int value)
{
    return (unsigned)software_gpu_meet(SOFTWARE_GPU_BALLOT, mask, value != 0, 0, 32);
}

static inline int __any_sync(unsigned mask, int value)
{
    return (int)software_gpu_meet(SOFTWARE_GPU_ANY, mask, value != 0, 0, 32);
}

static inline int __all_sync(unsigned mask, int value)
{
    return (int)software_gpu_meet(SOFTWARE_GPU_ALL, mask, value != 0, 0, 32);
}

/* ---- Arithmetic ---- */

template <class T> T __ldg(const T *from)
{
    return *from;
}

static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

static inline float __uint_as_float(unsigned x)
{
    float y;
    memcpy(&y, &x, sizeof y);
    return y;
}

static inline unsigned __float_as_uint(float x)
{
    unsigned y;
    memcpy(&y, &x, sizeof y);
    return y;
}

#endif

#endif
