/* The parts of graph attention in which rows do not meet: each task reads its operands once. */
#include "codelets/attention_rows.h"

#include <string.h>

#include "codelets/codelet.h"

static float *row_at(const struct sl_floats_at *of, int64_t r)
{
    return of->data + r * of->ld;
}

/* ---- Rows ---- */

void sl_kernel_attention_scores(const struct sl_attention *attention, int64_t rows,
                                const uint32_t *vertex, const struct sl_floats_at *projected,
                                const struct sl_floats_at *scores)
{
    const int64_t all = sl_attention_all(attention), heads = attention->heads;
    for (int64_t r = 0; r < rows; r++) {
        float *const s = row_at(projected, r) + all + heads, *const to = row_at(scores, r);
        memcpy(to, s, (size_t)heads * sizeof *to);
        memset(to + heads, 0, (size_t)heads * sizeof *to);
        const uint32_t bits = vertex[r] ^ SL_ATTENTION_VERTEX;
        memcpy(to + 2 * heads, &bits, sizeof bits);
        memcpy(s, &bits, sizeof bits);
    }
}

/* Set X (rows, F) to the mean of the heads in `rows` rows of Z. */
static void average(const struct sl_attention *attention, int64_t rows,
                    const struct sl_floats_at *state, float *restrict x)
{
    const float share = 1.0f / (float)attention->heads;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < attention->width; j++) {
            const float *const z = row_at(state, r) + j;
            float sum = 0.0f;
            for (int64_t h = 0; h < attention->heads; h++)
                sum += z[h * attention->width];
            x[r * attention->width + j] = share * sum;
        }
}

void sl_kernel_attention_output(const struct sl_attention *attention, int64_t rows, int64_t out,
                                const struct sl_floats_at *state,
                                const struct sl_epilogue *epilogue, const struct sl_rows *z)
{
    float mean[SL_ATTENTION_COLUMNS];
    const int64_t at_once = out == sl_attention_all(attention) ? rows : SL_ATTENTION_COLUMNS / out;
    for (int64_t r = 0, count; r < rows; r += count) {
        const struct sl_floats_at from = {row_at(state, r), state->ld};
        const struct sl_epilogue e = sl_epilogue_at(epilogue, r, 0);
        const struct sl_rows to = sl_rows_at(z, r, 0);
        count = rows - r < at_once ? rows - r : at_once;
        struct sl_rows sum = sl_float_rows(from.data, from.ld);
        if (out != sl_attention_all(attention)) {
            average(attention, count, &from, mean);
            sum = sl_float_rows(mean, out);
        }
        sl_epilogue_rows(&e, 0, count, out, &sum, &to);
    }
}

/* ---- Tasks ---- */

/* Return the parameters of attention, W and later rows, in a tile shaped as a layer's parameters.
 */
static struct sl_floats_at parameters_of(const struct sl_attention_shape *shape, void *buffer)
{
    const struct sl_dense tile = sl_dense_buffer(buffer);
    return (struct sl_floats_at){(float *)tile.data + shape->skipped * tile.ld, tile.ld};
}

/* attention_weights
 *   argument  struct attention_weights_argument
 *   buffers   0 R    PARAMETERS
 *             1 W    WEIGHTS; RW for a further part */
static void attention_weights_cpu(void *buffers[], void *argument)
{
    const struct attention_weights_argument *arg = argument;
    const struct sl_floats_at parameters = parameters_of(&arg->shape, buffers[0]),
                              weights = sl_floats_buffer(buffers[1]);
    sl_kernel_attention_weights(&arg->attention, &arg->shape, &parameters, &weights);
}

/* attention_edge
 *   argument  struct attention_weights_argument
 *   buffers   0 R    PARAMETERS
 *             1 W    EDGE */
static void attention_edge_cpu(void *buffers[], void *argument)
{
    const struct attention_weights_argument *arg = argument;
    const struct sl_floats_at parameters = parameters_of(&arg->shape, buffers[0]),
                              edge = sl_floats_buffer(buffers[1]);
    sl_kernel_attention_edge(&arg->attention, &arg->shape, &parameters, &edge);
}

