/* Dense products by oneDNN (gemm_onednn.c), where a build has it. Calls run on the calling thread
 * alone. */
#ifndef SL_CODELETS_GEMM_ONEDNN_H
#define SL_CODELETS_GEMM_ONEDNN_H

#include <stdbool.h>

#include "codelets/gemm.h"

/* Return whether the build and the instructions in force multiply bfloat16. */
bool sl_gemm_bfloat16_is_fast(void);

/* C = [C +] op(A)·op(B): A and B are bfloat16, C is float32, m, n, k > 0. Rows have no padding, and
 * there is no epilogue. Only where sl_gemm_bfloat16_is_fast. Its bits depend on the operands and on
 * the processor only. Subnormal numbers count as 0. A thread's first product of a shape allocates.
 */
void sl_gemm_bfloat16(const struct sl_gemm *gemm);

/* Return whether oneDNN multiplies float32 operands of this shape faster than the BLAS. The answer
 * depends on the shape, the build and the processor only. */
bool sl_gemm_float32_is_fast(const struct sl_gemm *gemm);

/* C = [C +] op(A)·op(B), all float32, without an epilogue. Only where sl_gemm_float32_is_fast. Its
 * bits depend on the operands, the distance between their rows and the processor. */
void sl_gemm_float32(const struct sl_gemm *gemm);

#endif
