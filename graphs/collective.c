#include "graphs/collective.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/message.h"

/*   list = root, then the ranks that need the tile, in order after the root
 *   for step = 1, 2, 4, …: list[i] sends to list[i + step] for all i < step */
void sl_broadcast(struct sl_runtime *rt, struct sl_tile *tile, const bool *needs)
{
    const int root = tile->owner;
    int count = 1;
    int *list = malloc((size_t)rt->ranks * sizeof *list);
    if (!list)
        sl_fatal("no memory for a broadcast among %d ranks", rt->ranks);
    list[0] = root;
    for (int hop = 1; hop < rt->ranks; hop++) {
        const int rank = (root + hop) % rt->ranks;
        if (!needs || needs[rank])
            list[count++] = rank;
    }
    for (int step = 1; step < count; step *= 2)
        for (int i = 0; i < step && i + step < count; i++)
            sl_tile_send(rt, tile, list[i], list[i + step]);
    free(list);
}

/*   for step = 1, 2, 4, …: tiles[i] += tiles[i + step] for i = 0, 2·step, 4·step, … */
void sl_reduce(struct sl_runtime *rt, struct sl_tile *tiles, int count, sl_add_function *add)
{
    for (int step = 1; step < count; step *= 2)
        for (int i = 0; i + step < count; i += 2 * step) {
            struct sl_tile *x = &tiles[i + step], *y = &tiles[i];
            sl_tile_send(rt, x, x->owner, y->owner);
            add(rt, x, y);
            sl_tile_drop(rt, x);
        }
}