/* attention_weights_back
 *   argument  struct attention_weights_argument
 *   buffers   0 R    PARAMETERS
 *             1 R    GRADIENT of the weights
 *             2 W    BACK; RW for a further part */
static void attention_weights_back_cpu(void *buffers[], void *argument)
{
    const struct attention_weights_argument *arg = argument;
    const struct sl_floats_at parameters = parameters_of(&arg->shape, buffers[0]),
                              gradient = sl_floats_buffer(buffers[1]),
                              back = parameters_of(&arg->shape, buffers[2]);
    sl_kernel_attention_weights_back(&arg->attention, &arg->shape, &parameters, &gradient,
                                     arg->further, &back);
}

/* attention_scores
 *   argument  struct sl_attention
 *   buffers   0 R    row scales
 *             1 RW   PROJECTED
 *             2 W    SCORES */
static void attention_scores_cpu(void *buffers[], void *argument)
{
    const struct sl_floats_at projected = sl_floats_buffer(buffers[1]),
                              scores = sl_floats_buffer(buffers[2]);
    sl_kernel_attention_scores(argument, sl_dense_buffer(buffers[1]).rows, sl_vertices(buffers[0]),
                               &projected, &scores);
}

/* attention_output
 *   argument  struct attention_output_argument
 *   buffers   0 R    STATE
 *             …      of the epilogue
 *             -1 W   Z */
static void attention_output_cpu(void *buffers[], void *argument)
{
    const struct attention_output_argument *arg = argument;
    struct sl_epilogue epilogue;
    const int used = sl_epilogue_buffers(&arg->epilogue, buffers + 1, &epilogue);
    const struct sl_floats_at state = sl_floats_buffer(buffers[0]);
    const struct sl_rows z = sl_rows_buffer(buffers[1 + used]);
    sl_kernel_attention_output(&arg->attention, sl_dense_buffer(buffers[0]).rows,
                               sl_dense_buffer(buffers[1 + used]).cols, &state, &epilogue, &z);
}

/* attention_gradient
 *   argument  struct sl_attention
 *   buffers   0 R    G
 *             1 R    STATE
 *             2 W    GRADIENT */
static void attention_gradient_cpu(void *buffers[], void *argument)
{
    const struct sl_rows g = sl_rows_buffer(buffers[0]);
    const struct sl_floats_at state = sl_floats_buffer(buffers[1]),
                              gradient = sl_floats_buffer(buffers[2]);
    sl_kernel_attention_gradient(argument, sl_dense_buffer(buffers[1]).rows,
                                 sl_dense_buffer(buffers[0]).cols, &g, &state, &gradient);
}

/* attention_own
 *   argument  struct sl_attention
 *   buffers   0 R    GRADIENT
 *             1 R    STATE
 *             2 RW   BACK */
static void attention_own_cpu(void *buffers[], void *argument)
{
    const struct sl_floats_at gradient = sl_floats_buffer(buffers[0]),
                              state = sl_floats_buffer(buffers[1]),
                              back = sl_floats_buffer(buffers[2]);
    sl_kernel_attention_own(argument, sl_dense_buffer(buffers[1]).rows, &gradient, &state, &back);
}

SL_CODELET_ANY(attention_weights, 0x8A2BE2);
SL_CODELET(attention_edge, 0x9400D3, 2, STARPU_R, STARPU_W);
SL_CODELET_ANY(attention_weights_back, 0x9932CC);
SL_CODELET(attention_scores, 0xBA55D3, 3, STARPU_R, STARPU_RW, STARPU_W);
SL_CODELET_ANY(attention_output, 0xDA70D6);
SL_CODELET(attention_gradient, 0xDDA0DD, 3, STARPU_R, STARPU_R, STARPU_W);
SL_CODELET(attention_own, 0xEE82EE, 3, STARPU_R, STARPU_R, STARPU_RW);

