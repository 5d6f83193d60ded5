/* Dense products by cuBLAS. Float32 operands are multiplied in full float32, unless TF32 is asked
 * for.
 *
 * The tensor cores multiply two operands of bfloat16 and add in float32. So where one operand is
 * bfloat16, the other operand becomes bfloat16, too, in pieces that fit the workspace. Each piece
 * reads the first operand in place. Where A is not transposed, B is the weights, in general one
 * piece. Where A is transposed, A and B have a row per vertex. Then C is float32, and the products
 * of the pieces are added to C.
 *
 * Where there is an epilogue, or only C is bfloat16, the product is float32 in the workspace, some
 * rows at a time. */
#include "codelets/cuda.h"

extern "C" {
#include "codelets/epilogue.h"
#include "codelets/gemm.h"
#include "codelets/init.h"
}

namespace
{

/* Sizes of pieces: elements of a piece of A or B, in the first half of the workspace; its side
 * along C where the sum is cut; elements of a piece of C, in the second half. */
enum {
    PIECE = SL_RUNTIME_WORKSPACE / 4,
    PIECE_SIDE = 2048,
    PIECE_C = SL_RUNTIME_WORKSPACE / 8,
};

struct product {
    struct sl_cuda_queue queue;
    bool transpose_a, transpose_b, accumulate, tf32;
    int64_t m, n, k;
    sl_rows a, b, c;
};

int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void check_cublas(const char *call, cublasStatus_t status)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        sl_fatal("%s: %s", call, cublasGetStatusString(status));
}

cudaDataType_t cublas_type(const sl_rows &rows)
{
    return rows.type == SL_BFLOAT16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* Row-major C = op(A)·op(B) is column-major Cᵀ = op(B)ᵀ·op(A)ᵀ on the same memory: the operands
 * change places. A and B have one type; C has this type or float32. */
void multiply(const product &p)
{
    const float one = 1.0f, add = p.accumulate ? 1.0f : 0.0f;
    check_cublas("cublasGemmEx",
                 cublasGemmEx(p.queue.blas, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                              p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, (int)p.n, (int)p.m,
                              (int)p.k, &one, p.b.data, cublas_type(p.b), (int)p.b.ld, p.a.data,
                              cublas_type(p.a), (int)p.a.ld, &add, p.c.data, cublas_type(p.c),
                              (int)p.c.ld,
                              p.tf32 && p.a.type == SL_FLOAT32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                               : CUBLAS_COMPUTE_32F,
                              CUBLAS_GEMM_DEFAULT));
}

void convert(int64_t rows, int64_t cols, const sl_rows &from, const sl_rows &to,
             struct sl_cuda_queue queue)
{
    const struct sl_epilogue identity = SL_EPILOGUE_IDENTITY;
    sl_cuda_epilogue(rows, cols, &identity, &from, &to, queue);
}

/* Return a piece (rows, cols) of A or B as bfloat16. */
sl_rows narrow(const sl_rows &from, int64_t rows, int64_t cols, struct sl_cuda_queue queue)
{
    if (from.type == SL_BFLOAT16)
        return from;
    const sl_rows to = sl_rows_of_type(queue.workspace, cols, SL_BFLOAT16);
    convert(rows, cols, from, to, queue);
    return to;
}

/* Return the rows from element (r, j) of op(X) on. */
sl_rows at(const sl_rows &x, bool transposed, int64_t r, int64_t j)
{
    return transposed ? sl_rows_at(&x, j, r) : sl_rows_at(&x, r, j);
}

sl_rows narrow_at(const sl_rows &x, bool transposed, int64_t r, int64_t rows, int64_t j,
                  int64_t cols, struct sl_cuda_queue queue)
{
    return narrow(at(x, transposed, r, j), transposed ? cols : rows, transposed ? rows : cols,
                  queue);
}

/* A piece of a product: `side` rows or columns of C from `first` on, and terms [i, i + inner) of
 * the sum. */
struct extent {
    int64_t first, side, i, inner;
};

/* Multiply a piece: rows of C where A is converted, columns of C where B is converted. */
void multiply_piece(const product &p, const extent &e)
{
    const bool by_rows = p.a.type == SL_FLOAT32;
    product piece = p;
    (by_rows ? piece.m : piece.n) = e.side;
    piece.k = e.inner;
    piece.accumulate = p.accumulate || e.i > 0;
    piece.a = narrow_at(p.a, p.transpose_a, by_rows ? e.first : 0, piece.m, e.i, e.inner, p.queue);
    piece.b = narrow_at(p.b, p.transpose_b, e.i, e.inner, by_rows ? 0 : e.first, piece.n, p.queue);
    piece.c = by_rows ? sl_rows_at(&p.c, e.first, 0) : sl_rows_at(&p.c, 0, e.first);
    multiply(piece);
}

bool is_narrow(const product &p)
{
    return p.a.type == SL_BFLOAT16 || p.b.type == SL_BFLOAT16;
}

/* Multiply a bfloat16 operand and a float32 operand, in pieces. Where C is float32, the sum is cut,
 * too. */
void multiply_mixed(const product &p)
{
    const bool cut_sum = p.c.type == SL_FLOAT32;
    if (!cut_sum && p.k > PIECE)
        sl_fatal("a product over %lld columns in bfloat16 (at most %d)", (long long)p.k,
                 (int)PIECE);
    const int64_t whole = p.a.type == SL_FLOAT32 ? p.m : p.n, with_all = PIECE / p.k,
                  at_once = cut_sum && with_all < PIECE_SIDE ? PIECE_SIDE : with_all;
    extent e;
    for (e.first = 0; e.first < whole; e.first += e.side) {
        e.side = least(whole - e.first, at_once);
        for (e.i = 0; e.i < p.k; e.i += e.inner) {
            e.inner = least(p.k - e.i, PIECE / e.side);
            multiply_piece(p, e);
        }
    }
}

void multiply_any(const product &p)
{
    if (p.a.type != p.b.type)
        multiply_mixed(p);
    else
        multiply(p);
}

/* Multiply some rows at a time into the workspace, then run the epilogue to C. */
void multiply_rows(const product &p, const struct sl_epilogue *epilogue)
{
    if (p.n > PIECE_C)
        sl_fatal("a product of %lld columns with an epilogue (at most %d)", (long long)p.n,
                 (int)PIECE_C);
    for (int64_t r = 0, rows; r < p.m; r += rows) {
        rows = least(p.m - r, PIECE_C / p.n);
        product piece = p;
        piece.m = rows;
        piece.a = sl_rows_at(&p.a, r, 0);
        piece.c =
            sl_rows_of_type((char *)p.queue.workspace + SL_RUNTIME_WORKSPACE / 2, p.n, SL_FLOAT32);
        const struct sl_epilogue e = sl_epilogue_at(epilogue, r, 0);
        const sl_rows to = sl_rows_at(&p.c, r, 0);
        if (p.k == 0)
            sl_cuda_fill(rows, p.n, 0.0f, &piece.c, p.queue);
        else
            multiply_any(piece);
        sl_cuda_epilogue(rows, p.n, &e, &piece.c, &to, p.queue);
    }
}

} // namespace

