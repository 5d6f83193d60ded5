/* A program's reducer of neighbours, a row at a time. */
#include "codelets/own_reduce.h"

#include <string.h>

#include "codelets/codelet.h"

static int64_t column_of(const struct sl_sparse *s, int64_t block, uint32_t e)
{
    return block * s->block_cols + sl_sparse_col(s, e);
}

static float weight_of(const struct sl_sparse *s, uint32_t e)
{
    return s->value ? s->value[e] : 1.0f;
}

static void start(const struct sl_own_reducer *own, int64_t rows, int64_t width,
                  const struct sl_own_states *states)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < width; j++) {
            states->a[r * states->lda + j] = own->of.start[0];
            states->b[r * states->ldb + j] = own->of.start[1];
        }
}

void sl_kernel_own_combine(const struct sl_own_reducer *own, const struct sl_sparse *s,
                           int64_t width, const float *h, int64_t ldh, bool accumulate,
                           const struct sl_own_states *states)
{
    if (!accumulate)
        start(own, s->rows, width, states);
    for (int64_t b = 0; b < s->blocks; b++)
        for (int64_t r = 0; r < s->rows; r++)
            for (uint32_t e = s->row_ptr[b * s->rows + r]; e < s->row_ptr[b * s->rows + r + 1]; e++)
                own->of.combine(own->of.context, width, weight_of(s, e),
                                h + column_of(s, b, e) * ldh, states->a + r * states->lda,
                                states->b + r * states->ldb);
}

void sl_kernel_own_merge(const struct sl_own_reducer *own, int64_t rows, int64_t width,
                         const uint32_t *index, const struct sl_own_states *other,
                         const struct sl_own_states *states)
{
    for (int64_t r = 0; r < rows; r++) {
        const int64_t to = index ? index[r] : r;
        own->of.merge(own->of.context, width, other->a + r * other->lda, other->b + r * other->ldb,
                      states->a + to * states->lda, states->b + to * states->ldb);
    }
}

void sl_kernel_own_finish(const struct sl_own_reducer *own, int64_t rows, int64_t width,
                          const struct sl_own_states *states)
{
    for (int64_t r = 0; r < rows; r++)
        own->of.finish(own->of.context, width, states->a + r * states->lda,
                       states->b + r * states->ldb);
}

void sl_kernel_own_differentiate(const struct sl_own_reducer *own,
                                 const struct sl_own_differentiate *d)
{
    const struct sl_sparse *s = d->st;
    for (int64_t r = 0; r < s->rows && !d->accumulate; r++)
        memset(d->dh + r * d->lddh, 0, (size_t)d->width * sizeof *d->dh);
    for (int64_t b = 0; b < s->blocks; b++)
        for (int64_t r = 0; r < s->rows; r++)
            for (uint32_t e = s->row_ptr[b * s->rows + r]; e < s->row_ptr[b * s->rows + r + 1];
                 e++) {
                const int64_t v = column_of(s, b, e);
                own->of.differentiate(own->of.context, d->width, weight_of(s, e), d->h + r * d->ldh,
                                      d->g + v * d->ldg, d->b + v * d->ldb, d->dh + r * d->lddh);
            }
}

/* ---- Tasks ---- */

static struct sl_own_states states_of(void *a, void *b, int64_t first)
{
    const struct sl_dense of_a = sl_dense_buffer(a), of_b = sl_dense_buffer(b);
    return (struct sl_own_states){of_a.data + first * of_a.ld, of_b.data + first * of_b.ld, of_a.ld,
                                  of_b.ld};
}

/* own_combine
 *   argument  struct own_reduce_argument
 *   buffers   0 R      S, sparse tile (rows, cols)
 *             1 R      H (cols, width)
 *             2 W/RW   B (rows, width)
 *             3 W/RW   A (rows, width) */
static void own_combine_cpu(void *buffers[], void *argument)
{
    const struct own_reduce_argument *arg = argument;
    const struct sl_sparse s = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_dense h = sl_dense_buffer(buffers[1]);
    const struct sl_own_states states = states_of(buffers[3], buffers[2], 0);
    sl_kernel_own_combine(arg->own, &s, h.cols, h.data, h.ld, arg->accumulate, &states);
}

/* own_merge
 *   argument  struct own_reduce_argument
 *   buffers   0   R    other A (any, width)
 *             1   R    other B (any, width)
 *             2   R    listed: index (1, any) of uint32
 *             -2  RW   B (any, width)
 *             -1  RW   A (any, width) */
static void own_merge_cpu(void *buffers[], void *argument)
{
    const struct own_reduce_argument *arg = argument;
    void **out = buffers + 2 + arg->listed;
    const struct sl_own_states other = states_of(buffers[0], buffers[1], arg->first),
                               states = states_of(out[1], out[0], 0);
    const uint32_t *index = arg->listed ? sl_raw_buffer(buffers[2]) : NULL;
    sl_kernel_own_merge(arg->own, arg->rows, sl_dense_buffer(out[1]).cols,
                        index ? index + arg->first : NULL, &other, &states);
}

