#include "predict/group.h"

#include <math.h>
#include <string.h>

#include "core/error.h"

/* The selection on grids of ranks, each of which has its share of every hop, and in parts. */
struct grouped {
    struct sl_source shares;
    struct sl_partition partition;
    struct sl_tile_counts counts;
    struct sl_scenario_halo halo;
    struct sl_prediction *list;
    int count;
};

static int count(struct sl_runtime *rt, const struct sl_source *selection,
                 const struct sl_training *training, const struct sl_partition_options *cuts,
                 struct grouped *g)
{
    int code = sl_source_borrow(selection, &g->shares);
    if (!code)
        code = sl_source_order_by_hop_shares(&g->shares, cuts->ranks);
    if (!code)
        code = sl_partition_create(rt, &g->partition, &g->shares, cuts);
    if (!code)
        code = sl_tile_counts_read(rt, &g->shares, &g->partition, training->how.loops, NULL, NULL,
                                   &g->counts);
    return code ? code : sl_scenario_halo_create(rt, selection, training, cuts, &g->halo);
}

/* Whether a prediction is of a distribution with this name (NULL: any). */
static bool is_named(const struct sl_prediction *p, const char *name)
{
    const bool deep = p->grid.depth > 1, cut = p->grid.columns > 1;
    const char *own = p->kind != &sl_distribution_block ? p->kind->name
                      : deep                            ? (cut ? "3d" : "1.5d")
                                                        : (cut ? "2d" : "1d");
    return !name || strcmp(own, name) == 0;
}

static bool is_same(const struct sl_prediction *p, const struct sl_group_prediction *one)
{
    return !one->kind ||
           (p->kind == one->kind && memcmp(&p->grid, &one->grid, sizeof p->grid) == 0);
}

static const struct sl_prediction *find_fastest(const struct grouped *g, const char *name,
                                                const struct sl_group_prediction *first)
{
    const struct sl_prediction *best = NULL;
    for (const struct sl_prediction *p = g->list; p < g->list + g->count; p++)
        if (is_named(p, name) && is_same(p, first) && (!best || p->seconds < best->seconds))
            best = p;
    return best;
}

static void add(const struct sl_prediction *p, int ranks, struct sl_group_prediction *out)
{
    out->kind = p->kind;
    out->grid = p->grid;
    memcpy(out->name, p->name, sizeof out->name);
    for (int r = 0; r < ranks; r++) {
        const struct sl_rank_prediction *rank = &p->rank[r];
        out->bytes += (double)rank->received;
        out->messages += (double)rank->messages;
        out->seconds = fmax(out->seconds, rank->communication - rank->hidden);
    }
}

int sl_group_predict(struct sl_runtime *rt, const struct sl_source *selection,
                     const struct sl_training *training, const struct sl_partition_options *cuts,
                     const struct sl_rates *rates, const struct sl_rates *core, int refresh,
                     const char *distribution, struct sl_group_prediction *out)
{
    struct grouped g = {.count = 0};
    const struct sl_prediction *fastest = NULL;
    struct sl_training own = *training;
    own.how.partition = NULL; /* the parts of the groups */
    int code = count(rt, selection, &own, cuts, &g);
    struct sl_scenario scenario =
        sl_scenario_of(selection, &own, &g.partition, &g.counts, rates, core);
    scenario.refresh = refresh;
    if (!code)
        code = sl_scenario_predict_all(&scenario, &g.halo, NULL, &g.list, &g.count);
    if (!code)
        fastest = find_fastest(&g, distribution, out);
    if (!code && !fastest)
        code = sl_error(SL_ERR_USAGE, "--distribution %s: not with groups of %d ranks",
                        distribution ? distribution : out->name, cuts->ranks);
    if (!code)
        add(fastest, cuts->ranks, out);
    sl_scenario_free_all(g.list, g.count);
    sl_scenario_halo_destroy(&g.halo);
    sl_tile_counts_destroy(&g.counts);
    sl_partition_destroy(&g.partition);
    sl_source_close(&g.shares);
    return code;
}
