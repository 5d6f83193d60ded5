/* Stubs for a build without oneDNN, which multiplies in float32, by the BLAS. */
#include "codelets/gemm_onednn.h"

bool sl_gemm_bfloat16_is_fast(void)
{
    return false;
}

void sl_gemm_bfloat16(const struct sl_gemm *gemm)
{
    (void)gemm;
}

bool sl_gemm_float32_is_fast(const struct sl_gemm *gemm)
{
    (void)gemm;
    return false;
}

void sl_gemm_float32(const struct sl_gemm *gemm)
{
    (void)gemm;
}
