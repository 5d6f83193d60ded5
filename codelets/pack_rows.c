/* Rows that travel: some rows of tiles become one buffer, and rows of a buffer rows of tiles. */
#include <stdlib.h>
#include <string.h>

#include "codelets/bfloat16.h"
#include "codelets/codelet.h"
#include "codelets/pack_rows.h"
#include "codelets/vector.h"
#include "core/error.h"

void sl_kernel_pack_rows(int64_t count, int64_t cols, const uint32_t *index,
                         const struct sl_rows *x, const struct sl_rows *y)
{
    enum { AHEAD = 8 }; /* rows under way */
    const size_t bytes = (size_t)cols * sl_type_size(y->type);
    for (int64_t r = 0; r < count; r++) {
        if (r + AHEAD < count)
            __builtin_prefetch(sl_rows_at(x, index[r + AHEAD], 0).data);
        memcpy(sl_rows_at(y, r, 0).data, sl_rows_at(x, index[r], 0).data, bytes);
    }
}

SL_INLINE void add_rows_body(int64_t count, int64_t cols, const uint32_t *index, const float *x,
                             int64_t ldx, float *y, int64_t ldy)
{
    for (int64_t r = 0; r < count; r++)
        for (int64_t j = 0; j < cols; j++)
            y[index[r] * ldy + j] += x[r * ldx + j];
}

SL_DISPATCH(static, add_rows,
            (int64_t count, int64_t cols, const uint32_t *index, const float *x, int64_t ldx,
             float *y, int64_t ldy),
            (count, cols, index, x, ldx, y, ldy))

static void add_half_rows(int64_t count, int64_t cols, const uint32_t *index, const uint16_t *x,
                          int64_t ldx, uint16_t *y, int64_t ldy)
{
    for (int64_t r = 0; r < count; r++)
        for (int64_t j = 0; j < cols; j++) {
            uint16_t *to = &y[index[r] * ldy + j];
            *to = sl_narrow(sl_widen(*to) + sl_widen(x[r * ldx + j]));
        }
}

void sl_kernel_unpack_rows(int64_t count, int64_t cols, const uint32_t *index, bool accumulate,
                           const struct sl_rows *x, const struct sl_rows *y)
{
    const size_t bytes = (size_t)cols * sl_type_size(y->type);
    if (accumulate && y->type == SL_BFLOAT16)
        add_half_rows(count, cols, index, x->data, x->ld, y->data, y->ld);
    else if (accumulate)
        add_rows(count, cols, index, x->data, x->ld, y->data, y->ld);
    else
        for (int64_t r = 0; r < count; r++)
            memcpy(sl_rows_at(y, index[r], 0).data, sl_rows_at(x, r, 0).data, bytes);
}

/* pack_rows
 *   argument  struct pack_argument
 *   buffers   0      R    index (1, rows) of uint32
 *             tiles  R    X(t) (any, cols)
 *             last   W    Y (rows, cols) */
static void pack_rows_cpu(void *buffers[], void *argument)
{
    const struct pack_argument *arg = argument;
    const uint32_t *index = sl_raw_buffer(buffers[0]);
    const struct sl_rows y = sl_rows_buffer(buffers[1 + arg->tiles]);
    const int64_t cols = STARPU_MATRIX_GET_NX(buffers[1 + arg->tiles]);
    for (int t = 0; t < arg->tiles; t++) {
        const struct sl_rows x = sl_rows_buffer(buffers[1 + t]),
                             to = sl_rows_at(&y, arg->first[t], 0);
        sl_kernel_pack_rows(arg->first[t + 1] - arg->first[t], cols, index + arg->first[t], &x,
                            &to);
    }
}

/* unpack_rows
 *   argument  struct unpack_argument
 *   buffers   0 R     index (1, rows) of uint32
 *             1 R     X (rows, cols)
 *             2 RW    Y (any, cols) */
static void unpack_rows_cpu(void *buffers[], void *argument)
{
    const struct unpack_argument *arg = argument;
    const uint32_t *index = sl_raw_buffer(buffers[0]);
    const struct sl_rows x = sl_rows_buffer(buffers[1]), y = sl_rows_buffer(buffers[2]),
                         from = sl_rows_at(&x, arg->first, 0);
    sl_kernel_unpack_rows(arg->count, STARPU_MATRIX_GET_NX(buffers[2]), index + arg->first,
                          arg->accumulate, &from, &y);
}

SL_CODELET_ANY(pack_rows, 0x778866);
SL_CODELET(unpack_rows, 0x696949, 3, STARPU_R, STARPU_R, STARPU_RW);

void sl_submit_pack_rows(struct sl_runtime *rt, const struct sl_pack_tiles *tiles)
{
    const size_t size =
        offsetof(struct pack_argument, first) + (size_t)(tiles->count + 1) * sizeof(int64_t);
    struct pack_argument *arg = malloc(size);
    struct sl_tile **list = malloc((size_t)(tiles->count + 2) * sizeof *list);
    if (!arg || !list)
        sl_fatal("no memory to pack rows of %d tiles", tiles->count);
    arg->tiles = 0;
    arg->first[0] = 0;
    list[0] = tiles->index;
    for (int t = 0; t < tiles->count; t++)
        if (tiles->first[t + 1] > tiles->first[t]) {
            list[++arg->tiles] = tiles->x[t];
            arg->first[arg->tiles] = tiles->first[t + 1];
        }
    list[1 + arg->tiles] = tiles->y;
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &pack_rows_codelet,
                           .count = 2 + arg->tiles,
                           .output = SL_TASK_WRITES,
                           .before_output = SL_TASK_READS,
                           .list = list,
                           .argument = arg,
                           .argument_size = size,
                           .urgency = SL_TASK_SOON,
                           .work = (double)tiles->y->rows * (double)tiles->y->cols,
                       });
    free(list);
    free(arg);
}

void sl_submit_unpack_rows(struct sl_runtime *rt, const struct sl_unpack_tiles *tiles)
{
    const struct unpack_argument arg = {tiles->first, tiles->rows, tiles->accumulate};
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &unpack_rows_codelet,
                           .count = 3,
                           .tiles = {tiles->index, tiles->x, tiles->y},
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .urgency = SL_TASK_SOON,
                           .work = (double)tiles->rows * (double)tiles->y->cols,
                       });
}
