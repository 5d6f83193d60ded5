/* Dense products. */
#ifndef SL_CODELETS_GEMM_H
#define SL_CODELETS_GEMM_H

#include "codelets/epilogue.h"

/* C = epilogue(op(A)·op(B)); `epilogue` NULL: none; accumulate: C += …. op(A) (m, k), op(B) (k, n),
 * C (m, n), each float32 or bfloat16. If `accumulate` or `transpose_a`, C is float32 and there is
 * no epilogue. The mask may be C.
 *
 * Sums are float32. Where A or B is bfloat16, the other operand is rounded to bfloat16 on GPUs, and
 * on cores where sl_gemm_bfloat16_is_fast. PyTorch's autocast rounds weights and gradients, too. A
 * term's relative error is then up to 2^-8. It is 0 where both are bfloat16. */
struct sl_gemm {
    bool transpose_a, transpose_b, accumulate;
    /* A GPU's float32 operands may lose 13 of 23 bits on the way into its tensor cores. */
    bool tf32;
    int64_t m, n, k;
    struct sl_rows a, b;
    const struct sl_epilogue *epilogue;
    struct sl_rows c;
};
void sl_kernel_gemm(const struct sl_gemm *gemm);

void sl_cuda_gemm(const struct sl_gemm *gemm, struct sl_cuda_queue queue);

/* Submit C = epilogue(op(A)·op(B)), as sl_kernel_gemm; tiles may have further rows. */
struct sl_gemm_tiles {
    bool transpose_a, transpose_b;
    int64_t m, n, k;
    struct sl_tile *a, *b;
    int64_t b_row, b_col; /* where B begins in its tile */
    bool accumulate;
    bool keeps; /* further rows of C are kept; else they are lost on a GPU */
    const struct sl_epilogue_tiles *epilogue; /* NULL: none; the mask may be C before the task */
    struct sl_tile *c;
};
void sl_submit_gemm(struct sl_runtime *rt, const struct sl_gemm_tiles *tiles);

/* Argument of the tasks gemm_set and gemm_add. */
struct gemm_argument {
    int64_t m, n, k;
    int64_t b_row, b_col;
    bool transpose_a, transpose_b, accumulate, tf32;
    struct epilogue_argument epilogue;
};

/* Return the operands of a gemm task. Put the result's epilogue, if any, into `epilogue`. */
struct sl_gemm sl_gemm_of_task(const struct gemm_argument *argument, void **buffers,
                               struct sl_epilogue *epilogue);

#endif
