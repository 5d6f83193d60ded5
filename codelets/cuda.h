/* Basis of every CUDA file: the queue of a task, launches, pieces of operands, and the kernel that
 * all elementwise operations share. */
#ifndef SL_CODELETS_CUDA_H
#define SL_CODELETS_CUDA_H

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>
#include <type_traits>

#include <starpu.h>

extern "C" {
#include "codelets/codelet.h"
#include "core/error.h"
}

#ifdef STARPU_USE_CUDA
#include <starpu_cublas_v2.h>
#else /* a StarPU without CUDA: kernels compile with these declarations */
extern "C" cudaStream_t starpu_cuda_get_local_stream(void);
extern "C" cublasHandle_t starpu_cublas_get_local_handle(void);
#endif

/* ---- Inside a task ---- */

/* Return this worker's queue. Forget errors that calls of the runtime left behind, such as peer
 * access that is on already. So sl_cuda_launch reports this task's launches only. An error of the
 * device itself stays. */
static inline struct sl_cuda_queue sl_cuda_task_queue(void)
{
    (void)cudaGetLastError();
    return {starpu_cuda_get_local_stream(), starpu_cublas_get_local_handle(),
            sl_runtime_workspace()};
}

/* ---- Launches and shared memory ----
 *
 * The two things that C++ has no words for. A compiler that does not know CUDA has
 * tests/software_gpu do them, with the same sources. */

/* The type T in a place from which the compiler does not deduce T. */
template <class T> struct sl_cuda_exactly {
    typedef T type;
};

/* Launch kernel(arguments...), and stop the run if CUDA refuses the launch. Arguments are converted
 * to the kernel's parameters. */
template <class... Parameters>
static void sl_cuda_launch(const char *name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                           size_t shared, cudaStream_t stream,
                           const typename sl_cuda_exactly<Parameters>::type &...arguments)
{
#ifdef __CUDACC__
    kernel<<<grid, block, shared, stream>>>(arguments...);
#else
    software_gpu_launch(name, grid, block, shared, stream, [=] { kernel(arguments...); });
#endif
    const cudaError_t code = cudaGetLastError();
    if (code != cudaSuccess)
        sl_fatal("CUDA kernel %s: %s", name, cudaGetErrorString(code));
}

/* Return the block's only T in shared memory. Its first contents are undefined. */
template <class T> __device__ __forceinline__ T &sl_cuda_shared()
{
#ifdef __CUDACC__
    __shared__ T memory;
    return memory;
#else
    return software_gpu_shared<T>();
#endif
}

/* Return the shared memory whose bytes the launch asked for. */
template <class T> __device__ __forceinline__ T *sl_cuda_launched_shared()
{
#ifdef __CUDACC__
    extern __shared__ float4 sl_cuda_launched_memory[];
    return (T *)sl_cuda_launched_memory;
#else
    return (T *)software_gpu_launched_shared();
#endif
}

static inline int64_t sl_cuda_divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- Pieces of operands ---- */

/* One to four elements of a row, as floats, whatever their type in memory. */
template <int V> struct sl_cuda_vector {
    float at[V];
};

/* Four elements of type T, float or __nv_bfloat16, in one piece of memory. */
template <class T> using sl_cuda_four = std::conditional_t<sizeof(T) == 4, float4, uint2>;

/* Return whether rows can be read and written four elements at a time. */
static inline bool sl_cuda_aligned(int64_t rows, const struct sl_rows &a)
{
    return (uintptr_t)a.data % (4 * sl_type_size(a.type)) == 0 && (rows == 1 || a.ld % 4 == 0);
}

static inline bool sl_cuda_aligned(int64_t rows, const float *data, int64_t ld)
{
    return sl_cuda_aligned(rows, sl_float_rows(data, ld));
}

__device__ __forceinline__ sl_cuda_vector<4> sl_cuda_widen(float4 x)
{
    return {{x.x, x.y, x.z, x.w}};
}

