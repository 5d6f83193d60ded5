/* The tasks of GINE's aggregation. */
#include "codelets/gine.h"

#include "codelets/codelet.h"

/* gine
 *   argument  struct gine_argument
 *   buffers   0    R      A, sparse tile (rows, columns of A)
 *             1    R      X (columns of A, cols)
 *             2    R      EDGE (features + 1, cols)
 *             3    W/RW   OUT (rows, cols) */
static void gine_cpu(void *buffers[], void *argument)
{
    const struct gine_argument *arg = argument;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_floats_at x = sl_floats_buffer(buffers[1]), edge = sl_floats_buffer(buffers[2]),
                              out = sl_floats_buffer(buffers[3]);
    sl_kernel_gine(&a, sl_dense_buffer(buffers[2]).cols, &x, &edge, arg->accumulate, &out);
}

/* gine_back
 *   argument  struct gine_argument
 *   buffers   0    R      Aᵀ, sparse tile (rows, columns of Aᵀ)
 *             1    R      G (columns of Aᵀ, cols)
 *             2    R      X (rows, cols)
 *             3    R      EDGE (features + 1, cols)
 *             4    W/RW   EDGE_BACK (features + 1, cols)
 *             5    W/RW   has_back: BACK (rows, cols) */
static void gine_back_cpu(void *buffers[], void *argument)
{
    const struct gine_argument *arg = argument;
    const struct sl_sparse at = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_floats_at g = sl_floats_buffer(buffers[1]), x = sl_floats_buffer(buffers[2]),
                              edge = sl_floats_buffer(buffers[3]),
                              edge_back = sl_floats_buffer(buffers[4]),
                              back = sl_floats_buffer(buffers[4 + arg->has_back]);
    sl_kernel_gine_back(&at, sl_dense_buffer(buffers[3]).cols, &g, &x, &edge, arg->accumulate,
                        arg->has_back ? &back : NULL, arg->edge_accumulate, &edge_back);
}

SL_CODELET_ANY(gine, 0x2E8B57);
SL_CODELET_ANY(gine_back, 0x3CB371);

static enum sl_task_output access_of(bool accumulate)
{
    return accumulate ? SL_TASK_UPDATES : SL_TASK_WRITES;
}

static void submit(struct sl_runtime *rt, const struct gine_argument *arg, int64_t cols,
                   struct sl_task task)
{
    task.argument = arg;
    task.argument_size = sizeof *arg;
    task.urgency = SL_TASK_SOON;
    task.work = (double)arg->shape.nnz * (double)cols * (double)(arg->shape.edge_features + 2);
    task.kind = arg->accumulate | arg->edge_accumulate << 1 | arg->has_back << 2;
    sl_task_submit(rt, &task);
}

void sl_submit_gine(struct sl_runtime *rt, const struct sl_gine_tiles *t)
{
    const struct gine_argument arg = {.shape = t->a->shape, .accumulate = t->accumulate};
    submit(rt, &arg, t->edge->cols,
           (struct sl_task){.codelet = &gine_codelet,
                            .count = 4,
                            .output = access_of(t->accumulate),
                            .tiles = {&t->a->tile, t->x, t->edge, t->out}});
}

void sl_submit_gine_back(struct sl_runtime *rt, const struct sl_gine_back_tiles *t)
{
    const struct gine_argument arg = {.shape = t->a->shape,
                                      .accumulate = t->accumulate,
                                      .edge_accumulate = t->edge_accumulate,
                                      .has_back = t->back != NULL};
    struct sl_task task = {.codelet = &gine_back_codelet,
                           .count = 5,
                           .output = access_of(t->edge_accumulate),
                           .tiles = {&t->a->tile, t->g, t->x, t->edge, t->edge_back}};
    if (t->back) {
        task.before_output = task.output;
        task.output = access_of(t->accumulate);
        task.tiles[task.count++] = t->back;
    }
    submit(rt, &arg, t->edge->cols, task);
}
