/* bfloat16, the upper half of a float32: a type to store dense operands in, not to compute in. */
#ifndef SL_CODELETS_BFLOAT16_H
#define SL_CODELETS_BFLOAT16_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "codelets/vector.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

SL_INLINE float sl_widen(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

/* Round to nearest, ties to even; NaN stays NaN. */
SL_INLINE uint16_t sl_narrow(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet : rounded);
}

/* Convert halves to words of equal numbers, and back. Processors have one instruction; GCC 12 takes
 * several. */
SL_INLINE sl_words sl_extend(const sl_halves *halves)
{
#if SL_VECTOR_BYTES == 64
    return (sl_words)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)halves));
#elif SL_VECTOR_BYTES == 32
    return (sl_words)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)halves));
#else
    return __builtin_convertvector(*halves, sl_words);
#endif
}

SL_INLINE sl_halves sl_shorten(sl_words words)
{
#if SL_VECTOR_BYTES == 64
    return (sl_halves)_mm512_cvtepi32_epi16((__m512i)words);
#elif SL_VECTOR_BYTES == 32
    return (sl_halves)_mm_packus_epi32(_mm256_castsi256_si128((__m256i)words),
                                       _mm256_extracti128_si256((__m256i)words, 1));
#else
    return __builtin_convertvector(words, sl_halves);
#endif
}

/* Return SL_LANES elements from column j of a row on, of either type. */
SL_INLINE sl_floats sl_load(const void *row, int64_t j, bool half)
{
    if (!half)
        return *(const sl_floats *)((const float *)row + j);
    return (sl_floats)(sl_extend((const sl_halves *)((const uint16_t *)row + j)) << 16);
}

/* Return the even or the odd elements of 2 * SL_LANES bfloat16 elements at `pairs`. */
SL_INLINE sl_floats sl_load_pairs(const void *pairs, bool odd)
{
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    const sl_words words = *(const sl_words_at *)pairs;
    return (sl_floats)(odd == little ? words & 0xFFFF0000 : words << 16);
}

/* Return sl_narrow of each lane. */
SL_INLINE sl_words sl_narrow_lanes(sl_floats x)
{
    const sl_words bits = (sl_words)x, rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16,
                   quiet = bits >> 16 | 0x40;
    const sl_words nan = (sl_words)((bits & 0x7FFFFFFF) > 0x7F800000);
    return (quiet & nan) | (rounded & ~nan);
}

/* Return each lane of X rounded to bfloat16. */
SL_INLINE sl_floats sl_round_lanes(sl_floats x)
{
    return (sl_floats)(sl_narrow_lanes(x) << 16);
}

/* Store sl_narrow of a vector. AVX512_BF16 takes subnormal numbers for 0: vectors with such a
 * number go the long way. */
SL_INLINE void sl_store_halves(sl_floats x, void *to)
{
#ifdef __AVX512BF16__
    const __m512 value = (__m512)x;
    if (__builtin_expect(_mm512_fpclass_ps_mask(value, 0x20) == 0, 1)) {
        *(sl_halves *)to = (sl_halves)_mm512_cvtneps_pbh(value);
        return;
    }
#endif
    *(sl_halves *)to = sl_shorten(sl_narrow_lanes(x));
}

#endif
