/* The parts of pair attention in which rows do not meet: each task reads its operands once. */
#include "codelets/pair.h"

#include "codelets/codelet.h"

void sl_kernel_pair_output(const struct sl_pair *pair, int64_t rows, bool mean,
                           const struct sl_floats_at *state, const struct sl_epilogue *epilogue,
                           const struct sl_rows *z)
{
    float joined[SL_ATTENTION_COLUMNS];
    const int64_t out = mean ? pair->width : sl_pair_columns(pair);
    const bool whole = !mean && pair->width == pair->attention.width;
    const int64_t at_once = whole ? rows : SL_ATTENTION_COLUMNS / out;
    for (int64_t r = 0, count; r < rows; r += count) {
        const struct sl_floats_at from = {state->data + r * state->ld, state->ld};
        const struct sl_epilogue e = sl_epilogue_at(epilogue, r, 0);
        const struct sl_rows to = sl_rows_at(z, r, 0);
        count = rows - r < at_once ? rows - r : at_once;
        struct sl_rows sum = sl_float_rows(from.data, from.ld);
        if (!whole) {
            sl_kernel_pair_heads(pair, count, mean, &from, out, joined);
            sum = sl_float_rows(joined, out);
        }
        sl_epilogue_rows(&e, 0, count, out, &sum, &to);
    }
}

/* Return the rows from row r on. */
static struct sl_floats_at rows_of(void *buffer, int64_t r)
{
    const struct sl_floats_at tile = sl_floats_buffer(buffer);
    return (struct sl_floats_at){tile.data + r * tile.ld, tile.ld};
}

/* ---- Parameters ---- */

/* pair_weights
 *   argument  struct pair_weights_argument
 *   buffers   0 R     PARAMETERS
 *             1 RW    WEIGHTS, which other parts share
 *             2 RW    VECTORS */
static void pair_weights_cpu(void *buffers[], void *argument)
{
    const struct pair_weights_argument *arg = argument;
    const struct sl_floats_at parameters = sl_floats_buffer(buffers[0]),
                              weights = sl_floats_buffer(buffers[1]),
                              vectors = sl_floats_buffer(buffers[2]);
    sl_kernel_pair_weights(&arg->pair, &arg->shape, &parameters, &weights, &vectors);
}

/* pair_weights_back
 *   argument  struct pair_weights_argument
 *   buffers   0 R     PARAMETERS
 *             1 R     GRADIENT of the weights
 *             2 W     BACK; RW for a further part */
static void pair_weights_back_cpu(void *buffers[], void *argument)
{
    const struct pair_weights_argument *arg = argument;
    const struct sl_floats_at parameters = sl_floats_buffer(buffers[0]),
                              gradient = sl_floats_buffer(buffers[1]),
                              back = sl_floats_buffer(buffers[2]);
    sl_kernel_pair_weights_back(&arg->pair, &arg->shape, &parameters, &gradient, arg->further,
                                &back);
}

SL_CODELET(pair_weights, 0x2E8B57, 3, STARPU_R, STARPU_RW, STARPU_RW);
SL_CODELET_ANY(pair_weights_back, 0x3CB371);

/* ---- Rows ---- */

/* pair_ends
 *   argument  struct pair_weights_argument
 *   buffers   0 R     row scales
 *             1 R     PARAMETERS
 *             2 R     VECTORS
 *             3 R     PROJECTED
 *             4 W     SOURCE
 *             5 W     TARGET */
static void pair_ends_cpu(void *buffers[], void *argument)
{
    const struct pair_weights_argument *arg = argument;
    const struct sl_floats_at parameters = sl_floats_buffer(buffers[1]),
                              vectors = sl_floats_buffer(buffers[2]),
                              projected = sl_floats_buffer(buffers[3]),
                              source = sl_floats_buffer(buffers[4]),
                              target = sl_floats_buffer(buffers[5]);
    sl_kernel_pair_ends(&arg->pair, &arg->shape, sl_dense_buffer(buffers[3]).rows,
                        sl_vertices(buffers[0]), &parameters, &projected, &vectors, &source,
                        &target);
}

