/* Rows that travel: copy rows of tiles into one buffer, and rows of a buffer into tiles. */
#include <stdlib.h>

#include "codelets/codelet.h"
#include "codelets/pack_rows.h"
#include "core/error.h"

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
