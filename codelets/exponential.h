/* e^x of a vector, in the sources of kernels. */
#ifndef SL_CODELETS_EXPONENTIAL_H
#define SL_CODELETS_EXPONENTIAL_H

#include "codelets/vector.h"

/* Return e^x for x < 88; for x <= 0 within 1.1 units in the last place. Results below 2^-126 may
 * become 0; NaN stays.
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2, e^x = 2^n e^r. The first part of ln 2 has so few bits that n
 * times it is exact; the polynomial of e^r is that of Cephes' expf. */
#define SL_DEFINE_EXPONENTIAL(name, floats, ints)                                           \
    SL_INLINE floats name(floats x)                                                         \
    {                                                                                       \
        const int32_t infinity = 0x7F800000, least = 0x42B00000; /* infinity and 88 */      \
        const float round = 0x1.8p23f; /* adding it leaves no bits behind the point */      \
        const ints size = (ints)x & INT32_MAX;                                              \
        const ints under = SL_SIGN(ints, (least - size) & ~(infinity - size)); /* no NaN */ \
        const floats inside = (floats)SL_SELECT(ints, under, (floats){0} - 88.0f, x);       \
        const floats shifted = inside * 0x1.715476p0f + round, n = shifted - round;         \
        const floats r = (inside - n * 0x1.63p-1f) - n * -0x1.bd0106p-13f;                  \
        floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;                                 \
        p = p * r + 8.3334519073e-3f;                                                       \
        p = p * r + 4.1665795894e-2f;                                                       \
        p = p * r + 1.6666665459e-1f;                                                       \
        p = p * r + 5.0000001201e-1f;                                                       \
        p = p * (r * r) + r + 1.0f;                                                         \
        return p * (floats)(((ints)shifted + 127) << 23); /* n = -127: 0 */                 \
    }

SL_DEFINE_EXPONENTIAL(sl_exponential, sl_floats, sl_ints)
SL_DEFINE_EXPONENTIAL(sl_exponential_short, sl_short, sl_short_ints)

#endif
