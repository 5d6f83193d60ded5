#include "codelets/links.h"

#include <string.h>

#include "codelets/codelet.h"

void sl_link_order(int64_t rows, struct sl_scored_link *block, int32_t *room)
{
    const int64_t count = sl_link_count(block);
    struct sl_scored_link *const link = block + 1;
    memset(room, 0, (size_t)(rows + 1) * sizeof *room);
    for (int64_t e = 0; e < count; e++)
        room[link[e].target + 1]++;
    for (int64_t r = 0; r < rows; r++)
        room[r + 1] += room[r];
    for (int64_t e = 0; e < count; e++)
        link[room[link[e].target]++].by_target = (int32_t)e;
}

int sl_link_rows_of(void *buffers[], const struct link_argument *argument,
                    struct sl_link_rows *rows, const struct sl_scored_link **block)
{
    int next = 0;
    const struct sl_dense x = sl_dense_buffer(buffers[next++]);
    const struct sl_floats_at y =
        argument->one ? (struct sl_floats_at){x.data, x.ld} : sl_floats_buffer(buffers[next++]);
    *rows = (struct sl_link_rows){
        .decoder = argument->decoder, .cols = x.cols, .x = {x.data, x.ld}, .y = y};
    if (argument->weighted)
        rows->w = sl_dense_buffer(buffers[next++]).data;
    *block = sl_raw_buffer(buffers[next++]);
    return next;
}

/* link_scores
 *   argument  struct link_argument
 *   buffers   R    x (rows, cols)
 *             R    y (rows, cols), unless x is y
 *             R    w (any, cols), if weighted
 *             RW   block */
static void link_scores_cpu(void *buffers[], void *argument)
{
    struct sl_link_rows rows;
    const struct sl_scored_link *block;
    const int next = sl_link_rows_of(buffers, argument, &rows, &block);
    sl_kernel_link_scores(&rows, sl_raw_buffer(buffers[next - 1]));
}

/* link_back
 *   argument  struct link_argument
 *   buffers   R    as link_scores, the block as well
 *             RW   G (rows of the end, cols) */
static void link_back_cpu(void *buffers[], void *argument)
{
    const struct link_argument *arg = argument;
    struct sl_link_rows rows;
    const struct sl_scored_link *block;
    const struct sl_dense g =
        sl_dense_buffer(buffers[sl_link_rows_of(buffers, arg, &rows, &block)]);
    for (int64_t r = 0; arg->first && r < g.rows; r++)
        memset(g.data + r * g.ld, 0, (size_t)g.cols * sizeof *g.data);
    sl_kernel_link_back(&rows, arg->end, g.rows, block, (struct sl_floats_at){g.data, g.ld});
}

/* link_parameters
 *   argument  struct link_argument
 *   buffers   R    as link_back
 *             RW   dw (1, cols) */
static void link_parameters_cpu(void *buffers[], void *argument)
{
    const struct link_argument *arg = argument;
    struct sl_link_rows rows;
    const struct sl_scored_link *block;
    const struct sl_dense dw =
        sl_dense_buffer(buffers[sl_link_rows_of(buffers, arg, &rows, &block)]);
    if (arg->first)
        memset(dw.data, 0, (size_t)dw.cols * sizeof *dw.data);
    sl_kernel_link_parameters(&rows, block, dw.data);
}

SL_CODELET_ANY(link_scores, 0x20B2AA);
SL_CODELET_ANY(link_back, 0x008B8B);
SL_CODELET_ANY(link_parameters, 0x5F9EA0);

/* Submit a task on a block and its rows. out NULL: the block itself. */
static void submit(struct sl_runtime *rt, struct starpu_codelet *codelet,
                   const struct sl_link_tiles *tiles, struct link_argument *argument,
                   struct sl_tile *out)
{
    const int64_t links = tiles->block->rows - 1;
    argument->decoder = tiles->decoder;
    argument->one = tiles->x == tiles->y;
    argument->weighted = tiles->w != NULL;
    struct sl_task task = {
        .codelet = codelet,
        .tiles = {tiles->x},
        .count = 1,
        .before_output = SL_TASK_READS,
        .output = SL_TASK_UPDATES,
        .argument = argument,
        .argument_size = sizeof *argument,
        .work = (double)links * (double)tiles->x->cols,
        .kind = (uint32_t)(tiles->decoder * 4 + argument->end * 2 + argument->first),
    };
    if (!argument->one)
        task.tiles[task.count++] = tiles->y;
    if (tiles->w)
        task.tiles[task.count++] = tiles->w;
    task.tiles[task.count++] = tiles->block;
    if (out)
        task.tiles[task.count++] = out;
    sl_task_submit(rt, &task);
}

void sl_submit_link_scores(struct sl_runtime *rt, const struct sl_link_tiles *tiles)
{
    submit(rt, &link_scores_codelet, tiles, &(struct link_argument){.first = false}, NULL);
}

void sl_submit_link_back(struct sl_runtime *rt, const struct sl_link_tiles *tiles,
                         enum sl_link_end end, bool first, struct sl_tile *g)
{
    submit(rt, &link_back_codelet, tiles, &(struct link_argument){.end = end, .first = first}, g);
}

void sl_submit_link_parameters(struct sl_runtime *rt, const struct sl_link_tiles *tiles, bool first,
                               struct sl_tile *dw)
{
    submit(rt, &link_parameters_codelet, tiles, &(struct link_argument){.first = first}, dw);
}
