/* bfloat16, the upper half of a float32: a form in which dense operands are stored, not one to
 * compute in. */
#ifndef SL_CODELETS_BFLOAT16_H
#define SL_CODELETS_BFLOAT16_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "codelets/vector.h"

SL_INLINE float sl_widen(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

/* To nearest, ties to even; NaN stays NaN. */
SL_INLINE uint16_t sl_narrow(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet : rounded);
}

typedef uint16_t sl_halves __attribute__((vector_size(32), aligned(2), may_alias));
typedef uint16_t sl_halves_value __attribute__((vector_size(32)));
typedef float sl_floats_value __attribute__((vector_size(64)));
typedef int32_t sl_ints __attribute__((vector_size(64)));
typedef uint32_t sl_words __attribute__((vector_size(64)));
typedef uint32_t sl_words_anywhere __attribute__((vector_size(64), aligned(2), may_alias));

/* SL_LANES elements from column j of a row on, of either type. */
SL_INLINE void sl_load(const void *row, int64_t j, bool half, sl_floats *x)
{
    if (half) {
        const sl_halves *halves = (const sl_halves *)((const uint16_t *)row + j);
        *x = (sl_floats)(__builtin_convertvector(*halves, sl_words) << 16);
    } else {
        *x = *(const sl_floats *)((const float *)row + j);
    }
}

/* The even or the odd ones of 2 * SL_LANES bfloat16 elements at `pairs`. */
SL_INLINE void sl_load_pairs(const void *pairs, bool odd, sl_floats *x)
{
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    const sl_words words = *(const sl_words_anywhere *)pairs;
    *x = (sl_floats)(odd == little ? words & 0xFFFF0000 : words << 16);
}

/* sl_narrow of a vector. */
SL_INLINE void sl_store_halves(const sl_floats *x, void *to)
{
    const sl_words bits = (sl_words)*x, rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16,
                   quiet = bits >> 16 | 0x40;
    const sl_words nan = (sl_words)((bits & 0x7FFFFFFF) > 0x7F800000);
    *(sl_halves *)to = __builtin_convertvector((quiet & nan) | (rounded & ~nan), sl_halves_value);
}

/* The same with AVX512_BF16, which takes subnormal numbers for 0: those go the long way. */
#ifdef SL_X86_BF16
SL_INLINE void sl_store_rounded(const sl_floats *x, void *to)
{
    const sl_floats_value value = *x;
    uint16_t subnormal;
    __asm__("vfpclassps $0x20, %1, %0" : "=Yk"(subnormal) : "v"(value));
    if (__builtin_expect(subnormal, 0)) {
        sl_store_halves(x, to);
    } else {
        sl_halves_value halves;
        __asm__("vcvtneps2bf16 %1, %0" : "=v"(halves) : "v"(value));
        *(sl_halves *)to = halves;
    }
}
#else
#define sl_store_rounded sl_store_halves
#endif

#endif
