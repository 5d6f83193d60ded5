#include "graphs/collective.h"

#include "codelets/submit.h"

/* Counted from the owner, round:
 *   for step = 1, 2, 4, …: rank i sends to rank i + step for all i < step */
void sl_broadcast(struct sl_runtime *rt, struct sl_tile *tile, int first, int count)
{
    const int root = tile->owner - first;
    for (int step = 1; step < count; step *= 2)
        for (int i = 0; i < step && i + step < count; i++)
            sl_tile_send(rt, tile, first + (root + i) % count, first + (root + i + step) % count);
}

/* Without the stride:
 *   for step = 1, 2, 4, …: tiles[i] += tiles[i + step] for i = 0, 2·step, 4·step, … */
void sl_reduce(struct sl_runtime *rt, struct sl_tile *tiles, int count, int stride,
               sl_add_function *add)
{
    for (int step = 1; step < count; step *= 2)
        for (int i = 0; i + step < count; i += 2 * step) {
            struct sl_tile *x = &tiles[(i + step) * stride], *y = &tiles[i * stride];
            sl_tile_send(rt, x, x->owner, y->owner);
            add(rt, x, y);
            sl_tile_drop(rt, x);
        }
}

void sl_add_stage(struct sl_runtime *rt, const struct sl_stage *stage, struct sl_tile *const *sums)
{
    sl_stage_ask(rt, stage, stage->count, sums);
    for (int t = 0; t < stage->count; t++)
        sl_submit_accumulate(rt, stage->tiles[t], sums[t]);
    sl_stage_drop(rt, stage);
}