/* pair_output
 *   argument  struct pair_rows_argument
 *   buffers   0 R     STATE
 *             …       of the epilogue
 *             -1 W    Z */
static void pair_output_cpu(void *buffers[], void *argument)
{
    const struct pair_rows_argument *arg = argument;
    struct sl_epilogue epilogue;
    const int used = sl_epilogue_buffers(&arg->epilogue, buffers + 1, &epilogue);
    const struct sl_floats_at state = sl_floats_buffer(buffers[0]);
    const struct sl_rows z = sl_rows_buffer(buffers[1 + used]);
    sl_kernel_pair_output(&arg->pair, sl_dense_buffer(buffers[0]).rows, arg->mean, &state,
                          &epilogue, &z);
}

/* pair_gradient
 *   argument  struct pair_rows_argument
 *   buffers   0 R     VECTORS
 *             1 R     g
 *             2 R     STATE
 *             3 W     GRADIENT */
static void pair_gradient_cpu(void *buffers[], void *argument)
{
    const struct pair_rows_argument *arg = argument;
    const struct sl_rows g = sl_rows_buffer(buffers[1]);
    const struct sl_floats_at vectors = sl_floats_buffer(buffers[0]),
                              state = sl_floats_buffer(buffers[2]),
                              gradient = sl_floats_buffer(buffers[3]);
    sl_kernel_pair_gradient(&arg->pair, sl_dense_buffer(buffers[2]).rows, arg->mean, &g, &state,
                            &vectors, &gradient);
}

/* pair_join
 *   argument  struct pair_rows_argument
 *   buffers   0 R     VECTORS
 *             1 R     TARGET_BACK
 *             2 R     SOURCE_BACK, unless it is PROJECTED
 *             -1 W/RW PROJECTED */
static void pair_join_cpu(void *buffers[], void *argument)
{
    const struct pair_rows_argument *arg = argument;
    void *const last = buffers[2 + !arg->in_place];
    const struct sl_floats_at vectors = sl_floats_buffer(buffers[0]),
                              target_back = sl_floats_buffer(buffers[1]),
                              source_back = sl_floats_buffer(buffers[2]),
                              projected = sl_floats_buffer(last);
    sl_kernel_pair_join(&arg->pair, sl_dense_buffer(last).rows, &vectors, &target_back,
                        &source_back, &projected);
}

/* pair_vector_back
 *   argument  struct pair_rows_argument
 *   buffers   0 R     SOURCE
 *             1 R     TARGET
 *             2 R     TARGET_BACK
 *             3 R     SOURCE_BACK
 *             4 W     GRADIENT (> row, …), of which one row is written */
static void pair_vector_back_cpu(void *buffers[], void *argument)
{
    const struct pair_rows_argument *arg = argument;
    const struct sl_floats_at source = sl_floats_buffer(buffers[0]),
                              target = sl_floats_buffer(buffers[1]),
                              target_back = sl_floats_buffer(buffers[2]),
                              source_back = sl_floats_buffer(buffers[3]),
                              gradient = sl_floats_buffer(buffers[4]);
    sl_kernel_pair_vector_back(&arg->pair, sl_dense_buffer(buffers[0]).rows, &source, &target,
                               &target_back, &source_back, gradient.data + arg->row * gradient.ld);
}

/* pair_edges_back
 *   argument  struct pair_rows_argument
 *   buffers   0 R     TARGET
 *             1 R     GRADIENT
 *             2 R     TARGET_BACK
 *             3 R     STATE
 *             4 W     BACK (>= row + K, …), of which K rows are written */
static void pair_edges_back_cpu(void *buffers[], void *argument)
{
    const struct pair_rows_argument *arg = argument;
    const struct sl_floats_at target = sl_floats_buffer(buffers[0]),
                              gradient = sl_floats_buffer(buffers[1]),
                              target_back = sl_floats_buffer(buffers[2]),
                              state = sl_floats_buffer(buffers[3]),
                              back = rows_of(buffers[4], arg->row);
    sl_kernel_pair_edges_back(&arg->pair, sl_dense_buffer(buffers[0]).rows, &target, &gradient,
                              &target_back, &state, &back);
}

