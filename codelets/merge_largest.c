/* The larger of two states of the largest neighbours (aggregate.c), which two ranks have of the
 * same rows. */
#include "codelets/arguments.h"
#include "codelets/bfloat16.h"
#include "codelets/codelet.h"
#include "codelets/vector.h"

enum { PIECE = 64 }; /* columns */

SL_INLINE void merge_piece(int64_t count, const float *restrict x, const int32_t *restrict from,
                           float *restrict z, int32_t *restrict arg)
{
    for (int64_t j = 0; j < count; j++) {
        const float m = x[j], old = z[j];
        const bool nan = m != m, was_nan = old != old, same = (m == old) | (nan & was_nan);
        const bool takes = (from[j] >= 0) & ((arg[j] < 0) | (((m > old) | nan) & !was_nan) |
                                             (same & (from[j] < arg[j])));
        z[j] = takes ? m : old;
        arg[j] = takes ? from[j] : arg[j];
    }
}

SL_INLINE void merge_halves(int64_t count, const uint16_t *restrict x, const int32_t *restrict from,
                            uint16_t *restrict z, int32_t *restrict arg)
{
    float sent[PIECE], chosen[PIECE];
    for (int64_t j = 0; j < count; j++) {
        sent[j] = sl_widen(x[j]);
        chosen[j] = sl_widen(z[j]);
    }
    merge_piece(count, sent, from, chosen, arg);
    for (int64_t j = 0; j < count; j++)
        z[j] = sl_narrow(chosen[j]);
}

SL_INLINE void sl_kernel_merge_largest_body(int64_t rows, int64_t width, const uint32_t *index,
                                            const struct sl_rows *x, const int32_t *from,
                                            int64_t ldfrom, const struct sl_rows *z, int32_t *arg,
                                            int64_t ldarg)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < width; j += PIECE) {
            const int64_t to = index ? index[r] : r, count = width - j < PIECE ? width - j : PIECE;
            const struct sl_rows sent = sl_rows_at(x, r, j), state = sl_rows_at(z, to, j);
            if (z->type == SL_BFLOAT16)
                merge_halves(count, sent.data, from + r * ldfrom + j, state.data,
                             arg + to * ldarg + j);
            else
                merge_piece(count, sent.data, from + r * ldfrom + j, state.data,
                            arg + to * ldarg + j);
        }
}

SL_DISPATCH(, sl_kernel_merge_largest,
            (int64_t rows, int64_t width, const uint32_t *index, const struct sl_rows *x,
             const int32_t *from, int64_t ldfrom, const struct sl_rows *z, int32_t *arg,
             int64_t ldarg),
            (rows, width, index, x, from, ldfrom, z, arg, ldarg))

/* merge_largest
 *   argument  struct merge_argument
 *   buffers   0    R      X (rows, width)
 *             1    R      FROM (rows, width) of int32
 *             2    R      listed: index (1, rows) of uint32
 *             -2   RW     ARG (any, width) of int32
 *             -1   RW     Z (any, width) */
static void merge_largest_cpu(void *buffers[], void *argument)
{
    const struct merge_argument *arg = argument;
    void **out = buffers + 2 + arg->listed;
    const struct sl_rows x = sl_rows_buffer(buffers[0]), z = sl_rows_buffer(out[1]),
                         sent = sl_rows_at(&x, arg->first, 0);
    const struct sl_dense from = sl_dense_buffer(buffers[1]), to = sl_dense_buffer(out[0]);
    const uint32_t *index = arg->listed ? sl_raw_buffer(buffers[2]) : NULL;
    sl_kernel_merge_largest(arg->rows, to.cols, index ? index + arg->first : NULL, &sent,
                            (const int32_t *)from.data + arg->first * from.ld, from.ld, &z,
                            (int32_t *)to.data, to.ld);
}

SL_CODELET_ANY(merge_largest, 0xB8860B);

void sl_submit_merge_largest(struct sl_runtime *rt, const struct sl_merge_tiles *tiles)
{
    const struct merge_argument arg = {
        .first = tiles->first, .rows = tiles->rows, .listed = tiles->index != NULL};
    struct sl_task task = {
        .codelet = &merge_largest_codelet,
        .count = 2,
        .tiles = {tiles->x, tiles->from},
        .output = SL_TASK_UPDATES,
        .before_output = SL_TASK_UPDATES,
        .argument = &arg,
        .argument_size = sizeof arg,
        .urgency = SL_TASK_SOON,
        .work = (double)tiles->rows * (double)tiles->z->cols,
        .kind = tiles->index != NULL,
    };
    if (tiles->index)
        task.tiles[task.count++] = tiles->index;
    task.tiles[task.count++] = tiles->arg;
    task.tiles[task.count++] = tiles->z;
    sl_task_submit(rt, &task);
}
