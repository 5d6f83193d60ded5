#include "codelets/max.h"

#include "codelets/codelet.h"

/* ---- Tasks ---- */

static struct sl_numbering vertices_of(const struct max_argument *arg, void *buffer)
{
    return (struct sl_numbering){arg->first, arg->listed ? sl_raw_buffer(buffer) : NULL};
}

static struct sl_argmax argmax_of(void *buffer, int64_t first, float sign)
{
    const struct sl_dense tile = sl_dense_buffer(buffer);
    return (struct sl_argmax){(int32_t *)sl_raw_buffer(buffer) + first * tile.ld, tile.ld, sign};
}

/* max
 *   argument  struct max_argument
 *   buffers   0    R      A, sparse tile (rows, cols)
 *             1    R      H (cols, width)
 *             2    R      listed: VERTICES (any, cols) of int32, row 0: vertices of the columns
 *             -2   W/RW   ARGMAX (rows, width) of int32
 *             -1   W/RW   Z (rows, width) */
static void max_cpu(void *buffers[], void *argument)
{
    const struct max_argument *arg = argument;
    void **out = buffers + 2 + arg->listed;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_rows h = sl_rows_buffer(buffers[1]), z = sl_rows_buffer(out[1]);
    const struct sl_argmax argmax = argmax_of(out[0], 0, arg->sign);
    const struct sl_numbering columns = vertices_of(arg, buffers[2]);
    sl_kernel_max(&a, sl_dense_buffer(out[0]).cols, &h, arg->accumulate, &z, &columns, &argmax);
}

/* max_merge
 *   argument  struct max_merge_argument
 *   buffers   0    R      X (any, width)
 *             1    R      FROM (any, width) of int32
 *             2    R      listed: index (1, any) of uint32
 *             -2   RW     ARGMAX (any, width) of int32
 *             -1   RW     Z (any, width) */
static void max_merge_cpu(void *buffers[], void *argument)
{
    const struct max_merge_argument *arg = argument;
    void **out = buffers + 2 + arg->listed;
    const struct sl_rows x = sl_rows_buffer(buffers[0]), z = sl_rows_buffer(out[1]),
                         sent = sl_rows_at(&x, arg->first, 0);
    const struct sl_argmax from = argmax_of(buffers[1], arg->first, arg->sign),
                           argmax = argmax_of(out[0], 0, arg->sign);
    const uint32_t *index = arg->listed ? sl_raw_buffer(buffers[2]) : NULL;
    sl_kernel_max_merge(arg->rows, sl_dense_buffer(out[0]).cols, index ? index + arg->first : NULL,
                        &sent, &from, &z, &argmax);
}

/* max_back
 *   argument  struct max_argument
 *   buffers   0    R      Aᵀ, sparse tile (rows, cols)
 *             1    R      G (cols, width)
 *             2    R      ARGMAX (cols, width) of int32
 *             3    R      listed: VERTICES (any, rows) of int32, row 0: vertices of the rows
 *             -1   W/RW   DH (rows, width) */
static void max_back_cpu(void *buffers[], void *argument)
{
    const struct max_argument *arg = argument;
    void *out = buffers[3 + arg->listed];
    const struct sl_sparse at = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_rows g = sl_rows_buffer(buffers[1]), dh = sl_rows_buffer(out);
    const struct sl_argmax argmax = argmax_of(buffers[2], 0, arg->sign);
    const struct sl_numbering rows = vertices_of(arg, buffers[3]);
    sl_kernel_max_back(&at, sl_dense_buffer(out).cols, &g, &rows, &argmax, arg->accumulate, &dh);
}

SL_CODELET_ANY(max, 0xDAA520);
SL_CODELET_ANY(max_merge, 0xB8860B);
SL_CODELET_ANY(max_back, 0xCD853F);

static float sign_of(bool minimum)
{
    return minimum ? -1.0f : 1.0f;
}

static void submit(struct sl_runtime *rt, const struct sl_max_tiles *tiles, struct sl_task task)
{
    const struct max_argument arg = {
        .shape = tiles->a->shape,
        .accumulate = tiles->accumulate,
        .listed = tiles->vertices != NULL,
        .first = (int32_t)tiles->first,
        .sign = sign_of(tiles->minimum),
    };
    task.tiles[task.count++] = tiles->z;
    task.output = tiles->accumulate ? SL_TASK_UPDATES : SL_TASK_WRITES;
    task.argument = &arg;
    task.argument_size = sizeof arg;
    task.urgency = SL_TASK_SOON;
    task.work = (double)arg.shape.nnz * (double)tiles->z->cols;
    task.kind = arg.accumulate | arg.shape.has_values << 1;
    sl_task_submit(rt, &task);
}

void sl_submit_max(struct sl_runtime *rt, const struct sl_max_tiles *t)
{
    struct sl_task task = {.codelet = &max_codelet, .count = 2, .tiles = {&t->a->tile, t->h}};
    if (t->vertices)
        task.tiles[task.count++] = t->vertices;
    task.tiles[task.count++] = t->argmax;
    task.before_output = t->accumulate ? SL_TASK_UPDATES : SL_TASK_WRITES;
    submit(rt, t, task);
}

void sl_submit_max_back(struct sl_runtime *rt, const struct sl_max_tiles *t)
{
    struct sl_task task = {
        .codelet = &max_back_codelet, .count = 3, .tiles = {&t->a->tile, t->h, t->argmax}};
    if (t->vertices)
        task.tiles[task.count++] = t->vertices;
    submit(rt, t, task);
}

void sl_submit_max_merge(struct sl_runtime *rt, const struct sl_max_merge_tiles *t)
{
    const struct max_merge_argument arg = {
        .first = t->first,
        .rows = t->rows,
        .listed = t->index != NULL,
        .sign = sign_of(t->minimum),
    };
    struct sl_task task = {
        .codelet = &max_merge_codelet,
        .count = 2,
        .tiles = {t->x, t->from},
        .output = SL_TASK_UPDATES,
        .before_output = SL_TASK_UPDATES,
        .argument = &arg,
        .argument_size = sizeof arg,
        .urgency = SL_TASK_SOON,
        .work = (double)t->rows * (double)t->z->cols,
        .kind = t->index != NULL,
    };
    if (t->index)
        task.tiles[task.count++] = t->index;
    task.tiles[task.count++] = t->argmax;
    task.tiles[task.count++] = t->z;
    sl_task_submit(rt, &task);
}
