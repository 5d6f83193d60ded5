/* Dense products: the BLAS's. Operands in bfloat16 are made float32 some rows at a time, which stay
 * in the second-level cache, and so do sums that an epilogue follows. */
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

/* A piece (rows, cols) of A from element (r, j) on, as float32: in `room`, unless it is there. */
static struct sl_rows widened(const struct sl_rows *a, int64_t r, int64_t j, int64_t rows,
                              int64_t cols, float *room)
{
    const struct sl_rows from = sl_rows_at(a, r, j), to = sl_float_rows(room, cols);
    if (a->type == SL_FLOAT32)
        return from;
    const struct sl_epilogue identity = SL_EPILOGUE_IDENTITY;
    sl_epilogue_rows(&identity, 0, rows, cols, &from, &to);
    return to;
}

/* C (m, n) = epilogue(A·op(B)), m rows that have room; without an epilogue, C is bfloat16. */
static void multiply_rows(bool transpose_b, int64_t m, int64_t n, int64_t k,
                          const struct sl_rows *a, const float *b, int64_t ldb,
                          const struct sl_epilogue *epilogue, float *room_a, float *room_c,
                          const struct sl_rows *c)
{
    for (int64_t j = 0, cols; j < n; j += cols) {
        cols = least(n - j, PIECE_COLS);
        const struct sl_rows out = sl_rows_at(c, 0, j), sum = sl_float_rows(room_c, cols);
        const struct sl_epilogue e = sl_epilogue_at(epilogue, 0, j);
        for (int64_t i = 0, inner; i < k; i += inner) {
            inner = least(k - i, PIECE_COLS);
            const struct sl_rows piece = widened(a, 0, i, m, inner, room_a);
            multiply(false, transpose_b, m, cols, inner, piece.data, piece.ld,
                     transpose_b ? b + j * ldb + i : b + i * ldb + j, ldb, i > 0, room_c, cols);
        }
        sl_epilogue_rows(&e, 0, m, cols, &sum, &out);
    }
}

/* C (m, n) = [C +] A·op(B), A in bfloat16. */
static void add_rows(bool transpose_b, int64_t m, int64_t n, int64_t k, const struct sl_rows *a,
                     const float *b, int64_t ldb, bool accumulate, float *room, float *c,
                     int64_t ldc)
{
    for (int64_t i = 0, inner; i < k; i += inner) {
        inner = least(k - i, PIECE_COLS);
        const struct sl_rows piece = widened(a, 0, i, m, inner, room);
        multiply(false, transpose_b, m, n, inner, piece.data, piece.ld,
                 transpose_b ? b + i : b + i * ldb, ldb, accumulate || i > 0, c, ldc);
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

/* Some rows at a time, through memory that stays in the cache. */
static void multiply_in_rows(bool transpose_b, int64_t m, int64_t n, int64_t k,
                             const struct sl_rows *a, const float *b, int64_t ldb, bool accumulate,
                             const struct sl_epilogue *epilogue, const struct sl_rows *c)
{
    float room_a[PIECE], room_c[PIECE];
    const int64_t at_once = PIECE / least(n > k ? n : k, PIECE_COLS);
    for (int64_t r = 0, rows; r < m; r += rows) {
        rows = least(m - r, at_once);
        const struct sl_rows from = sl_rows_at(a, r, 0), to = sl_rows_at(c, r, 0);
        const struct sl_epilogue e = sl_epilogue_at(epilogue, r, 0);
        if (epilogue || c->type == SL_BFLOAT16)
            multiply_rows(transpose_b, rows, n, k, &from, b, ldb, &e, room_a, room_c, &to);
        else
            add_rows(transpose_b, rows, n, k, &from, b, ldb, accumulate, room_a, to.data, to.ld);
    }
}

/* A sum of nothing. */
static void without_terms(int64_t m, int64_t n, bool accumulate, const struct sl_epilogue *epilogue,
                          const struct sl_rows *c)
{
    static const float zeros[PIECE_COLS];
    const struct sl_rows sum = sl_float_rows(zeros, PIECE_COLS);
    for (int64_t r = 0; !accumulate && r < m; r++) {
        const struct sl_rows row = sl_rows_at(c, r, 0);
        if (!epilogue)
            memset(row.data, 0, (size_t)n * sl_type_size(c->type));
        for (int64_t j = 0; epilogue && j < n; j += PIECE_COLS) {
            const struct sl_epilogue e = sl_epilogue_at(epilogue, r, j);
            const struct sl_rows to = sl_rows_at(c, r, j);
            sl_epilogue_rows(&e, 0, 1, least(n - j, PIECE_COLS), &sum, &to);
        }
    }
}

void sl_kernel_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                    const struct sl_rows *a, const float *b, int64_t ldb, bool accumulate,
                    const struct sl_epilogue *epilogue, const struct sl_rows *c)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0)
        without_terms(m, n, accumulate, epilogue, c);
    else if (a->type == SL_FLOAT32 && c->type == SL_FLOAT32 && !epilogue)
        multiply(transpose_a, transpose_b, m, n, k, a->data, a->ld, b, ldb, accumulate, c->data,
                 c->ld);
    else if (transpose_a)
        multiply_transposed(transpose_b, m, n, k, a, b, ldb, accumulate, c->data, c->ld);
    else
        multiply_in_rows(transpose_b, m, n, k, a, b, ldb, accumulate, epilogue, c);
}

