#include "predict/group.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

/* The selection on grids of ranks, each of which has its share of every hop, in parts, and cloned.
 */
struct grouped {
    const struct sl_source *selection;
    struct sl_source shares;
    struct sl_partition partition;
    struct sl_tile_counts counts;
    struct sl_scenario_halo halo;
    struct sl_partition vertices; /* before they have clones */
    struct sl_scenario_cut cut;
    bool has_cut;
    struct sl_prediction *list;
    int count;
};

/* Tiles of clones follow from those of vertices whatever their hops. */
static int count_clones(struct sl_runtime *rt, const struct sl_training *training,
                        const struct sl_group_options *options, struct grouped *g)
{
    const struct sl_distribution_name *named = options->distribution;
    struct sl_source flat = *g->selection;
    flat.selection.hop_cut = NULL;
    g->has_cut = (!named || named->kind->clones) && sl_scenario_cut_fits(training);
    if (!g->has_cut)
        return 0;
    const int code = sl_partition_create(rt, &g->vertices, &flat, &options->cuts);
    return code ? code
                : sl_scenario_cut_create(g->selection, training, &g->vertices, &g->halo,
                                         sl_space_find(rt).bytes, &g->cut);
}

static int count_group(struct sl_runtime *rt, const struct sl_training *training,
                       const struct sl_group_options *options, struct grouped *g)
{
    const struct sl_partition_options *cuts = &options->cuts;
    int code = sl_source_borrow(g->selection, &g->shares);
    if (!code && g->shares.selection.hop_cut)
        code = sl_source_order_by_hop_shares(&g->shares, cuts->ranks);
    if (!code)
        code = sl_partition_create(rt, &g->partition, &g->shares, cuts);
    if (!code)
        code = sl_tile_counts_read(rt, &g->shares, &g->partition, training->assembly.loops, NULL,
                                   NULL, &g->counts);
    if (!code)
        code = sl_scenario_halo_create(rt, g->selection, training, cuts, &g->halo);
    return code ? code : count_clones(rt, training, options, g);
}

/* Set the rows of all vertices and of outer ones. Where hops of clones are not known, all vertices
 * have equally many. */
static void count_rows(const struct grouped *g, const struct sl_prediction *p, double *rows,
                       double *outer)
{
    const struct sl_cut_counts *clones = &g->cut.clones;
    const double vertices = (double)g->selection->vertices;
    *rows = p->kind->clones ? (double)clones->bounds[clones->ranks] : vertices;
    double inner = *rows * (double)g->selection->selection.inner / vertices;
    if (p->kind->clones && clones->hops.count > 1) {
        inner = 0.0;
        for (int r = 0; r < clones->ranks; r++)
            inner += (double)clones->hops.rows[r * clones->hops.count];
    }
    *outer = *rows - inner;
}

static struct sl_group_prediction prediction_of(const struct grouped *g,
                                                const struct sl_prediction *p)
{
    struct sl_group_prediction out = {.kind = p->kind, .grid = p->grid};
    memcpy(out.name, p->name, sizeof out.name);
    count_rows(g, p, &out.rows, &out.outer);
    for (int r = 0; r < g->partition.ranks; r++) {
        const struct sl_rank_prediction *rank = &p->rank[r];
        out.bytes += (double)rank->received;
        out.messages += (double)rank->messages;
        out.seconds = fmax(out.seconds, rank->communication - rank->hidden);
    }
    return out;
}

static int list_all(const struct grouped *g, const struct sl_distribution_name *named,
                    struct sl_group_prediction **list, int *count)
{
    *list = calloc((size_t)g->count + 1, sizeof **list);
    if (!*list)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d predictions", g->count);
    for (const struct sl_prediction *p = g->list; p < g->list + g->count; p++)
        if (!named || sl_distribution_name_of(p->kind, &p->grid) == named)
            (*list)[(*count)++] = prediction_of(g, p);
    return 0;
}

int sl_group_predict(struct sl_runtime *rt, const struct sl_source *selection,
                     const struct sl_group_options *options, struct sl_group_prediction **list,
                     int *count)
{
    struct grouped g = {.selection = selection};
    struct sl_training own = *options->training;
    if (options->parted)
        own.assembly.owners.partition = NULL;
    own.assembly.owners.delay = SL_DELAY_EXACT;
    *list = NULL;
    *count = 0;
    int code = count_group(rt, &own, options, &g);
    struct sl_scenario scenario =
        sl_scenario_of(selection, &own, &g.partition, &g.counts, options->rates, options->core);
    scenario.refresh = options->refresh;
    if (!code)
        code = sl_scenario_predict_all(&scenario, &g.halo, g.has_cut ? &g.cut : NULL, &g.list,
                                       &g.count);
    if (!code)
        code = list_all(&g, options->distribution, list, count);
    sl_scenario_free_all(g.list, g.count);
    sl_scenario_cut_destroy(&g.cut);
    sl_partition_destroy(&g.vertices);
    sl_scenario_halo_destroy(&g.halo);
    sl_tile_counts_destroy(&g.counts);
    sl_partition_destroy(&g.partition);
    sl_source_close(&g.shares);
    return code;
}
