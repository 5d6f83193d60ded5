#include "predict/group.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

/* Set the rows of all vertices and of outer ones. Where hops of clones are not known, all vertices
 * have equally many. */
static void count_rows(const struct sl_source *selection, const struct sl_cut_counts *clones,
                       const struct sl_prediction *p, double *rows, double *outer)
{
    const double vertices = (double)selection->vertices;
    *rows = p->kind->clones ? (double)clones->bounds[clones->ranks] : vertices;
    double inner = *rows * (double)selection->selection.inner / vertices;
    if (p->kind->clones && clones->hops.count > 1) {
        inner = 0.0;
        for (int r = 0; r < clones->ranks; r++)
            inner += (double)clones->hops.rows[r * clones->hops.count];
    }
    *outer = *rows - inner;
}

static struct sl_group_prediction prediction_of(const struct sl_source *selection,
                                                const struct sl_scenario_counts *counts,
                                                const struct sl_prediction *p)
{
    struct sl_group_prediction out = {.kind = p->kind, .grid = p->grid};
    memcpy(out.name, p->name, sizeof out.name);
    count_rows(selection, &counts->cut.clones, p, &out.rows, &out.outer);
    for (int r = 0; r < counts->partition.ranks; r++) {
        const struct sl_rank_prediction *rank = &p->rank[r];
        out.bytes += (double)rank->received;
        out.messages += (double)rank->messages;
        out.seconds = fmax(out.seconds, rank->communication - rank->hidden);
    }
    return out;
}

int sl_group_predict(struct sl_runtime *rt, const struct sl_source *selection,
                     const struct sl_group_options *options, struct sl_group_prediction **list,
                     int *count)
{
    const struct sl_distribution_name *named = options->distribution;
    struct sl_scenario_counts counts;
    struct sl_prediction *all = NULL;
    int found = 0;
    struct sl_training own = *options->training;
    if (options->parted)
        own.assembly.owners.partition = NULL;
    own.assembly.owners.delay = SL_DELAY_EXACT;
    own.no_cut = own.no_cut || (named && !named->kind->clones);
    *list = NULL;
    *count = 0;
    int code = sl_scenario_counts_create(rt, selection, &own, &options->cuts, &counts);
    struct sl_scenario scenario = sl_scenario_of(selection, &own, &counts.partition, &counts.counts,
                                                 options->rates, options->core);
    scenario.refresh = options->refresh;
    if (!code)
        code = sl_scenario_predict_all(&scenario, &counts, &all, &found);
    if (!code)
        *list = calloc((size_t)found + 1, sizeof **list);
    if (!code && !*list)
        code = sl_error(SL_ERR_SYSTEM, "no memory for %d predictions", found);
    for (const struct sl_prediction *p = all; !code && p < all + found; p++)
        if (!named || sl_distribution_name_of(p->kind, &p->grid) == named)
            (*list)[(*count)++] = prediction_of(selection, &counts, p);
    sl_scenario_free_all(all, found);
    sl_scenario_counts_destroy(&counts);
    return code;
}
