/* The tasks of graph attention. */
#include "codelets/attention.h"

#include "codelets/codelet.h"

/* ---- Tasks ---- */

/* attention
 *   argument  struct attention_argument
 *   buffers   0    R      A, sparse tile (rows, cols)
 *             1    R      PROJECTED (cols)
 *             2    R      SCORES (rows)
 *             3    R      has_edges: EDGE (features)
 *             -1   W/RW   STATE (rows) */
static void attention_cpu(void *buffers[], void *argument)
{
    const struct attention_argument *arg = argument;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_floats_at projected = sl_floats_buffer(buffers[1]),
                              scores = sl_floats_buffer(buffers[2]),
                              edge = sl_floats_buffer(buffers[3]),
                              state = sl_floats_buffer(buffers[3 + arg->has_edges]);
    sl_kernel_attention(&arg->attention, &a, &projected, &scores, arg->has_edges ? &edge : NULL,
                        arg->accumulate, &state);
}

/* attention_merge
 *   argument  struct attention_merge_argument
 *   buffers   0    R      OTHER (any)
 *             1    R      listed: index (1, any) of uint32
 *             -1   RW     STATE (any) */
static void attention_merge_cpu(void *buffers[], void *argument)
{
    const struct attention_merge_argument *arg = argument;
    const struct sl_floats_at tile = sl_floats_buffer(buffers[0]),
                              state = sl_floats_buffer(buffers[1 + arg->listed]),
                              other = {tile.data + arg->first * tile.ld, tile.ld};
    const uint32_t *index = arg->listed ? sl_raw_buffer(buffers[1]) : NULL;
    sl_kernel_attention_merge(&arg->attention, arg->rows, index ? index + arg->first : NULL, &other,
                              &state);
}

/* attention_close
 *   argument  struct sl_attention
 *   buffers   0    RW     SCORES (rows)
 *             1    RW     STATE (rows) */
static void attention_close_cpu(void *buffers[], void *argument)
{
    const struct sl_floats_at scores = sl_floats_buffer(buffers[0]),
                              state = sl_floats_buffer(buffers[1]);
    sl_kernel_attention_close(argument, sl_dense_buffer(buffers[1]).rows, &scores, &state);
}

/* attention_back
 *   argument  struct attention_argument
 *   buffers   0    R      Aᵀ, sparse tile (rows, cols)
 *             1    R      GRADIENT (cols)
 *             2    R      SCORES (cols)
 *             3    R      PROJECTED (rows)
 *             4    R      has_edges: EDGE (features)
 *             5    W/RW   has_edges: EDGE_BACK (features)
 *             -1   W/RW   BACK (rows) */
static void attention_back_cpu(void *buffers[], void *argument)
{
    const struct attention_argument *arg = argument;
    const struct sl_sparse at = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_floats_at gradient = sl_floats_buffer(buffers[1]),
                              scores = sl_floats_buffer(buffers[2]),
                              projected = sl_floats_buffer(buffers[3]),
                              edge = sl_floats_buffer(buffers[4]),
                              back = sl_floats_buffer(buffers[arg->has_edges ? 6 : 4]);
    struct sl_floats_at edge_back = {0};
    if (arg->has_edges)
        edge_back = sl_floats_buffer(buffers[5]);
    sl_kernel_attention_back(&arg->attention, &at, &gradient, &scores, &projected,
                             arg->has_edges ? &edge : NULL, arg->accumulate, &back,
                             arg->edge_accumulate, arg->has_edges ? &edge_back : NULL);
}

SL_CODELET_ANY(attention, 0x6A5ACD);
SL_CODELET_ANY(attention_merge, 0x483D8B);
SL_CODELET(attention_close, 0x7B68EE, 2, STARPU_RW, STARPU_RW);
SL_CODELET_ANY(attention_back, 0x9370DB);

/* Submit a walk. `task` has its tiles, `arg` all but the attention and the shape. */
static void submit_walk(struct sl_runtime *rt, const struct sl_attention *attention,
                        const struct sl_sparse_shape *shape, struct attention_argument arg,
                        struct sl_task task)
{
    const double features = arg.has_edges ? (double)shape->edge_features : 0.0;
    arg.attention = *attention;
    arg.shape = *shape;
    task.output = arg.accumulate ? SL_TASK_UPDATES : SL_TASK_WRITES;
    task.argument = &arg;
    task.argument_size = sizeof arg;
    task.urgency = SL_TASK_SOON;
    task.work =
        (double)shape->nnz * ((double)sl_attention_all(attention) + features * attention->heads);
    task.kind =
        arg.accumulate | shape->has_values << 1 | attention->training << 2 | arg.has_edges << 3;
    sl_task_submit(rt, &task);
}

void sl_submit_attention(struct sl_runtime *rt, const struct sl_attention *attention,
                         const struct sl_attention_tiles *t)
{
    struct sl_task task = {
        .codelet = &attention_codelet, .count = 3, .tiles = {&t->a->tile, t->projected, t->scores}};
    if (t->edge)
        task.tiles[task.count++] = t->edge;
    task.tiles[task.count++] = t->state;
    submit_walk(rt, attention, &t->a->shape,
                (struct attention_argument){.accumulate = t->accumulate, .has_edges = t->edge},
                task);
}

void sl_submit_attention_back(struct sl_runtime *rt, const struct sl_attention *attention,
                              const struct sl_attention_back_tiles *t)
{
    struct sl_task task = {.codelet = &attention_back_codelet,
                           .count = 4,
                           .tiles = {&t->a->tile, t->gradient, t->scores, t->projected}};
    if (t->edge) {
        task.tiles[task.count++] = t->edge;
        task.tiles[task.count++] = t->edge_back;
        task.before_output = t->edge_accumulate ? SL_TASK_UPDATES : SL_TASK_WRITES;
    }
    task.tiles[task.count++] = t->back;
    submit_walk(rt, attention, &t->a->shape,
                (struct attention_argument){.accumulate = t->accumulate,
                                            .has_edges = t->edge,
                                            .edge_accumulate = t->edge_accumulate},
                task);
}

void sl_submit_attention_merge(struct sl_runtime *rt, const struct sl_attention *attention,
                               const struct sl_attention_merge_tiles *t)
{
    const struct attention_merge_argument arg = {*attention, t->first, t->rows, t->index != NULL};
    struct sl_task task = {
        .codelet = &attention_merge_codelet,
        .count = 1,
        .tiles = {t->other},
        .output = SL_TASK_UPDATES,
        .argument = &arg,
        .argument_size = sizeof arg,
        .urgency = SL_TASK_SOON,
        .work = (double)t->rows * (double)t->state->cols,
        .kind = t->index != NULL,
    };
    if (t->index)
        task.tiles[task.count++] = t->index;
    task.tiles[task.count++] = t->state;
    sl_task_submit(rt, &task);
}

void sl_submit_attention_close(struct sl_runtime *rt, const struct sl_attention *attention,
                               struct sl_tile *scores, struct sl_tile *state)
{
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &attention_close_codelet,
                           .count = 2,
                           .tiles = {scores, state},
                           .argument = attention,
                           .argument_size = sizeof *attention,
                           .urgency = SL_TASK_SOON,
                           .work = (double)state->rows * (double)state->cols,
                       });
}
