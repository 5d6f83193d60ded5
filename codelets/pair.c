/* The walks of attention whose scores need both ends' rows, and the merging and closing of states.
 */
#include "codelets/pair.h"

#include "codelets/codelet.h"

/* ---- Walks ---- */

/* pair
 *   argument  struct pair_argument
 *   buffers   0 R     A, sparse tile (rows, cols)
 *             1 R     VECTORS
 *             2 R     SOURCE (cols)
 *             3 R     TARGET (rows)
 *             4 W/RW  STATE (rows) */
static void pair_cpu(void *buffers[], void *argument)
{
    const struct pair_argument *arg = argument;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_floats_at vectors = sl_floats_buffer(buffers[1]),
                              source = sl_floats_buffer(buffers[2]),
                              target = sl_floats_buffer(buffers[3]),
                              state = sl_floats_buffer(buffers[4]);
    sl_kernel_pair(&arg->pair, &a, &vectors, &source, &target, arg->accumulate, &state);
}

/* pair_again
 *   argument  struct pair_argument
 *   buffers   0 R     A, sparse tile (rows, cols)
 *             1 R     VECTORS
 *             2 R     SOURCE (cols)
 *             3 R     TARGET (rows)
 *             4 R     GRADIENT (rows)
 *             … W/RW  has_edge_back: EDGE_BACK (K)
 *             -1 W/RW TARGET_BACK (rows) */
static void pair_again_cpu(void *buffers[], void *argument)
{
    const struct pair_argument *arg = argument;
    const struct sl_sparse a = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_floats_at vectors = sl_floats_buffer(buffers[1]),
                              source = sl_floats_buffer(buffers[2]),
                              target = sl_floats_buffer(buffers[3]),
                              gradient = sl_floats_buffer(buffers[4]),
                              edge_back = sl_floats_buffer(buffers[5]),
                              back = sl_floats_buffer(buffers[5 + arg->has_edge_back]);
    sl_kernel_pair_again(&arg->pair, &a, &vectors, &source, &target, &gradient, arg->accumulate,
                         &back, arg->edge_accumulate, arg->has_edge_back ? &edge_back : NULL);
}

/* pair_back
 *   argument  struct pair_argument
 *   buffers   0 R     Aᵀ, sparse tile (rows, cols)
 *             1 R     VECTORS
 *             2 R     GRADIENT (cols)
 *             3 R     TARGET (cols)
 *             4 R     SOURCE (rows)
 *             5 W/RW  SOURCE_BACK (rows) */
static void pair_back_cpu(void *buffers[], void *argument)
{
    const struct pair_argument *arg = argument;
    const struct sl_sparse at = sl_sparse_view(sl_raw_buffer(buffers[0]), &arg->shape);
    const struct sl_floats_at vectors = sl_floats_buffer(buffers[1]),
                              gradient = sl_floats_buffer(buffers[2]),
                              target = sl_floats_buffer(buffers[3]),
                              source = sl_floats_buffer(buffers[4]),
                              back = sl_floats_buffer(buffers[5]);
    sl_kernel_pair_back(&arg->pair, &at, &vectors, &gradient, &target, &source, arg->accumulate,
                        &back);
}

/* pair_merge
 *   argument  struct pair_merge_argument
 *   buffers   0    R      OTHER (any)
 *             1    R      listed: index (1, any) of uint32
 *             -1   RW     STATE (any) */
static void pair_merge_cpu(void *buffers[], void *argument)
{
    const struct pair_merge_argument *arg = argument;
    const struct sl_floats_at tile = sl_floats_buffer(buffers[0]),
                              state = sl_floats_buffer(buffers[1 + arg->listed]),
                              other = {tile.data + arg->first * tile.ld, tile.ld};
    const uint32_t *index = arg->listed ? sl_raw_buffer(buffers[1]) : NULL;
    sl_kernel_pair_merge(&arg->pair, arg->rows, index ? index + arg->first : NULL, &other, &state);
}

