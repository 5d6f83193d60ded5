/* e^x of eight floats at a time; for the bodies of SL_DISPATCH functions. No comparisons: where a
 * processor has shorter vectors than these, the compiler would make scalars of them. */
#ifndef SL_CODELETS_EXPONENTIAL_H
#define SL_CODELETS_EXPONENTIAL_H

#include <stdint.h>

#include "codelets/vector.h"

enum { SL_EIGHT = 8 };
typedef float sl_eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t sl_eight_ints __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint32_t sl_eight_words __attribute__((vector_size(32), aligned(4), may_alias));

/* -1 in the lanes whose first bit is set, 0 in the others. */
#define SL_SIGN(lanes) (-(sl_eight_ints)((sl_eight_words)(lanes) >> 31))

/* The lanes of `yes` where the mask is -1, those of `no` where it is 0. */
#define SL_SELECT(mask, yes, no) \
    ((sl_eight)(((mask) & (sl_eight_ints)(yes)) | (~(mask) & (sl_eight_ints)(no))))

/* x = e^x for x < 88; for x <= 0 within 1.1 units in the last place. What is below 2^-126 may
 * become 0; NaN stays.
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2, e^x = 2^n e^r. The first part of ln 2 has so few bits that n
 * times it is exact; the polynomial of e^r is that of Cephes' expf. */
SL_INLINE void sl_exponential(sl_eight *x)
{
    const int32_t infinity = 0x7F800000, least = 0x42B00000; /* bits of infinity and 88 */
    const float round = 0x1.8p23f; /* adding it leaves no bits behind the point */
    const sl_eight_ints size = (sl_eight_ints)*x & INT32_MAX;
    const sl_eight_ints under = SL_SIGN((least - size) & ~(infinity - size)); /* NaN is not */
    const sl_eight inside = SL_SELECT(under, (sl_eight){0} - 88.0f, *x);
    const sl_eight shifted = inside * 0x1.715476p0f + round, n = shifted - round;
    const sl_eight r = (inside - n * 0x1.63p-1f) - n * -0x1.bd0106p-13f;
    sl_eight p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    *x = p * (sl_eight)(((sl_eight_ints)shifted + 127) << 23); /* n = -127: 0 */
}

#endif
