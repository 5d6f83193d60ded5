#include "codelets/links.h"

#include <stdlib.h>
#include <string.h>

#include "codelets/codelet.h"

void sl_link_order(int64_t rows, struct sl_scored_link *segment, int32_t *room)
{
    const int64_t count = sl_link_count(segment);
    struct sl_scored_link *const link = segment + 1;
    memset(room, 0, (size_t)(rows + 1) * sizeof *room);
    for (int64_t e = 0; e < count; e++)
        room[link[e].target + 1]++;
    for (int64_t r = 0; r < rows; r++)
        room[r + 1] += room[r];
    for (int64_t e = 0; e < count; e++)
        link[room[link[e].target]++].by_target = (int32_t)e;
}

int sl_link_task(void *buffers[], const struct link_argument *argument, int64_t k,
                 struct sl_link_rows *rows, struct sl_scored_link **segment)
{
    const int64_t *const place = (const int64_t *)(argument + 1);
    const int others = argument->self < 0, weight = others + (int)argument->count,
              blocks = weight + argument->weighted;
    const bool targets = argument->end == SL_LINK_TARGET;
    const struct sl_dense own = sl_dense_buffer(buffers[others ? 0 : argument->self]);
    const struct sl_floats_at mine = {own.data, own.ld},
                              other = sl_floats_buffer(buffers[others + k]);
    *rows = (struct sl_link_rows){
        .decoder = argument->decoder,
        .cols = own.cols,
        .x = targets ? other : mine,
        .y = targets ? mine : other,
        .w = argument->weighted ? sl_dense_buffer(buffers[weight]).data : NULL,
    };
    *segment =
        (struct sl_scored_link *)sl_raw_buffer(buffers[blocks + (targets ? k : 0)]) + place[k];
    return blocks + (targets ? (int)argument->count : 1);
}

int sl_link_segments(void *blocks[], int count, int most, struct sl_scored_link **segments)
{
    int found = 0;
    for (int b = 0; b < count; b++) {
        struct sl_scored_link *const first = sl_raw_buffer(blocks[b]);
        struct sl_scored_link *const end = first + STARPU_MATRIX_GET_NY(blocks[b]);
        for (struct sl_scored_link *s = first; s < end; s = sl_link_next(s), found++)
            if (found < most)
                segments[found] = s;
    }
    return found;
}

/* link_scores
 *   argument  struct link_argument
 *   buffers   R    rows (rows, cols) of sources, unless they are among the targets
 *             R    rows of targets, each
 *             R    w (any, cols), if weighted
 *             RW   block */
static void link_scores_cpu(void *buffers[], void *argument)
{
    const struct link_argument *arg = argument;
    struct sl_link_rows rows;
    struct sl_scored_link *segment;
    for (int64_t k = 0; k < arg->count; k++) {
        sl_link_task(buffers, arg, k, &rows, &segment);
        sl_kernel_link_scores(&rows, segment);
    }
}

/* Return the output of a task, cleared if the task is the first. */
static struct sl_dense open_output(void *buffers[], const struct link_argument *arg)
{
    struct sl_link_rows rows;
    struct sl_scored_link *segment;
    const struct sl_dense g =
        sl_dense_buffer(buffers[sl_link_task(buffers, arg, 0, &rows, &segment)]);
    for (int64_t r = 0; arg->first && r < g.rows; r++)
        memset(g.data + r * g.ld, 0, (size_t)g.cols * sizeof *g.data);
    return g;
}

/* link_back
 *   argument  struct link_argument
 *   buffers   R    as link_scores, where the rows of an end are alone; blocks, each
 *             RW   G (rows of the end, cols) */
static void link_back_cpu(void *buffers[], void *argument)
{
    const struct link_argument *arg = argument;
    const struct sl_dense g = open_output(buffers, arg);
    struct sl_link_rows rows;
    struct sl_scored_link *segment;
    for (int64_t k = 0; k < arg->count; k++) {
        sl_link_task(buffers, arg, k, &rows, &segment);
        sl_kernel_link_back(&rows, arg->end, g.rows, segment, (struct sl_floats_at){g.data, g.ld});
    }
}

