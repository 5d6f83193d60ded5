/* Dense products. Two operands of float32 are multiplied by oneDNN where it is faster
 * (gemm_onednn.h), by the BLAS elsewhere. Where one operand is bfloat16, both become of one type:
 * bfloat16 where the processor multiplies it, float32 elsewhere. Operands are converted in pieces
 * that stay in the second-level cache, and so do sums that an epilogue follows. */
#include "codelets/gemm.h"
#include "codelets/codelet.h"
#include "codelets/epilogue.h"
#include "codelets/gemm_onednn.h"
#include "core/memory.h"

#include <string.h>

#include SL_CBLAS_HEADER

/* Floats of a piece of A or C, and of B, which may be all the weights; the most columns of a piece.
 */
enum { PIECE = 64 * 1024, PIECE_B = 128 * 1024, PIECE_COLS = 2048 };

/* Pieces with at most so many rows are not made smaller. */
enum { FEW_ROWS = 16 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A product in pieces. A piece of bfloat16 is dense: oneDNN is faster at rows without padding, and
 * its sums then do not depend on ld. */
struct pieces {
    const struct sl_gemm *g;
    enum sl_type type;         /* type to which operands are converted */
    int64_t rows, cols, inner; /* most rows and columns of a piece of C, and terms of its sum */
    int64_t b_inner, b_col;    /* place of the piece of B in `room_b`; -1: none */
    void *room_a, *room_b;     /* room for converted pieces */
    float *room_c;             /* room for sums; NULL: sums are made in C */
};

/* C = [C +] op(A)·op(B), operands of one type, sums in float32. */
static void multiply(const struct sl_gemm *g)
{
    if (g->a.type == SL_BFLOAT16)
        sl_gemm_bfloat16(g);
    else if (sl_gemm_float32_is_fast(g))
        sl_gemm_float32(g);
    else
        cblas_sgemm(CblasRowMajor, g->transpose_a ? CblasTrans : CblasNoTrans,
                    g->transpose_b ? CblasTrans : CblasNoTrans, (int)g->m, (int)g->n, (int)g->k,
                    1.0f, g->a.data, (int)g->a.ld, g->b.data, (int)g->b.ld,
                    g->accumulate ? 1.0f : 0.0f, g->c.data, (int)g->c.ld);
}

static void copy(int64_t rows, int64_t cols, const struct sl_rows *from, const struct sl_rows *to)
{
    const struct sl_epilogue identity = SL_EPILOGUE_IDENTITY;
    sl_epilogue_rows(&identity, 0, rows, cols, from, to);
}

/* Return a piece (rows, cols) of `x` as `type`: in place, or in `room`, which is filled if `fill`.
 */
static struct sl_rows converted(const struct sl_rows *x, int64_t rows, int64_t cols,
                                enum sl_type type, void *room, bool fill)
{
    if (x->type == type && (type == SL_FLOAT32 || x->ld == cols))
        return *x;
    const struct sl_rows to = sl_rows_of_type(room, cols, type);
    if (fill)
        copy(rows, cols, x, &to);
    return to;
}

/* Return the terms [i, i + inner) of rows [r, r + rows) of op(A). */
static struct sl_rows piece_of_a(const struct pieces *p, int64_t r, int64_t rows, int64_t i,
                                 int64_t inner)
{
    const bool across = p->g->transpose_a;
    const struct sl_rows from = sl_rows_at(&p->g->a, across ? i : r, across ? r : i);
    return converted(&from, across ? inner : rows, across ? rows : inner, p->type, p->room_a, true);
}

/* Return the terms [i, i + inner) of columns [j, j + cols) of op(B). A piece that is in `room_b`
 * already is not converted again. */
static struct sl_rows piece_of_b(struct pieces *p, int64_t i, int64_t inner, int64_t j,
                                 int64_t cols)
{
    const bool across = p->g->transpose_b, there = p->b_inner == i && p->b_col == j;
    const struct sl_rows from = sl_rows_at(&p->g->b, across ? j : i, across ? i : j);
    p->b_inner = i;
    p->b_col = j;
    return converted(&from, across ? cols : inner, across ? inner : cols, p->type, p->room_b,
                     !there);
}

/* Return the size of the next piece, with `left` left. Sizes are few, because oneDNN needs a
 * program for each. */
static int64_t cut(const struct pieces *p, int64_t left, int64_t at_once)
{
    if (left >= at_once)
        return at_once;
    while (p->type == SL_BFLOAT16 && at_once > left && at_once > FEW_ROWS)
        at_once /= 2;
    return least(left, at_once);
}

/* Multiply the piece (rows, cols) of C from element (r, j) on. */
static void multiply_piece(struct pieces *p, int64_t r, int64_t rows, int64_t j, int64_t cols)
{
    const struct sl_gemm *g = p->g;
    const struct sl_rows c = sl_rows_at(&g->c, r, j);
    struct sl_gemm part = *g;
    part.m = rows;
    part.n = cols;
    part.c = p->room_c ? sl_float_rows(p->room_c, cols) : c;
    if (p->room_c && g->accumulate)
        copy(rows, cols, &c, &part.c);
    for (int64_t i = 0; i < g->k; i += part.k) {
        part.k = g->transpose_a ? cut(p, g->k - i, p->inner) : least(g->k - i, p->inner);
        part.a = piece_of_a(p, r, rows, i, part.k);
        part.b = piece_of_b(p, i, part.k, j, cols);
        part.accumulate = g->accumulate || i > 0;
        multiply(&part);
    }
    if (p->room_c) {
        const struct sl_epilogue e = sl_epilogue_at(g->epilogue, r, j);
        sl_epilogue_rows(&e, 0, rows, cols, &part.c, &c);
    }
}

static int64_t power_of_two_within(int64_t bound)
{
    int64_t power = 1;
    while (power <= bound / 2)
        power *= 2;
    return power;
}

/* Return whether sums are made beside C. */
static bool wants_sums(const struct pieces *p)
{
    const struct sl_gemm *g = p->g;
    return g->epilogue || g->c.type == SL_BFLOAT16 ||
           (p->type == SL_BFLOAT16 && g->c.ld != p->cols);
}

/* Choose the sizes of float32 pieces. With A transposed, the sum is cut, else the rows. */
static void choose_sizes(struct pieces *p)
{
    const struct sl_gemm *g = p->g;
    const bool converts_b = g->b.type != SL_FLOAT32;
    p->cols = least(g->n, PIECE_COLS);
    if (g->transpose_a) {
        p->rows = least(g->m, PIECE_COLS);
        p->inner = PIECE / (converts_b ? most(p->rows, p->cols) : p->rows);
    } else {
        p->inner = least(g->k, PIECE_COLS);
        if (converts_b)
            p->cols = least(p->cols, PIECE_B / p->inner);
        p->rows = PIECE / most(p->cols, p->inner);
    }
}

/* Choose the sizes of pieces of bfloat16, which take half the room. The sizes do not depend on the
 * operands' types. */
static void choose_sizes_of_halves(struct pieces *p)
{
    const struct sl_gemm *g = p->g;
    p->cols = least(g->n, PIECE_COLS);
    if (g->transpose_a) {
        p->rows = least(g->m, wants_sums(p) ? PIECE / p->cols : PIECE_COLS);
        p->inner = power_of_two_within(2 * PIECE / most(p->rows, p->cols));
    } else {
        p->inner = least(g->k, PIECE_COLS);
        p->cols = least(p->cols, 2 * PIECE_B / p->inner);
        p->rows = power_of_two_within(PIECE / most(p->cols, p->inner));
    }
}

static void multiply_in_pieces(const struct sl_gemm *g, enum sl_type type)
{
    float *room = sl_memory_of_thread((PIECE + PIECE_B + PIECE) * sizeof *room);
    struct pieces p = {
        .g = g, .type = type, .b_inner = -1, .b_col = -1, .room_a = room, .room_b = room + PIECE};
    if (type == SL_BFLOAT16)
        choose_sizes_of_halves(&p);
    else
        choose_sizes(&p);
    p.room_c = wants_sums(&p) ? room + PIECE + PIECE_B : NULL;
    for (int64_t j = 0, cols; j < g->n; j += cols) {
        cols = least(g->n - j, p.cols);
        for (int64_t r = 0, rows; r < g->m; r += rows) {
            rows = g->transpose_a ? least(g->m - r, p.rows) : cut(&p, g->m - r, p.rows);
            multiply_piece(&p, r, rows, j, cols);
        }
    }
}

/* Write C for a sum without terms (k = 0). */
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
    const bool halves = g->a.type == SL_BFLOAT16 || g->b.type == SL_BFLOAT16;
    if (g->k == 0)
        without_terms(g);
    else if (!halves && g->c.type == SL_FLOAT32 && !g->epilogue)
        multiply(g);
    else
        multiply_in_pieces(g, halves && sl_gemm_bfloat16_is_fast() ? SL_BFLOAT16 : SL_FLOAT32);
}