extern "C" void sl_cuda_gemm(const struct sl_gemm *gemm, struct sl_cuda_queue queue)
{
    const product p = {queue,   gemm->transpose_a, gemm->transpose_b, gemm->accumulate, gemm->tf32,
                       gemm->m, gemm->n,           gemm->k,           gemm->a,          gemm->b,
                       gemm->c};
    const struct sl_epilogue *epilogue = gemm->epilogue;
    if (p.m == 0 || p.n == 0)
        return;
    if (p.k == 0 && !p.accumulate && !epilogue)
        sl_cuda_fill(p.m, p.n, 0.0f, &p.c, queue);
    if (p.k == 0 && !epilogue)
        return;
    check_cublas("cublasSetPointerMode",
                 cublasSetPointerMode(queue.blas, CUBLAS_POINTER_MODE_HOST));
    check_cublas("cublasSetMathMode",
                 cublasSetMathMode(queue.blas, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
    if (epilogue || (!is_narrow(p) && p.c.type == SL_BFLOAT16))
        multiply_rows(p, epilogue);
    else
        multiply_any(p);
}

/* Run a gemm task. C may have rows behind its first m: the last row of a gradient is the bias's,
 * which bias_gradient writes afterwards. Until then its contents on this device are undefined. */
extern "C" void gemm_set_cuda(void *buffers[], void *argument)
{
    struct sl_epilogue epilogue;
    const struct sl_gemm gemm =
        sl_gemm_of_task((const gemm_argument *)argument, buffers, &epilogue);
    sl_cuda_gemm(&gemm, sl_cuda_task_queue());
}

extern "C" void gemm_add_cuda(void *buffers[], void *argument)
{
    gemm_set_cuda(buffers, argument);
}
