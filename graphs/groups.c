#include "graphs/groups.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/message.h"
#include "core/view.h"

/* ---- Groups ---- */

/* Set `first` from each rank's group. The ranks of a group must be neighbours, and groups in order.
 */
static int find_first(struct sl_groups *groups, const int64_t *group)
{
    const int ranks = groups->all->ranks;
    int next = 0;
    for (int r = 0; r < ranks; r++) {
        if (r > 0 && group[r] == group[r - 1])
            continue;
        if (group[r] != next)
            return sl_error(SL_ERR_USAGE,
                            "--groups: rank %d is in group %lld, and ranks of one group are not "
                            "neighbours (expected an MPI launcher that fills one node after the "
                            "other: mpirun --map-by slot)",
                            r, (long long)group[r]);
        groups->first[next++] = r;
    }
    groups->first[next] = ranks;
    groups->count = next;
    return 0;
}

int sl_groups_create(struct sl_groups *groups, struct sl_runtime *all, struct sl_runtime *own,
                     int group)
{
    *groups = (struct sl_groups){.all = all, .own = own, .index = group};
    int64_t *list = malloc((size_t)all->ranks * sizeof *list);
    groups->first = malloc((size_t)(all->ranks + 1) * sizeof *groups->first);
    int code = list && groups->first
                   ? 0
                   : sl_error(SL_ERR_SYSTEM, "no memory for the groups of %d ranks", all->ranks);
    code = sl_runtime_agree(all, code);
    if (!code) {
        sl_runtime_gather(all, group, list);
        code = sl_runtime_agree(all, find_first(groups, list));
    }
    if (!code)
        sl_message_groups(all, list);
    free(list);
    return code;
}

void sl_groups_destroy(struct sl_groups *groups)
{
    if (groups->count > 0)
        sl_message_groups(groups->all, NULL);
    free(groups->first);
    *groups = (struct sl_groups){0};
}

/* ---- Sums ---- */

int sl_group_sums_create(const struct sl_groups *groups, struct sl_group_sums *sums,
                         const struct sl_tile *summed)
{
    struct sl_runtime *all = groups->all;
    int64_t *owners = malloc(2 * (size_t)all->ranks * sizeof *owners);
    sums->of = calloc((size_t)groups->count, sizeof *sums->of);
    int code = owners && sums->of
                   ? 0
                   : sl_error(SL_ERR_SYSTEM, "no memory for the sums of %d groups", groups->count);
    code = sl_runtime_agree(all, code);
    if (!code) {
        sl_runtime_gather(all, summed->owner, owners);
        sl_runtime_gather(all, summed->ld, owners + all->ranks);
    }
    for (int g = 0; !code && g < groups->count; g++) {
        const int first = groups->first[g];
        sl_tile_describe(all, &sums->of[g], summed->rows, summed->cols, owners[all->ranks + first],
                         summed->element_size, first + (int)owners[first], NULL);
    }
    free(owners);
    return code;
}

/* Forget the own tile's handle on its owner: the handle belongs to the summed tile. */
static void give_back(const struct sl_groups *groups, struct sl_group_sums *sums)
{
    struct sl_tile *own = &sums->of[groups->index];
    if (own->owner == groups->all->rank)
        own->handle = NULL;
}

void sl_group_sums_destroy(const struct sl_groups *groups, struct sl_group_sums *sums)
{
    if (sums->of)
        give_back(groups, sums);
    for (int g = 0; sums->of && g < groups->count; g++)
        sl_tile_destroy(&sums->of[g]);
    free(sums->of);
    sums->of = NULL;
}

int64_t sl_group_sums_bytes(const struct sl_groups *groups, const struct sl_group_sums *sums)
{
    int64_t bytes = 0;
    for (struct sl_reduce_step s = {0}; sums->of && sl_reduce_next(&s, groups->count);)
        if (sums->of[s.to].owner == groups->all->rank)
            bytes += (int64_t)sl_memory_taken((size_t)sl_tile_bytes(&sums->of[s.from]));
    return bytes;
}

struct sl_tile *sl_groups_sum(const struct sl_groups *groups, struct sl_group_sums *sums,
                              struct sl_tile *tile, sl_add_function *add)
{
    struct sl_tile *own = &sums->of[groups->index];
    if (own->owner == groups->all->rank)
        sl_view_lend(groups->own, tile, own);
    sl_reduce(groups->all, sums->of, groups->count, 1, add);
    return &sums->of[0];
}

/* Return the rank that broadcasts a tile of `root` inside group g. */
static int head(const struct sl_groups *groups, int g, int root)
{
    return g == 0 ? root : groups->first[g];
}

void sl_groups_broadcast(const struct sl_groups *groups, struct sl_tile *tile)
{
    const int *first = groups->first, root = tile->owner;
    for (int step = 1; step < groups->count; step *= 2)
        for (int g = 0; g < step && g + step < groups->count; g++)
            sl_tile_send(groups->all, tile, head(groups, g, root), head(groups, g + step, root));
    for (int g = 0; g < groups->count; g++)
        sl_broadcast_from(groups->all, tile, head(groups, g, root), first[g],
                          first[g + 1] - first[g]);
}
