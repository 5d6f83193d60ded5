/* Dense products: the BLAS's. Operands in bfloat16 are made float32 some rows at a time, which stay
 * in the second-level cache, and so do sums that an epilogue follows. */
#include "codelets/gemm.h"
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

/* C = [C +] op(A)·op(B), of float32. */
static void multiply(const struct sl_gemm *g)
{
    cblas_sgemm(CblasRowMajor, g->transpose_a ? CblasTrans : CblasNoTrans,
                g->transpose_b ? CblasTrans : CblasNoTrans, (int)g->m, (int)g->n, (int)g->k, 1.0f,
                g->a.data, (int)g->a.ld, g->b, (int)g->ldb, g->accumulate ? 1.0f : 0.0f, g->c.data,
                (int)g->c.ld);
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

/* From row i and column j of op(B) on. */
static const float *b_at(const struct sl_gemm *g, int64_t i, int64_t j)
{
    return g->b + (g->transpose_b ? j * g->ldb + i : i * g->ldb + j);
}

/* C = epilogue(A·op(B)), as many rows as have room. */
static void multiply_rows(const struct sl_gemm *g, float *room_a, float *room_c)
{
    struct sl_gemm part = *g;
    for (int64_t j = 0; j < g->n; j += part.n) {
        part.n = least(g->n - j, PIECE_COLS);
        part.c = sl_float_rows(room_c, part.n);
        for (int64_t i = 0; i < g->k; i += part.k) {
            part.k = least(g->k - i, PIECE_COLS);
            part.a = widened(&g->a, 0, i, g->m, part.k, room_a);
            part.b = b_at(g, i, j);
            part.accumulate = i > 0;
            multiply(&part);
        }
        const struct sl_rows out = sl_rows_at(&g->c, 0, j);
        const struct sl_epilogue e = sl_epilogue_at(g->epilogue, 0, j);
        sl_epilogue_rows(&e, 0, g->m, part.n, &part.c, &out);
    }
}

/* C = [C +] A·op(B), A in bfloat16, as many rows as have room. */
static void add_rows(const struct sl_gemm *g, float *room)
{
    struct sl_gemm part = *g;
    for (int64_t i = 0; i < g->k; i += part.k) {
        part.k = least(g->k - i, PIECE_COLS);
        part.a = widened(&g->a, 0, i, g->m, part.k, room);
        part.b = b_at(g, i, 0);
        part.accumulate = g->accumulate || i > 0;
        multiply(&part);
    }
}

/* C = [C +] Aᵀ·op(B), A (k, m) in bfloat16. */
static void multiply_transposed(const struct sl_gemm *g)
{
    float room[PIECE];
    struct sl_gemm part = *g;
    for (int64_t j = 0; j < g->m; j += part.m) {
        part.m = least(g->m - j, PIECE_COLS);
        part.c = sl_rows_at(&g->c, j, 0);
        for (int64_t i = 0; i < g->k; i += part.k) {
            part.k = least(g->k - i, PIECE / part.m);
            part.a = widened(&g->a, i, j, part.k, part.m, room);
            part.b = b_at(g, i, 0);
            part.accumulate = g->accumulate || i > 0;
            multiply(&part);
        }
    }
}

/* Some rows at a time, through memory that stays in the cache. */
static void multiply_in_rows(const struct sl_gemm *g)
{
    float room_a[PIECE], room_c[PIECE];
    const int64_t at_once = PIECE / least(g->n > g->k ? g->n : g->k, PIECE_COLS);
    struct sl_gemm part = *g;
    for (int64_t r = 0; r < g->m; r += part.m) {
        const struct sl_epilogue e = sl_epilogue_at(g->epilogue, r, 0);
        part.m = least(g->m - r, at_once);
        part.a = sl_rows_at(&g->a, r, 0);
        part.c = sl_rows_at(&g->c, r, 0);
        part.epilogue = &e;
        if (g->epilogue || g->c.type == SL_BFLOAT16)
            multiply_rows(&part, room_a, room_c);
        else
            add_rows(&part, room_a);
    }
}

/* A sum of nothing. */
static void without_terms(const struct sl_gemm *g)
{
    static const float zeros[PIECE_COLS];
    const struct sl_rows sum = sl_float_rows(zeros, PIECE_COLS);
    for (int64_t r = 0; !g->accumulate && r < g->m; r++) {
        const struct sl_rows row = sl_rows_at(&g->c, r, 0);
        if (!g->epilogue)
            memset(row.data, 0, (size_t)g->n * sl_type_size(g->c.type));
        for (int64_t j = 0; g->epilogue && j < g->n; j += PIECE_COLS) {
            const struct sl_epilogue e = sl_epilogue_at(g->epilogue, r, j);
            const struct sl_rows to = sl_rows_at(&g->c, r, j);
            sl_epilogue_rows(&e, 0, 1, least(g->n - j, PIECE_COLS), &sum, &to);
        }
    }
}

void sl_kernel_gemm(const struct sl_gemm *g)
{
    if (g->m == 0 || g->n == 0)
        return;
    if (g->k == 0)
        without_terms(g);
    else if (g->a.type == SL_FLOAT32 && g->c.type == SL_FLOAT32 && !g->epilogue)
        multiply(g);
    else if (g->transpose_a)
        multiply_transposed(g);
    else
        multiply_in_rows(g);
}

struct sl_gemm sl_gemm_of_task(const struct gemm_argument *arg, void **buffers,
                               struct sl_epilogue *epilogue)
{
    const int used = 2 + sl_epilogue_buffers(&arg->epilogue, buffers + 2, epilogue);
    const struct sl_dense b = sl_dense_buffer(buffers[1]);
    const struct sl_gemm gemm = {
        .transpose_a = arg->transpose_a,
        .transpose_b = arg->transpose_b,
        .accumulate = arg->accumulate,
        .tf32 = arg->tf32,
        .m = arg->m,
        .n = arg->n,
        .k = arg->k,
        .a = sl_rows_buffer(buffers[0]),
        .b = b.data + arg->b_row * b.ld + arg->b_col,
        .ldb = b.ld,
        .epilogue = arg->epilogue.present ? epilogue : NULL,
        .c = sl_rows_buffer(buffers[used]),
    };
    if (arg->epilogue.masked_by_z)
        epilogue->mask = gemm.c;
    return gemm;
}

/* gemm_set, gemm_add
 *   argument  struct gemm_argument
 *   buffers   0 R       A (m, k), transposed: (k, m); of either type
 *             1 R       B (k, n), transposed: (n, k), part of a tile
 *             …  R      what the epilogue needs (codelet.h)
 *             last W/RW C (m, n); of either type, where A is not transposed */
static void gemm_set_cpu(void *buffers[], void *argument)
{
    struct sl_epilogue epilogue;
    const struct sl_gemm gemm = sl_gemm_of_task(argument, buffers, &epilogue);
    sl_kernel_gemm(&gemm);
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
