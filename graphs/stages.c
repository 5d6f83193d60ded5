#include "graphs/stages.h"

int sl_stages_of_rank(const struct sl_runtime *rt, const struct sl_distribution *d)
{
    enum { LEAST_STAGES = 4 };
    const int others = d->grid.rows - 1, least = d->broadcast == SL_BROADCAST_TREE ? 1 : 2;
    return rt->stages == 1 || others == 0  ? 1
           : LEAST_STAGES > least * others ? (LEAST_STAGES + others - 1) / others
                                           : least;
}

int sl_stages_count(const struct sl_runtime *rt, const struct sl_distribution *d)
{
    return (d->grid.rows - 1) * sl_stages_of_rank(rt, d);
}

/* Return the rank `hop` rows of the grid after this rank, round. */
static int rank_after(const struct sl_runtime *rt, const struct sl_grid *grid, int hop)
{
    return (rt->rank + hop * grid->columns * grid->depth) % rt->ranks;
}

struct sl_stage_run sl_stages_run(const struct sl_runtime *rt, const struct sl_distribution *d,
                                  int s)
{
    const int pieces = sl_stages_of_rank(rt, d), piece = s % pieces;
    const int rank = rank_after(rt, &d->grid, 1 + s / pieces);
    const struct sl_tile_run group = sl_grid_group(d, rank);
    const int count = group.to - group.from;
    return (struct sl_stage_run){rank, group.from + count * piece / pieces,
                                 group.from + count * (piece + 1) / pieces};
}