struct sl_gemm sl_gemm_of_task(const struct gemm_argument *arg, void **buffers,
                               struct sl_epilogue *epilogue)
{
    const int used = 2 + sl_epilogue_buffers(&arg->epilogue, buffers + 2, epilogue);
    const struct sl_rows b = sl_rows_buffer(buffers[1]);
    const struct sl_gemm gemm = {
        .transpose_a = arg->transpose_a,
        .transpose_b = arg->transpose_b,
        .accumulate = arg->accumulate,
        .tf32 = arg->tf32,
        .m = arg->m,
        .n = arg->n,
        .k = arg->k,
        .a = sl_rows_buffer(buffers[0]),
        .b = sl_rows_at(&b, arg->b_row, arg->b_col),
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
 *             1 R       B (k, n), transposed: (n, k), part of a tile; of either type
 *             …  R      tiles of the epilogue
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
                (uint32_t)(arg.transpose_a | arg.transpose_b << 1 | arg.tf32 << 2 |
                           (tiles->b->element_size == 2) << 3)
                    << SL_EPILOGUE_KINDS;
    task.output = tiles->accumulate || tiles->keeps || arg.epilogue.masked_by_z ? SL_TASK_UPDATES
                                                                                : SL_TASK_WRITES;
    sl_task_submit(rt, &task);
}
