/* Vectors and levels: kernels have one source for every instruction level. The build compiles the
 * sources of kernels once for each level, with the level's flags and its name as SL_LEVEL
 * (Makefile.am). A vector is as wide as the level it is compiled for: 16, 32 or 64 bytes. So no
 * vector needs instructions that the processor lacks. */
#ifndef SL_CODELETS_VECTOR_H
#define SL_CODELETS_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "codelets/instructions.h"
#include "config.h"

#define SL_INLINE static inline __attribute__((always_inline))

/* ---- Levels ---- */

#define SL_JOIN(name, level)     name##_##level
#define SL_OF_LEVEL(name, level) SL_JOIN(name, level)

/* Begin the definition of a kernel, such as
 *
 *     SL_KERNEL(sl_kernel_fill, (int64_t count, float value, float *x), (count, value, x))
 *     {
 *         ...
 *     }
 *
 * with its name, its parameters, and the names of the parameters; its body follows. The kernel runs
 * the body that was compiled for the level in force. At the level v4-bf16, kernels of
 * SL_KERNEL_BF16 have a body of their own; all other kernels take the body of v4. */
#define SL_KERNEL(name, parameters, arguments) \
    SL_KERNEL_OF(void, name, parameters, arguments, SL_OF_LEVEL(name, v4))
#define SL_KERNEL_RETURNS(type, name, parameters, arguments) \
    SL_KERNEL_OF(type, name, parameters, arguments, SL_OF_LEVEL(name, v4))
#define SL_KERNEL_BF16(name, parameters, arguments) \
    SL_KERNEL_OF(void, name, parameters, arguments, SL_OF_LEVEL(name, bf16))

#if defined(SL_LEVEL)
#define SL_KERNEL_OF(type, name, parameters, arguments, best) \
    type SL_OF_LEVEL(name, SL_LEVEL) parameters;              \
    type SL_OF_LEVEL(name, SL_LEVEL) parameters
#elif defined(SL_X86_LEVELS)
#define SL_KERNEL_OF(type, name, parameters, arguments, best) \
    static type name##_base parameters;                       \
    type name##_v3 parameters;                                \
    type name##_v4 parameters;                                \
    type best parameters;                                     \
    type name parameters                                      \
    {                                                         \
        switch (sl_instructions_get()) {                      \
        case SL_INSTRUCTIONS_BASE:                            \
            return name##_base arguments;                     \
        case SL_INSTRUCTIONS_V3:                              \
            return name##_v3 arguments;                       \
        case SL_INSTRUCTIONS_V4:                              \
            return name##_v4 arguments;                       \
        default:                                              \
            return best arguments;                            \
        }                                                     \
    }                                                         \
    static type name##_base parameters
#else
#define SL_KERNEL_OF(type, name, parameters, arguments, best) type name parameters
#endif

/* Turn rows that lie one behind the other into one long row. */
SL_INLINE void sl_join_rows(bool joined, int64_t *rows, int64_t *cols)
{
    if (joined) {
        *cols *= *rows;
        *rows = *rows > 0;
    }
}

/* ---- Vectors ---- */

#if defined(__AVX512F__)
#define SL_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define SL_VECTOR_BYTES 32
#else
#define SL_VECTOR_BYTES 16
#endif

/* Check that later flags of CFLAGS have not taken the level's instructions away. */
#define SL_LEVEL_IS_v3   1
#define SL_LEVEL_IS_v4   2
#define SL_LEVEL_IS_bf16 3
#if defined(SL_LEVEL)
#if (SL_OF_LEVEL(SL_LEVEL_IS, SL_LEVEL) == 1 && !defined(__AVX2__)) ||     \
    (SL_OF_LEVEL(SL_LEVEL_IS, SL_LEVEL) == 2 && !defined(__AVX512DQ__)) || \
    (SL_OF_LEVEL(SL_LEVEL_IS, SL_LEVEL) == 3 && !defined(__AVX512BF16__))
#error "CFLAGS of make change the level's instructions: give -march to configure"
#endif
#endif

/* Lanes of vectors. Sums whose lanes meet in the end have SL_SIXTEEN or SL_EIGHT lanes at every
 * level. So levels that multiply and add alike give the same bits. */
enum {
    SL_LANES = SL_VECTOR_BYTES / 4,
    SL_SIXTEEN = 16,
    SL_SIXTEEN_VECTORS = SL_SIXTEEN / SL_LANES,
    SL_EIGHT = 8,
    SL_SHORT_BYTES = SL_VECTOR_BYTES < 32 ? SL_VECTOR_BYTES : 32,
    SL_SHORT_LANES = SL_SHORT_BYTES / 4, /* lanes of a vector of eight floats at most */
    SL_EIGHT_VECTORS = SL_EIGHT / SL_SHORT_LANES,
};

/* Vectors of SL_LANES elements. Types with `may_alias` are loaded from and stored to any address.
 */
typedef float sl_floats __attribute__((vector_size(SL_VECTOR_BYTES), aligned(4), may_alias));
typedef int32_t sl_ints __attribute__((vector_size(SL_VECTOR_BYTES)));
typedef uint32_t sl_words __attribute__((vector_size(SL_VECTOR_BYTES)));
typedef uint32_t sl_words_at __attribute__((vector_size(SL_VECTOR_BYTES), aligned(2), may_alias));
typedef uint16_t sl_halves __attribute__((vector_size(SL_VECTOR_BYTES / 2), aligned(2), may_alias));

