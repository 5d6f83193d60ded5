#include "graphs/collective.h"

#include <stdlib.h>

#include "codelets/accumulate.h"
#include "core/error.h"

/* Ranks count from the root, round. For step = 1, 2, 4, …: rank i sends to rank i + step, for all i
 * < step. */
void sl_broadcast_from(struct sl_runtime *rt, struct sl_tile *tile, int root, int first, int count)
{
    const int from = root - first;
    for (int step = 1; step < count; step *= 2)
        for (int i = 0; i < step && i + step < count; i++)
            sl_tile_send(rt, tile, first + (from + i) % count, first + (from + i + step) % count);
}

void sl_broadcast(struct sl_runtime *rt, struct sl_tile *tile, int first, int count)
{
    sl_broadcast_from(rt, tile, tile->owner, first, count);
}

/* For distance = 1, 2, 4, …: term i += term i + distance, for i = 0, 2·distance, 4·distance, … */
bool sl_reduce_next(struct sl_reduce_step *step, int count)
{
    int distance = step->from - step->to;
    int to = distance ? step->to + 2 * distance : 0;
    distance = distance ? distance : 1;
    if (to + distance >= count) {
        distance = step->from ? 2 * distance : distance;
        to = 0;
    }
    *step = (struct sl_reduce_step){.to = to, .from = to + distance};
    return step->from < count;
}

void sl_reduce(struct sl_runtime *rt, struct sl_tile *tiles, int count, int stride,
               sl_add_function *add)
{
    struct sl_tile **term = malloc((size_t)(count + 1) * sizeof *term);
    int terms = 0;
    if (!term)
        sl_fatal("no memory for a list of %d tiles", count);
    for (int t = 0; t < count; t++)
        if (!tiles[t * stride].idle)
            term[terms++] = &tiles[t * stride];
    for (struct sl_reduce_step s = {0}; sl_reduce_next(&s, terms);) {
        struct sl_tile *x = term[s.from], *y = term[s.to];
        sl_tile_send(rt, x, x->owner, y->owner);
        add(rt, x, y);
        sl_tile_drop(rt, x);
    }
    free(term);
}

void sl_add_stage(struct sl_runtime *rt, const struct sl_stage *stage, struct sl_tile *const *sums)
{
    sl_stage_ask(rt, stage, stage->count, sums);
    for (int t = 0; t < stage->count; t++)
        sl_submit_accumulate(rt, stage->tiles[t], sums[t]);
    sl_stage_drop(rt, stage);
}