static double size_of(const struct sl_tile *tile)
{
    return (double)tile->rows * (double)tile->cols;
}

void sl_submit_attention_weights(struct sl_runtime *rt, const struct sl_attention *attention,
                                 const struct sl_attention_shape *shape, bool further,
                                 struct sl_tile *parameters, struct sl_tile *weights)
{
    const struct attention_weights_argument arg = {*attention, *shape, further};
    sl_task_submit(rt, &(struct sl_task){.codelet = &attention_weights_codelet,
                                         .count = 2,
                                         .tiles = {parameters, weights},
                                         .output = further ? SL_TASK_UPDATES : SL_TASK_WRITES,
                                         .argument = &arg,
                                         .argument_size = sizeof arg,
                                         .urgency = SL_TASK_SOON,
                                         .work = size_of(weights)});
}

void sl_submit_attention_edge(struct sl_runtime *rt, const struct sl_attention *attention,
                              const struct sl_attention_shape *shape, struct sl_tile *parameters,
                              struct sl_tile *edge)
{
    const struct attention_weights_argument arg = {*attention, *shape, false};
    sl_task_submit(rt, &(struct sl_task){.codelet = &attention_edge_codelet,
                                         .count = 2,
                                         .tiles = {parameters, edge},
                                         .argument = &arg,
                                         .argument_size = sizeof arg,
                                         .urgency = SL_TASK_SOON,
                                         .work = size_of(edge)});
}

void sl_submit_attention_weights_back(struct sl_runtime *rt, const struct sl_attention *attention,
                                      const struct sl_attention_shape *shape, bool further,
                                      struct sl_tile *parameters, struct sl_tile *gradient,
                                      struct sl_tile *back)
{
    const struct attention_weights_argument arg = {*attention, *shape, further};
    sl_task_submit(rt, &(struct sl_task){.codelet = &attention_weights_back_codelet,
                                         .count = 3,
                                         .tiles = {parameters, gradient, back},
                                         .output = further ? SL_TASK_UPDATES : SL_TASK_WRITES,
                                         .argument = &arg,
                                         .argument_size = sizeof arg,
                                         .urgency = SL_TASK_LATER,
                                         .work = size_of(back)});
}

/* Submit a task on tiles with equal rows, with no argument but `attention`. */
static void submit_rows(struct sl_runtime *rt, const struct sl_attention *attention,
                        struct starpu_codelet *codelet, struct sl_tile *x, struct sl_tile *y,
                        struct sl_tile *out)
{
    sl_task_submit(rt, &(struct sl_task){.codelet = codelet,
                                         .count = 3,
                                         .tiles = {x, y, out},
                                         .argument = attention,
                                         .argument_size = sizeof *attention,
                                         .urgency = SL_TASK_SOON,
                                         .work = size_of(out)});
}

void sl_submit_attention_scores(struct sl_runtime *rt, const struct sl_attention *attention,
                                struct sl_tile *scales, struct sl_tile *projected,
                                struct sl_tile *scores)
{
    submit_rows(rt, attention, &attention_scores_codelet, scales, projected, scores);
}

void sl_submit_attention_gradient(struct sl_runtime *rt, const struct sl_attention *attention,
                                  struct sl_tile *g, struct sl_tile *state,
                                  struct sl_tile *gradient)
{
    submit_rows(rt, attention, &attention_gradient_codelet, g, state, gradient);
}

void sl_submit_attention_own(struct sl_runtime *rt, const struct sl_attention *attention,
                             struct sl_tile *gradient, struct sl_tile *state, struct sl_tile *back)
{
    submit_rows(rt, attention, &attention_own_codelet, gradient, state, back);
}

void sl_submit_attention_output(struct sl_runtime *rt, const struct sl_attention *attention,
                                const struct sl_epilogue_tiles *epilogue, struct sl_tile *state,
                                struct sl_tile *z)
{
    struct attention_output_argument arg = {.attention = *attention};
    struct sl_task task = {.codelet = &attention_output_codelet,
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