/* pair_edges_paste
 *   argument  struct pair_rows_argument
 *   buffers   0 R     SUMS
 *             1 RW    BACK (>= row + K, …), of which K rows are written */
static void pair_edges_paste_cpu(void *buffers[], void *argument)
{
    const struct pair_rows_argument *arg = argument;
    const struct sl_floats_at sums = sl_floats_buffer(buffers[0]),
                              back = rows_of(buffers[1], arg->row);
    sl_kernel_pair_edges_paste(&arg->pair, &sums, &back);
}

SL_CODELET(pair_ends, 0x66CDAA, 6, STARPU_R, STARPU_R, STARPU_R, STARPU_R, STARPU_W, STARPU_W);
SL_CODELET_ANY(pair_output, 0x8FBC8F);
SL_CODELET(pair_gradient, 0x20B2AA, 4, STARPU_R, STARPU_R, STARPU_R, STARPU_W);
SL_CODELET_ANY(pair_join, 0x008B8B);
SL_CODELET(pair_vector_back, 0x5F9EA0, 5, STARPU_R, STARPU_R, STARPU_R, STARPU_R, STARPU_W);
SL_CODELET(pair_edges_back, 0x4682B4, 5, STARPU_R, STARPU_R, STARPU_R, STARPU_R, STARPU_W);
SL_CODELET(pair_edges_paste, 0x87CEEB, 2, STARPU_R, STARPU_RW);

/* ---- Submissions ---- */

static double size_of(const struct sl_tile *tile)
{
    return (double)tile->rows * (double)tile->cols;
}

void sl_submit_pair_weights(struct sl_runtime *rt, const struct sl_pair *pair,
                            const struct sl_pair_shape *shape, struct sl_tile *parameters,
                            struct sl_tile *weights, struct sl_tile *vectors)
{
    const struct pair_weights_argument arg = {*pair, *shape, false};
    sl_task_submit(rt, &(struct sl_task){.codelet = &pair_weights_codelet,
                                         .count = 3,
                                         .tiles = {parameters, weights, vectors},
                                         .argument = &arg,
                                         .argument_size = sizeof arg,
                                         .urgency = SL_TASK_SOON,
                                         .work = size_of(weights)});
}

void sl_submit_pair_weights_back(struct sl_runtime *rt, const struct sl_pair *pair,
                                 const struct sl_pair_shape *shape, bool further,
                                 struct sl_tile *parameters, struct sl_tile *gradient,
                                 struct sl_tile *back)
{
    const struct pair_weights_argument arg = {*pair, *shape, further};
    sl_task_submit(rt, &(struct sl_task){.codelet = &pair_weights_back_codelet,
                                         .count = 3,
                                         .tiles = {parameters, gradient, back},
                                         .output = further ? SL_TASK_UPDATES : SL_TASK_WRITES,
                                         .argument = &arg,
                                         .argument_size = sizeof arg,
                                         .urgency = SL_TASK_LATER,
                                         .work = size_of(back)});
}

void sl_submit_pair_ends(struct sl_runtime *rt, const struct sl_pair *pair,
                         const struct sl_pair_shape *shape, struct sl_tile *scales,
                         struct sl_tile *parameters, struct sl_tile *vectors,
                         struct sl_tile *projected, struct sl_tile *source, struct sl_tile *target)
{
    const struct pair_weights_argument arg = {*pair, *shape, false};
    sl_task_submit(
        rt, &(struct sl_task){.codelet = &pair_ends_codelet,
                              .count = 6,
                              .tiles = {scales, parameters, vectors, projected, source, target},
                              .argument = &arg,
                              .argument_size = sizeof arg,
                              .urgency = SL_TASK_SOON,
                              .work = size_of(projected)});
}