/* link_parameters
 *   argument  struct link_argument
 *   buffers   R    as link_back
 *             RW   dw (1, cols) */
static void link_parameters_cpu(void *buffers[], void *argument)
{
    const struct link_argument *arg = argument;
    const struct sl_dense dw = open_output(buffers, arg);
    struct sl_link_rows rows;
    struct sl_scored_link *segment;
    for (int64_t k = 0; k < arg->count; k++) {
        sl_link_task(buffers, arg, k, &rows, &segment);
        sl_kernel_link_parameters(&rows, segment, dw.data);
    }
}

SL_CODELET_ANY(link_scores, 0x20B2AA);
SL_CODELET_ANY(link_back, 0x008B8B);
SL_CODELET_ANY(link_parameters, 0x5F9EA0);

/* ---- Submission ---- */

/* A task while it is made: its tiles, and its argument with the places of segments. */
struct making {
    int count;
    struct sl_tile **tiles;
    struct link_argument *argument;
    int64_t links; /* room of the segments, about */
};

/* Take the tiles that a task reads. The caller frees them, and the argument. */
static struct making make_task(const struct sl_link_tiles *t, enum sl_link_end end, bool first)
{
    const int blocks = end == SL_LINK_TARGET ? t->count : 1;
    struct making m = {0};
    m.tiles = malloc((size_t)(t->count + blocks + 3) * sizeof(struct sl_tile *));
    m.argument = malloc(sizeof *m.argument + (size_t)t->count * sizeof(int64_t));
    if (!m.tiles || !m.argument)
        sl_fatal("no memory to submit links of %d tiles", t->count);
    const bool among = t->own >= t->others && t->own < t->others + t->count;
    *m.argument = (struct link_argument){.decoder = t->decoder,
                                         .end = end,
                                         .first = first,
                                         .weighted = t->w != NULL,
                                         .self = among ? (int)(t->own - t->others) : -1,
                                         .count = t->count};
    for (int k = 0; k < t->count; k++)
        ((int64_t *)(m.argument + 1))[k] = t->segment[k * t->apart_segments];
    if (!among)
        m.tiles[m.count++] = t->own;
    for (int k = 0; k < t->count; k++)
        m.tiles[m.count++] = &t->others[k];
    if (t->w)
        m.tiles[m.count++] = t->w;
    for (int b = 0; b < blocks; b++) {
        m.tiles[m.count++] = &t->blocks[b * t->apart];
        m.links += t->blocks[b * t->apart].rows;
    }
    return m;
}

/* Submit a task on segments. out NULL: the block itself. */
static void submit(struct sl_runtime *rt, struct starpu_codelet *codelet,
                   const struct sl_link_tiles *tiles, enum sl_link_end end, bool first,
                   struct sl_tile *out)
{
    struct making m = make_task(tiles, end, first);
    if (out)
        m.tiles[m.count++] = out;
    sl_task_submit(rt,
                   &(struct sl_task){
                       .codelet = codelet,
                       .count = m.count,
                       .list = m.tiles,
                       .before_output = SL_TASK_READS,
                       .output = SL_TASK_UPDATES,
                       .argument = m.argument,
                       .argument_size = sizeof *m.argument + (size_t)tiles->count * sizeof(int64_t),
                       .work = (double)m.links * (double)tiles->own->cols,
                       .kind = (uint32_t)(tiles->decoder * 4 + end * 2 + first),
                   });
    free(m.argument);
    free(m.tiles);
}

void sl_submit_link_scores(struct sl_runtime *rt, const struct sl_link_tiles *tiles)
{
    submit(rt, &link_scores_codelet, tiles, SL_LINK_SOURCE, false, NULL);
}

void sl_submit_link_back(struct sl_runtime *rt, const struct sl_link_tiles *tiles,
                         enum sl_link_end end, bool first, struct sl_tile *g)
{
    submit(rt, &link_back_codelet, tiles, end, first, g);
}

void sl_submit_link_parameters(struct sl_runtime *rt, const struct sl_link_tiles *tiles, bool first,
                               struct sl_tile *dw)
{
    submit(rt, &link_parameters_codelet, tiles, SL_LINK_SOURCE, first, dw);
}