/* gemm_set, gemm_add
 *   argument  struct gemm_argument
 *   buffers   0 R       A (m, k), transposed: (k, m); of either type
 *             1 R       B (k, n), transposed: (n, k), part of a tile
 *             …  R      what the epilogue needs (codelet.h)
 *             last W/RW C (m, n); of either type, where A is not transposed */
static void gemm_set_cpu(void *buffers[], void *argument)
{
    const struct gemm_argument *arg = argument;
    struct sl_epilogue epilogue;
    const int used = 2 + sl_epilogue_buffers(&arg->epilogue, buffers + 2, &epilogue);
    const struct sl_rows a = sl_rows_buffer(buffers[0]), c = sl_rows_buffer(buffers[used]);
    const struct sl_dense b = sl_dense_buffer(buffers[1]);
    if (arg->epilogue.masked_by_z)
        epilogue.mask = c;
    sl_kernel_gemm(arg->transpose_a, arg->transpose_b, arg->m, arg->n, arg->k, &a,
                   b.data + arg->b_row * b.ld + arg->b_col, b.ld, arg->accumulate,
                   arg->epilogue.present ? &epilogue : NULL, &c);
}

#define gemm_add_cpu gemm_set_cpu

SL_CODELET_ANY(gemm_set, 0x4169E1);
SL_CODELET_ANY(gemm_add, 0x6495ED);

void sl_submit_gemm(struct sl_runtime *rt, const struct sl_gemm_tiles *tiles)
{
    struct gemm_argument arg = {
        .m = tiles->m,
        .n = tiles->n,
        .k = tiles->k,
        .b_row = tiles->b_row,
        .b_col = tiles->b_col,
        .transpose_a = tiles->transpose_a,
        .transpose_b = tiles->transpose_b,
        .accumulate = tiles->accumulate,
        .tf32 = rt->tf32,
    };
    struct sl_task task = {
        .codelet = tiles->accumulate ? &gemm_add_codelet : &gemm_set_codelet,
        .tiles = {tiles->a, tiles->b},
        .argument = &arg,
        .argument_size = sizeof arg,
        .urgency = tiles->transpose_a ? SL_TASK_LATER : SL_TASK_SOON,
        .work = 2.0 * (double)tiles->m * (double)tiles->n * (double)tiles->k,
    };
    task.count = 2 + sl_epilogue_pack(tiles->epilogue, tiles->c, &arg.epilogue, task.tiles + 2);
    task.tiles[task.count++] = tiles->c;
    task.kind = sl_epilogue_kind(&arg.epilogue) |
                (uint32_t)(arg.transpose_a | arg.transpose_b << 1 | arg.tf32 << 2)
                    << SL_EPILOGUE_KINDS;
    task.output = tiles->accumulate || arg.epilogue.masked_by_z ? SL_TASK_UPDATES : SL_TASK_WRITES;
    sl_task_submit(rt, &task);
}