void sl_submit_pair_output(struct sl_runtime *rt, const struct sl_pair *pair, bool mean,
                           const struct sl_epilogue_tiles *epilogue, struct sl_tile *state,
                           struct sl_tile *z)
{
    struct pair_rows_argument arg = {.pair = *pair, .mean = mean};
    struct sl_task task = {.codelet = &pair_output_codelet,
                           .count = 1,
                           .tiles = {state},
                           .output = SL_TASK_WRITES,
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .urgency = SL_TASK_SOON,
                           .work = size_of(z)};
    task.count += sl_epilogue_pack(epilogue, z, &arg.epilogue, task.tiles + 1);
    task.kind = sl_epilogue_kind(&arg.epilogue);
    task.tiles[task.count++] = z;
    sl_task_submit(rt, &task);
}

void sl_submit_pair_gradient(struct sl_runtime *rt, const struct sl_pair *pair, bool mean,
                             struct sl_tile *vectors, struct sl_tile *g, struct sl_tile *state,
                             struct sl_tile *gradient)
{
    const struct pair_rows_argument arg = {.pair = *pair, .mean = mean};
    sl_task_submit(rt, &(struct sl_task){.codelet = &pair_gradient_codelet,
                                         .count = 4,
                                         .tiles = {vectors, g, state, gradient},
                                         .argument = &arg,
                                         .argument_size = sizeof arg,
                                         .urgency = SL_TASK_SOON,
                                         .work = size_of(gradient)});
}

void sl_submit_pair_join(struct sl_runtime *rt, const struct sl_pair *pair, struct sl_tile *vectors,
                         struct sl_tile *target_back, struct sl_tile *source_back,
                         struct sl_tile *projected)
{
    const struct pair_rows_argument arg = {.pair = *pair, .in_place = source_back == projected};
    sl_task_submit(rt, &(struct sl_task){.codelet = &pair_join_codelet,
                                         .count = arg.in_place ? 3 : 4,
                                         .tiles = {vectors, target_back, source_back, projected},
                                         .output = arg.in_place ? SL_TASK_UPDATES : SL_TASK_WRITES,
                                         .argument = &arg,
                                         .argument_size = sizeof arg,
                                         .urgency = SL_TASK_SOON,
                                         .work = size_of(projected)});
}

void sl_submit_pair_vector_back(struct sl_runtime *rt, const struct sl_pair *pair,
                                struct sl_tile *source, struct sl_tile *target,
                                struct sl_tile *target_back, struct sl_tile *source_back,
                                int64_t row, struct sl_tile *gradient)
{
    const struct pair_rows_argument arg = {.pair = *pair, .row = row};
    sl_task_submit(rt,
                   &(struct sl_task){.codelet = &pair_vector_back_codelet,
                                     .count = 5,
                                     .tiles = {source, target, target_back, source_back, gradient},
                                     .argument = &arg,
                                     .argument_size = sizeof arg,
                                     .urgency = SL_TASK_LATER,
                                     .work = size_of(source)});
}

void sl_submit_pair_edges_back(struct sl_runtime *rt, const struct sl_pair *pair,
                               struct sl_tile *target, struct sl_tile *gradient,
                               struct sl_tile *target_back, struct sl_tile *state, int64_t row,
                               struct sl_tile *back)
{
    const struct pair_rows_argument arg = {.pair = *pair, .row = row};
    sl_task_submit(rt, &(struct sl_task){.codelet = &pair_edges_back_codelet,
                                         .count = 5,
                                         .tiles = {target, gradient, target_back, state, back},
                                         .argument = &arg,
                                         .argument_size = sizeof arg,
                                         .urgency = SL_TASK_LATER,
                                         .work = size_of(target) * (double)pair->edges});
}

void sl_submit_pair_edges_paste(struct sl_runtime *rt, const struct sl_pair *pair,
                                struct sl_tile *sums, int64_t row, struct sl_tile *back)
{
    const struct pair_rows_argument arg = {.pair = *pair, .row = row};
    sl_task_submit(rt, &(struct sl_task){.codelet = &pair_edges_paste_codelet,
                                         .count = 2,
                                         .tiles = {sums, back},
                                         .argument = &arg,
                                         .argument_size = sizeof arg,
                                         .urgency = SL_TASK_LATER,
                                         .work = size_of(sums)});
}