/* Widen four bfloat16, each of which is the upper half of a float. */
__device__ __forceinline__ sl_cuda_vector<4> sl_cuda_widen(uint2 x)
{
    return {{__uint_as_float(x.x << 16), __uint_as_float(x.x & 0xFFFF0000u),
             __uint_as_float(x.y << 16), __uint_as_float(x.y & 0xFFFF0000u)}};
}

__device__ __forceinline__ void sl_cuda_store_four(float *to, const sl_cuda_vector<4> &v)
{
    *(float4 *)to = make_float4(v.at[0], v.at[1], v.at[2], v.at[3]);
}

/* Store four elements, rounded to nearest, ties to even, as sl_narrow rounds. */
__device__ __forceinline__ void sl_cuda_store_four(__nv_bfloat16 *to, const sl_cuda_vector<4> &v)
{
    union {
        __nv_bfloat162 pair[2];
        uint2 four;
    } x = {{__floats2bfloat162_rn(v.at[0], v.at[1]), __floats2bfloat162_rn(v.at[2], v.at[3])}};
    *(uint2 *)to = x.four;
}

/* Read the first `count` elements, at most V; the others are 0. Read four at a time only if
 * `aligned`. */
template <int V, class T>
__device__ __forceinline__ sl_cuda_vector<V> sl_cuda_load(const T *from, int64_t count,
                                                          bool aligned = true)
{
    if constexpr (V == 4)
        if (aligned && count >= 4)
            return sl_cuda_widen(*(const sl_cuda_four<T> *)from);
    sl_cuda_vector<V> v;
#pragma unroll
    for (int i = 0; i < V; i++)
        v.at[i] = i < count ? float(from[i]) : 0.0f;
    return v;
}

template <int V, class T>
__device__ __forceinline__ void sl_cuda_store(T *to, const sl_cuda_vector<V> &v, int64_t count,
                                              bool aligned = true)
{
    if constexpr (V == 4)
        if (aligned && count >= 4) {
            sl_cuda_store_four(to, v);
            return;
        }
#pragma unroll
    for (int i = 0; i < V; i++)
        if (i < count)
            to[i] = T(v.at[i]);
}

/* Return element (r, j) of rows of either type. */
__device__ __forceinline__ float sl_cuda_element(const sl_rows &from, int64_t r, int64_t j)
{
    const int64_t at = r * from.ld + j;
    return from.type == SL_BFLOAT16 ? float(((const __nv_bfloat16 *)from.data)[at])
                                    : ((const float *)from.data)[at];
}

/* Read elements from (r, j) on, of rows of either type. */
template <int V>
__device__ __forceinline__ sl_cuda_vector<V> sl_cuda_load(const sl_rows &from, int64_t r, int64_t j,
                                                          int64_t count, bool aligned)
{
    const int64_t first = r * from.ld + j;
    return from.type == SL_BFLOAT16
               ? sl_cuda_load<V>((const __nv_bfloat16 *)from.data + first, count, aligned)
               : sl_cuda_load<V>((const float *)from.data + first, count, aligned);
}

template <int V>
__device__ __forceinline__ void sl_cuda_store(const sl_rows &to, int64_t r, int64_t j,
                                              const sl_cuda_vector<V> &v, int64_t count,
                                              bool aligned)
{
    const int64_t first = r * to.ld + j;
    if (to.type == SL_BFLOAT16)
        sl_cuda_store<V>((__nv_bfloat16 *)to.data + first, v, count, aligned);
    else
        sl_cuda_store<V>((float *)to.data + first, v, count, aligned);
}

/* Return the column of entry e: sl_sparse_col on the device. */
__device__ __forceinline__ uint32_t sl_cuda_sparse_col(const void *col, bool narrow, uint32_t e)
{
    return narrow ? __ldg((const uint16_t *)col + e) : __ldg((const uint32_t *)col + e);
}