/* pair_close
 *   argument  struct sl_pair
 *   buffers   0    R      VECTORS
 *             1    RW     TARGET (rows)
 *             2    RW     STATE (rows) */
static void pair_close_cpu(void *buffers[], void *argument)
{
    const struct sl_floats_at vectors = sl_floats_buffer(buffers[0]),
                              target = sl_floats_buffer(buffers[1]),
                              state = sl_floats_buffer(buffers[2]);
    sl_kernel_pair_close(argument, sl_dense_buffer(buffers[2]).rows, &vectors, &target, &state);
}

SL_CODELET_ANY(pair, 0x006400);
SL_CODELET_ANY(pair_again, 0x228B22);
SL_CODELET_ANY(pair_back, 0x32CD32);
SL_CODELET_ANY(pair_merge, 0x6B8E23);
SL_CODELET(pair_close, 0x9ACD32, 3, STARPU_R, STARPU_RW, STARPU_RW);

/* ---- Submissions ---- */

static void submit_walk(struct sl_runtime *rt, const struct sl_pair *pair,
                        const struct sl_pair_tiles *t, struct sl_task task)
{
    const struct pair_argument arg = {*pair, t->a->shape, t->accumulate, t->edge_back != NULL,
                                      t->edge_accumulate};
    if (t->edge_back) {
        task.tiles[task.count++] = t->edge_back;
        task.before_output = t->edge_accumulate ? SL_TASK_UPDATES : SL_TASK_WRITES;
    }
    task.tiles[task.count++] = t->out;
    task.output = t->accumulate ? SL_TASK_UPDATES : SL_TASK_WRITES;
    task.argument = &arg;
    task.argument_size = sizeof arg;
    task.urgency = SL_TASK_SOON;
    task.work = (double)t->a->shape.nnz * (double)sl_pair_all(pair);
    task.kind = t->accumulate | t->a->shape.has_values << 1 | pair->products << 2 |
                (uint32_t)pair->edges << 3;
    sl_task_submit(rt, &task);
}

void sl_submit_pair(struct sl_runtime *rt, const struct sl_pair *pair,
                    const struct sl_pair_tiles *t)
{
    submit_walk(rt, pair, t,
                (struct sl_task){.codelet = &pair_codelet,
                                 .count = 4,
                                 .tiles = {&t->a->tile, t->vectors, t->source, t->target}});
}

void sl_submit_pair_again(struct sl_runtime *rt, const struct sl_pair *pair,
                          const struct sl_pair_tiles *t)
{
    submit_walk(
        rt, pair, t,
        (struct sl_task){.codelet = &pair_again_codelet,
                         .count = 5,
                         .tiles = {&t->a->tile, t->vectors, t->source, t->target, t->gradient}});
}

void sl_submit_pair_back(struct sl_runtime *rt, const struct sl_pair *pair,
                         const struct sl_pair_tiles *t)
{
    submit_walk(
        rt, pair, t,
        (struct sl_task){.codelet = &pair_back_codelet,
                         .count = 5,
                         .tiles = {&t->a->tile, t->vectors, t->gradient, t->target, t->source}});
}

void sl_submit_pair_merge(struct sl_runtime *rt, const struct sl_pair *pair,
                          const struct sl_attention_merge_tiles *t)
{
    const struct pair_merge_argument arg = {*pair, t->first, t->rows, t->index != NULL};
    struct sl_task task = {
        .codelet = &pair_merge_codelet,
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

void sl_submit_pair_close(struct sl_runtime *rt, const struct sl_pair *pair,
                          struct sl_tile *vectors, struct sl_tile *target, struct sl_tile *state)
{
    sl_task_submit(rt, &(struct sl_task){.codelet = &pair_close_codelet,
                                         .count = 3,
                                         .tiles = {vectors, target, state},
                                         .argument = pair,
                                         .argument_size = sizeof *pair,
                                         .urgency = SL_TASK_SOON,
                                         .work = (double)state->rows * (double)state->cols});
}