/* own_finish
 *   argument  struct own_reduce_argument
 *   buffers   0 RW   B (rows, width)
 *             1 RW   A (rows, width) */
static void own_finish_cpu(void *buffers[], void *argument)
{
    const struct own_reduce_argument *arg = argument;
    const struct sl_dense a = sl_dense_buffer(buffers[1]);
    const struct sl_own_states states = states_of(buffers[1], buffers[0], 0);
    sl_kernel_own_finish(arg->own, a.rows, a.cols, &states);
}

/* own_differentiate
 *   argument  struct own_reduce_argument
 *   buffers   0 R      ST, sparse tile (rows, cols)
 *             1 R      G (cols, width)
 *             2 R      B (cols, width)
 *             3 R      H (rows, width)
 *             4 W/RW   DH (rows, width) */
static void own_differentiate_cpu(void *buffers[], void *argument)
{
    const struct own_reduce_argument *arg = argument;
    const struct sl_sparse st = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_dense g = sl_dense_buffer(buffers[1]), b = sl_dense_buffer(buffers[2]),
                          h = sl_dense_buffer(buffers[3]), dh = sl_dense_buffer(buffers[4]);
    sl_kernel_own_differentiate(arg->own,
                                &(struct sl_own_differentiate){.st = &st,
                                                               .width = dh.cols,
                                                               .g = g.data,
                                                               .b = b.data,
                                                               .h = h.data,
                                                               .ldg = g.ld,
                                                               .ldb = b.ld,
                                                               .ldh = h.ld,
                                                               .accumulate = arg->accumulate,
                                                               .dh = dh.data,
                                                               .lddh = dh.ld});
}

SL_HOST_CODELET(own_combine, 0xB8860B, STARPU_VARIABLE_NBUFFERS, 0);
SL_HOST_CODELET(own_merge, 0xDAA520, STARPU_VARIABLE_NBUFFERS, 0);
SL_HOST_CODELET(own_finish, 0xEEE8AA, 2, STARPU_RW, STARPU_RW);
SL_HOST_CODELET(own_differentiate, 0xCD853F, STARPU_VARIABLE_NBUFFERS, 0);

static void submit(struct sl_runtime *rt, struct own_reduce_argument *arg, struct sl_task *task)
{
    task->argument = arg;
    task->argument_size = sizeof *arg;
    task->urgency = SL_TASK_SOON;
    task->kind = arg->own->number;
    sl_task_submit(rt, task);
}

void sl_submit_own_combine(struct sl_runtime *rt, const struct sl_own_reducer *own,
                           const struct sl_own_combine_tiles *t)
{
    const enum sl_task_output access = t->accumulate ? SL_TASK_UPDATES : SL_TASK_WRITES;
    struct own_reduce_argument arg = {
        .own = own, .shape = t->s->shape, .accumulate = t->accumulate};
    submit(rt, &arg,
           &(struct sl_task){.codelet = &own_combine_codelet,
                             .count = 4,
                             .tiles = {&t->s->tile, t->h, t->b, t->a},
                             .before_output = access,
                             .output = access,
                             .work = (double)t->s->shape.nnz * (double)t->a->cols});
}

void sl_submit_own_merge(struct sl_runtime *rt, const struct sl_own_reducer *own,
                         const struct sl_own_merge_tiles *t)
{
    struct own_reduce_argument arg = {
        .own = own, .listed = t->index != NULL, .first = t->first, .rows = t->rows};
    struct sl_task task = {.codelet = &own_merge_codelet,
                           .count = 2,
                           .tiles = {t->other_a, t->other_b},
                           .before_output = SL_TASK_UPDATES,
                           .output = SL_TASK_UPDATES,
                           .work = (double)t->rows * (double)t->a->cols};
    if (t->index)
        task.tiles[task.count++] = t->index;
    task.tiles[task.count++] = t->b;
    task.tiles[task.count++] = t->a;
    submit(rt, &arg, &task);
}

void sl_submit_own_finish(struct sl_runtime *rt, const struct sl_own_reducer *own,
                          struct sl_tile *b, struct sl_tile *a)
{
    struct own_reduce_argument arg = {.own = own};
    submit(rt, &arg,
           &(struct sl_task){.codelet = &own_finish_codelet,
                             .count = 2,
                             .tiles = {b, a},
                             .work = (double)a->rows * (double)a->cols});
}

void sl_submit_own_differentiate(struct sl_runtime *rt, const struct sl_own_reducer *own,
                                 const struct sl_own_differentiate_tiles *t)
{
    struct own_reduce_argument arg = {
        .own = own, .shape = t->st->shape, .accumulate = t->accumulate};
    submit(rt, &arg,
           &(struct sl_task){.codelet = &own_differentiate_codelet,
                             .count = 5,
                             .tiles = {&t->st->tile, t->g, t->b, t->h, t->dh},
                             .output = t->accumulate ? SL_TASK_UPDATES : SL_TASK_WRITES,
                             .work = (double)t->st->shape.nnz * (double)t->dh->cols});
}
