#include "codelets/link_lists.h"

#include <stdlib.h>

#include "codelets/codelet.h"

__extension__ typedef unsigned __int128 wide;

/* Append a link to the segment of its target's tile, if the segment has room. */
static void append(const struct sl_link_draw *draw, struct sl_scored_link *const *segments,
                   struct sl_scored_link link, int64_t row)
{
    const int t = sl_cut_find(draw->tiles, draw->row_cut, row);
    struct sl_scored_link *const segment = segments[t];
    if (segment->source >= segment->target)
        return;
    link.target = (int32_t)(row - draw->row_cut[t]);
    segment[1 + segment->source++] = link;
}

static int64_t drawn_row(const struct sl_link_draw *draw, uint32_t source, uint64_t k)
{
    const wide bits = sl_rng_bits(draw->key, source, (uint32_t)k);
    const int64_t number = draw->least + (int64_t)(bits * (wide)(draw->end - draw->least) >> 64);
    return draw->row ? draw->row[number] : number;
}

void sl_link_lists_make(const struct sl_link_list *list, const struct sl_link_draw *draw,
                        struct sl_scored_link *const *segments, int32_t *work)
{
    for (int t = 0; t < draw->tiles; t++)
        segments[t]->source = 0;
    for (int64_t r = 0; r < list->rows; r++)
        for (int64_t k = list->start[r]; k < list->start[r + 1]; k++) {
            struct sl_scored_link link = {.source = (int32_t)r, .number = (int32_t)k};
            append(draw, segments, link, list->target[k]);
            link.number = (int32_t)~k;
            for (int64_t j = 0; j < draw->negatives; j++)
                append(draw, segments, link,
                       drawn_row(draw, list->source[r],
                                 (uint64_t)((k - list->start[r]) * draw->negatives + j)));
        }
    for (int t = 0; t < draw->tiles; t++)
        sl_link_order(draw->row_cut[t + 1] - draw->row_cut[t], segments[t], work);
}

/* link_lists
 *   argument  struct link_lists_argument
 *   buffers   W    work (1, entries) of int32
 *             RW   block (elements, 1) of struct sl_scored_link, each */
struct link_lists_argument {
    const struct sl_link_list *list;
    struct sl_link_draw draw;
    int blocks;
};

static void link_lists_cpu(void *buffers[], void *argument)
{
    const struct link_lists_argument *arg = argument;
    struct sl_scored_link **segments = malloc((size_t)arg->draw.tiles * sizeof *segments);
    if (!segments)
        sl_fatal("no memory for the links of %d tiles", arg->draw.tiles);
    if (sl_link_segments(buffers + 1, arg->blocks, arg->draw.tiles, segments) != arg->draw.tiles)
        sl_fatal("blocks of links with another number of segments than %d", arg->draw.tiles);
    sl_link_lists_make(arg->list, &arg->draw, segments, sl_raw_buffer(buffers[0]));
    free(segments);
}

SL_HOST_CODELET(link_lists, 0x8FBC8F, STARPU_VARIABLE_NBUFFERS, 0);

void sl_submit_link_lists(struct sl_runtime *rt, const struct sl_link_list *list,
                          const struct sl_link_draw *draw, struct sl_tile *work, int count,
                          struct sl_tile *blocks)
{
    const struct link_lists_argument arg = {list, *draw, count};
    struct sl_tile **tiles = malloc((size_t)(count + 1) * sizeof *tiles);
    if (!tiles)
        sl_fatal("no memory to submit the links of %d tiles", draw->tiles);
    tiles[0] = work;
    for (int b = 0; b < count; b++)
        tiles[1 + b] = &blocks[b];
    sl_task_submit(rt, &(struct sl_task){
                           .codelet = &link_lists_codelet,
                           .count = count + 1,
                           .list = tiles,
                           .before_output = SL_TASK_WRITES,
                           .output = SL_TASK_UPDATES,
                           .outputs = count,
                           .argument = &arg,
                           .argument_size = sizeof arg,
                           .work = (double)list->start[list->rows] * (double)(1 + draw->negatives),
                       });
    free(tiles);
}
