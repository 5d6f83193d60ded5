/* bfloat16, the upper half of a float32: rounded to nearest, ties to even; NaN becomes the NaN
 * 0x7FFF, as on a GPU. */
#ifndef SL_SOFTWARE_GPU_CUDA_BF16_H
#define SL_SOFTWARE_GPU_CUDA_BF16_H

#include <cuda_runtime.h>

#ifdef __cplusplus

struct __nv_bfloat16 {
    uint16_t bits;

    __nv_bfloat16() = default;
    explicit __nv_bfloat16(float x)
    {
        const uint32_t whole = __float_as_uint(x);
        bits = x != x ? 0x7FFF : (uint16_t)((whole + 0x7FFF + (whole >> 16 & 1)) >> 16);
    }
    operator float() const
    {
        return __uint_as_float((uint32_t)bits << 16);
    }
};

struct __attribute__((aligned(4))) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    return __nv_bfloat16(x);
}

static inline float __bfloat162float(__nv_bfloat16 x)
{
    return x;
}

static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {__nv_bfloat16(x), __nv_bfloat16(y)};
}

#endif

#endif
