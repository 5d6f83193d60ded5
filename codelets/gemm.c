/* Dense products: the BLAS's. Operands in bfloat16 are made float32 some rows at a time, which stay
 * in the second-level cache. */
#include "codelets/arguments.h"
#include "codelets/codelet.h"
#include "codelets/epilogue.h"

#include <string.h>

#include SL_CBLAS_HEADER

/* Elements and columns of an operand that are float32 at a time. */
enum { PIECE = 64 * 1024, PIECE_COLS = 2048 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void multiply(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                     const float *a, int64_t lda, const float *b, int64_t ldb, bool accumulate,
                     float *c, int64_t ldc)
{
    cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                transpose_b ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, 1.0f, a, (int)lda,
                b, (int)ldb, accumulate ? 1.0f : 0.0f, c, (int)ldc);
}

static void convert(int64_t rows, int64_t cols, const struct sl_rows *from,
                    const struct sl_rows *to)
{
    static const struct sl_epilogue identity = {.scale = 1.0f};
    sl_epilogue_rows(&identity, 0, rows, cols, from, to);
}

/* A piece (rows, cols) of A from element (r, j) on, as float32: in `room`, unless it is there. */
static struct sl_rows widened(const struct sl_rows *a, int64_t r, int64_t j, int64_t rows,
                              int64_t cols, float *room)
{
    const struct sl_rows from = sl_rows_at(a, r, j), to = sl_float_rows(room, cols);
    if (a->type == SL_FLOAT32)
        return from;
    convert(rows, cols, &from, &to);
    return to;
}

/* C (m, n) = A·op(B), m rows that have room. */
static void multiply_rows(bool transpose_b, int64_t m, int64_t n, int64_t k,
                          const struct sl_rows *a, const float *b, int64_t ldb, bool accumulate,
                          float *room_a, float *room_c, const struct sl_rows *c)
{
    const bool here = c->type == SL_FLOAT32;
    for (int64_t j = 0, cols; j < n; j += cols) {
        cols = least(n - j, PIECE_COLS);
        const struct sl_rows out = sl_rows_at(c, 0, j);
        const struct sl_rows to = here ? out : sl_float_rows(room_c, cols);
        for (int64_t i = 0, inner; i < k; i += inner) {
            inner = least(k - i, PIECE_COLS);
            const struct sl_rows piece = widened(a, 0, i, m, inner, room_a);
            multiply(false, transpose_b, m, cols, inner, piece.data, piece.ld,
                     transpose_b ? b + j * ldb + i : b + i * ldb + j, ldb, accumulate || i > 0,
                     to.data, to.ld);
        }
        if (!here)
            convert(m, cols, &to, &out);
    }
}

/* C (m, n) = Aᵀ·op(B), A (k, m) in bfloat16. */
static void multiply_transposed(bool transpose_b, int64_t m, int64_t n, int64_t k,
                                const struct sl_rows *a, const float *b, int64_t ldb,
                                bool accumulate, float *c, int64_t ldc)
{
    float room[PIECE];
    for (int64_t j = 0, cols; j < m; j += cols) {
        cols = least(m - j, PIECE_COLS);
        for (int64_t i = 0, inner; i < k; i += inner) {
            inner = least(k - i, PIECE / cols);
            const struct sl_rows piece = widened(a, i, j, inner, cols, room);
            multiply(true, transpose_b, cols, n, inner, piece.data, piece.ld,
                     transpose_b ? b + i : b + i * ldb, ldb, accumulate || i > 0, c + j * ldc, ldc);
        }
    }
}

static void multiply_narrow(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                            const struct sl_rows *a, const float *b, int64_t ldb, bool accumulate,
                            const struct sl_rows *c)
{
    float room_a[PIECE], room_c[PIECE];
    if (transpose_a) {
        multiply_transposed(transpose_b, m, n, k, a, b, ldb, accumulate, c->data, c->ld);
        return;
    }
    const int64_t at_once = PIECE / least(n > k ? n : k, PIECE_COLS);
    for (int64_t r = 0, rows; r < m; r += rows) {
        rows = least(m - r, at_once);
        const struct sl_rows from = sl_rows_at(a, r, 0), to = sl_rows_at(c, r, 0);
        multiply_rows(transpose_b, rows, n, k, &from, b, ldb, accumulate, room_a, room_c, &to);
    }
}

void sl_kernel_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                    const struct sl_rows *a, const float *b, int64_t ldb, bool accumulate,
                    const struct sl_rows *c)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0 && !accumulate)
        for (int64_t r = 0; r < m; r++)
            memset(sl_rows_at(c, r, 0).data, 0, (size_t)n * sl_type_size(c->type));
    if (k == 0)
        return;
    if (a->type == SL_FLOAT32 && c->type == SL_FLOAT32)
        multiply(transpose_a, transpose_b, m, n, k, a->data, a->ld, b, ldb, accumulate, c->data,
                 c->ld);
    else
        multiply_narrow(transpose_a, transpose_b, m, n, k, a, b, ldb, accumulate, c);
}

/* gemm_set, gemm_add
 *   argument  struct gemm_argument
 *   buffers   0 R      A (m, k), transposed: (k, m); of either type
 *             1 R      B (k, n), transposed: (n, k)
 *             2 W/RW   C (m, n); of either type, where A is not transposed */
static void gemm_set_cpu(void *buffers[], void *argument)
{
    const struct gemm_argument *arg = argument;
    const struct sl_rows a = sl_rows_buffer(buffers[0]), c = sl_rows_buffer(buffers[2]);
    const struct sl_dense b = sl_dense_buffer(buffers[1]);
    sl_kernel_gemm(arg->transpose_a, arg->transpose_b, arg->m, arg->n, arg->k, &a, b.data, b.ld,
                   arg->accumulate, &c);
}

#define gemm_add_cpu gemm_set_cpu

SL_CODELET(gemm_set, 0x4169E1, 3, STARPU_R, STARPU_R, STARPU_W);
SL_CODELET(gemm_add, 0x6495ED, 3, STARPU_R, STARPU_R, STARPU_RW);

void sl_submit_gemm(struct sl_runtime *rt, bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                    int64_t k, struct sl_tile *a, struct sl_tile *b, bool accumulate,
                    struct sl_tile *c)
{
    const struct gemm_argument arg = {m, n, k, transpose_a, transpose_b, accumulate};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = accumulate ? &gemm_add_codelet : &gemm_set_codelet,
                           .count = 3,
                           .tiles = {a, b, c},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = 2.0 * (double)m * (double)n * (double)k,
                       });
}