/* Multiply v(i) by sl_dropout_factor(drop, vertex, column + i). */
template <int V>
__device__ __forceinline__ void sl_cuda_drop(const sl_dropout &drop, uint32_t vertex,
                                             uint32_t column, sl_cuda_vector<V> *v)
{
    const uint32_t first = column + drop.column0;
    if (V == 4 && first % 4 == 0) { /* one draw has the bits of four columns */
        const uint32_t bits = sl_dropout_bits(&drop), columns = sl_dropout_columns(&drop);
        const uint64_t all =
            sl_rng_bits(drop.key, vertex, first / columns) >> bits * (first % columns);
#pragma unroll
        for (int i = 0; i < V; i++)
            v->at[i] *= ((uint32_t)(all >> bits * i) & 0xFFFF >> (16 - bits)) >= drop.threshold >>
                                (16 - bits)
                            ? drop.scale
                            : 0.0f;
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            v->at[i] *= sl_dropout_factor(&drop, vertex, column + (uint32_t)i);
    }
}

/* ---- Elementwise operations ----
 *
 * An operation is a struct with
 *     template <int V> __device__ sl_cuda_vector<V> at(int64_t r, int64_t j, int64_t count) const;
 * the results for elements (r, j) … (r, j + V - 1), of which the first `count` exist. It may read
 * the output there. */

enum {
    SL_CUDA_EACH_THREADS = 256,
    SL_CUDA_EACH_ROWS = 4 /* rows of one thread, which are independent loads */
};

template <int V, class Operation, class T>
__global__ void __launch_bounds__(SL_CUDA_EACH_THREADS)
    sl_cuda_each(int64_t rows, int64_t cols, Operation operation, T *out, int64_t ldo)
{
    const int64_t first = (int64_t)blockIdx.x * blockDim.y * SL_CUDA_EACH_ROWS + threadIdx.y;
    const int64_t step = (int64_t)gridDim.y * blockDim.x * V;
    for (int64_t j = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * V; j < cols; j += step) {
        sl_cuda_vector<V> result[SL_CUDA_EACH_ROWS];
#pragma unroll
        for (int i = 0; i < SL_CUDA_EACH_ROWS; i++) {
            const int64_t r = first + (int64_t)i * blockDim.y;
            if (r < rows)
                result[i] = operation.template at<V>(r, j, cols - j);
        }
#pragma unroll
        for (int i = 0; i < SL_CUDA_EACH_ROWS; i++) {
            const int64_t r = first + (int64_t)i * blockDim.y;
            if (r < rows)
                sl_cuda_store<V>(out + r * ldo + j, result[i], cols - j);
        }
    }
}

/* Launch out = operation over (rows, cols). `aligned`: sl_cuda_aligned holds for every operand. */
template <class Operation, class T>
static void sl_cuda_launch_each(const char *name, int64_t rows, int64_t cols, bool aligned,
                                const Operation &operation, T *out, int64_t ldo,
                                cudaStream_t stream)
{
    if (rows == 0 || cols == 0)
        return;
    const int64_t units = sl_cuda_divide_up(cols, aligned ? 4 : 1);
    const int most = rows < 8 ? SL_CUDA_EACH_THREADS : 32;
    int across = 1;
    while (across < most && across < units)
        across *= 2;
    const int down = SL_CUDA_EACH_THREADS / across;
    const int64_t panels = sl_cuda_divide_up(units, across);
    const dim3 grid((unsigned)sl_cuda_divide_up(rows, (int64_t)down * SL_CUDA_EACH_ROWS),
                    (unsigned)(panels < 65535 ? panels : 65535));
    const dim3 block((unsigned)across, (unsigned)down);
    sl_cuda_launch(name, aligned ? sl_cuda_each<4, Operation, T> : sl_cuda_each<1, Operation, T>,
                   grid, block, 0, stream, rows, cols, operation, out, ldo);
}

/* Turn a matrix without padding into one long row, for an operation that does not depend on row and
 * column. */
static inline void sl_cuda_flatten(int64_t *rows, int64_t *cols, bool contiguous)
{
    if (contiguous && *rows > 0) {
        *cols *= *rows;
        *rows = 1;
    }
}

#endif