typedef float sl_short __attribute__((vector_size(SL_SHORT_BYTES), aligned(4), may_alias));
typedef int32_t sl_short_ints __attribute__((vector_size(SL_SHORT_BYTES), aligned(4), may_alias));

/* Unroll the loop that follows, so that an array of vectors becomes registers. Clang unrolls such
 * loops anyway; nvcc only reads them. */
#if defined __clang__ || defined __NVCC__
#define SL_UNROLL
#else
#define SL_UNROLL _Pragma("GCC unroll 16")
#endif

/* Vectors of lanes of vectors a and b: the even lanes, the odd lanes, and the lower and upper
 * halves of both in turn (a0 b0 a1 b1 …). */
#if SL_VECTOR_BYTES == 64
#define SL_EVEN(a, b) \
    __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define SL_ODD(a, b) \
    __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define SL_LOWER(a, b) \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define SL_UPPER(a, b) \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif SL_VECTOR_BYTES == 32
#define SL_EVEN(a, b)  __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define SL_ODD(a, b)   __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define SL_LOWER(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define SL_UPPER(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define SL_EVEN(a, b)  __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define SL_ODD(a, b)   __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define SL_LOWER(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define SL_UPPER(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

/* A vector with the number of each lane. */
#if SL_VECTOR_BYTES == 64
#define SL_LANE_NUMBERS                                      \
    (sl_words)                                               \
    {                                                        \
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 \
    }
#elif SL_VECTOR_BYTES == 32
#define SL_LANE_NUMBERS        \
    (sl_words)                 \
    {                          \
        0, 1, 2, 3, 4, 5, 6, 7 \
    }
#else
#define SL_LANE_NUMBERS \
    (sl_words)          \
    {                   \
        0, 1, 2, 3      \
    }
#endif

/* -1 in the lanes whose first bit is set, 0 in the others. */
#define SL_SIGN(ints, lanes) ((ints)(lanes) >> 31)

/* Lanes of `yes` where the mask is -1, lanes of `no` where it is 0. */
#define SL_SELECT(ints, mask, yes, no) (((mask) & (ints)(yes)) | (~(mask) & (ints)(no)))

/* Return the first `lanes` elements at X, and 0 in the other lanes. */
SL_INLINE sl_floats sl_load_lanes(const float *x, int64_t lanes)
{
    sl_floats vector = {0};
    SL_UNROLL for (int j = 0; j < SL_LANES; j++) if (j < lanes) vector[j] = x[j];
    return vector;
}

/* Store the first `lanes` lanes of a vector at X. */
SL_INLINE void sl_store_lanes(sl_floats vector, int64_t lanes, float *x)
{
    SL_UNROLL for (int j = 0; j < SL_LANES; j++) if (j < lanes) x[j] = vector[j];
}

/* Load or store a vector at X, of which `count` elements exist. */
SL_INLINE sl_floats sl_load_some(const float *x, int64_t count)
{
    return count < SL_LANES ? sl_load_lanes(x, count) : *(const sl_floats *)x;
}

SL_INLINE void sl_store_some(sl_floats vector, int64_t count, float *x)
{
    if (count < SL_LANES)
        sl_store_lanes(vector, count, x);
    else
        *(sl_floats *)x = vector;
}

/* Return SUM + x · y, rounded once where the level fuses both. In a loop of `sum += x · y` the
 * compiler chooses whether to fuse: GCC multiplies vectors, and adds their lanes one after the
 * other. */
SL_INLINE float sl_add_product(float sum, float x, float y)
{
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(x, y, sum);
#else
    return sum + x * y;
#endif
}

/* Eight doubles are SL_DOUBLE_VECTORS vectors. */
enum { SL_DOUBLES = SL_SHORT_BYTES / 8, SL_DOUBLE_VECTORS = SL_EIGHT / SL_DOUBLES };
typedef double sl_reals __attribute__((vector_size(SL_SHORT_BYTES)));
typedef int64_t sl_longs __attribute__((vector_size(SL_SHORT_BYTES)));
typedef float sl_narrow_floats
    __attribute__((vector_size(SL_SHORT_BYTES / 2), aligned(4), may_alias));

/* Return vector v of eight floats, as doubles. Without intrinsics, GCC 12 converts a vector in
 * halves. */
SL_INLINE sl_reals sl_reals_at(const float *x, int v)
{
#ifdef __AVX2__
    return (sl_reals)_mm256_cvtps_pd(_mm_loadu_ps(x + v * SL_DOUBLES));
#endif
    return __builtin_convertvector(((const sl_narrow_floats *)x)[v], sl_reals);
}

/* Return the sum, or the product, of eight doubles, half by half. */
SL_INLINE double sl_fold_reals(const sl_reals *x, bool multiplied)
{
    double lane[SL_EIGHT];
    SL_UNROLL for (int i = 0; i < SL_EIGHT; i++) lane[i] = x[i / SL_DOUBLES][i % SL_DOUBLES];
    for (int half = SL_EIGHT / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] = multiplied ? lane[l] * lane[l + half] : lane[l] + lane[l + half];
    return lane[0];
}

/* Return the sum of sixteen lanes, added one after the other. */
SL_INLINE float sl_add_sixteen(const sl_floats *x)
{
    float sum = 0.0f;
    SL_UNROLL for (int i = 0; i < SL_SIXTEEN; i++) sum += x[i / SL_LANES][i % SL_LANES];
    return sum;
}

#endif
