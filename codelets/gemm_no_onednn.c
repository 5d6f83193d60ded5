/* A build without oneDNN multiplies in float32. */
#include "codelets/gemm_bfloat16.h"

bool sl_gemm_bfloat16_is_fast(void)
{
    return false;
}

void sl_gemm_bfloat16(const struct sl_gemm *gemm)
{
    (void)gemm;
}
