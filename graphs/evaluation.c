/* The metric of labels of an evaluation. Nothing here waits.
 *
 *   counts      for row tiles i: counts(i) = right and wrong labels;  counts = Σ counts(i)
 *   errors      likewise, of numbers
 *   rankings    for groups g of labels, for row tiles i: score(g, i) → the rank of g
 *               table(g) = rank(score(g, 0), score(g, 1), …);  table(g) → rank 0
 *   all         total = metric(tables), on rank 0
 *
 * Counts are whole numbers, and rankings do not depend on the order of rows: their metrics are the
 * same however the logits are distributed. Sums of errors differ in their last bits. */
#include "graphs/evaluation.h"

#include <stdlib.h>

#include "codelets/accumulate.h"
#include "codelets/label_counts.h"
#include "codelets/label_scores.h"
#include "codelets/value_errors.h"
#include "core/error.h"
#include "core/message.h"
#include "graphs/collective.h"
#include "graphs/network.h"

enum { GROUPS_OF_RANK = 4 }; /* most groups of labels on a rank, so that its workers share them */

static enum sl_target_form form_of(const struct sl_network *net)
{
    return net->graph->objective.loss->form;
}

/* Return the metric of labels that an evaluation measures: the objective's, or the metric that is
 * shown beside. NULL: none, as of links. */
static const struct sl_metric *metric_of(const struct sl_network *net)
{
    const struct sl_objective *o = &net->graph->objective;
    if (o->loss->links)
        return NULL;
    return o->metric->source == SL_METRIC_OF_SUMS ? o->shown : o->metric;
}

static int64_t columns_of(const struct sl_network *net)
{
    return net->model->layer[net->model->layers - 1].shape.out;
}

static int owner_of(const struct sl_network *net, int g)
{
    return g % net->rt->ranks;
}

static int64_t group_size(const struct sl_evaluation *e, int g)
{
    return e->first[g + 1] - e->first[g];
}

/* ---- Tiles ---- */

static int create_counts(struct sl_network *net, int64_t numbers)
{
    const struct sl_distribution *d = net->graph->distribution;
    struct sl_evaluation *e = &net->evaluation;
    int code = 0;
    e->counts = calloc((size_t)d->tiles, sizeof *e->counts);
    if (!e->counts)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d small tiles", d->tiles);
    for (int i = 0; !code && i < d->tiles; i++)
        code = sl_tile_create(net->rt, &e->counts[i], columns_of(net), numbers, sizeof(double),
                              sl_distribution_whole_owner(d, i, 0));
    return code;
}

static int cut_groups(struct sl_network *net)
{
    struct sl_evaluation *e = &net->evaluation;
    const int64_t labels = sl_ranked_labels(form_of(net), columns_of(net));
    const int64_t room = (int64_t)GROUPS_OF_RANK * net->rt->ranks;
    const int64_t most = room < SL_MOST_TABLES ? room : SL_MOST_TABLES;
    e->groups = (int)(labels < most ? labels : most);
    const size_t groups = (size_t)e->groups, tiles = (size_t)net->graph->distribution->tiles;
    e->first = calloc(groups + 1, sizeof *e->first);
    e->score = calloc(groups * tiles, sizeof *e->score);
    e->work = calloc(groups, sizeof *e->work);
    e->table = calloc(groups, sizeof *e->table);
    if (!e->first || !e->score || !e->work || !e->table)
        return sl_error(SL_ERR_SYSTEM, "no memory for the ranking of %lld labels",
                        (long long)labels);
    for (int g = 0; g <= e->groups; g++)
        e->first[g] = labels * g / e->groups;
    return 0;
}

static int create_rankings(struct sl_network *net)
{
    struct sl_runtime *rt = net->rt;
    const struct sl_distribution *d = net->graph->distribution;
    struct sl_evaluation *e = &net->evaluation;
    int code = cut_groups(net);
    for (int g = 0; !code && g < e->groups; g++) {
        const int64_t size = group_size(e, g);
        for (int i = 0; !code && i < d->tiles; i++)
            code =
                sl_tile_create(rt, &e->score[g * d->tiles + i], d->row_cut[i + 1] - d->row_cut[i],
                               size, sizeof(uint64_t), sl_distribution_whole_owner(d, i, 0));
        if (!code)
            code = sl_tile_create(rt, &e->work[g], 2, d->row_cut[d->tiles], sizeof(uint64_t),
                                  owner_of(net, g));
        if (!code)
            code = sl_tile_create(rt, &e->table[g], size, SL_TABLE_RANKINGS, sizeof(double),
                                  owner_of(net, g));
    }
    return code;
}

int sl_evaluation_create(struct sl_network *net)
{
    const struct sl_metric *metric = metric_of(net);
    net->evaluation = (struct sl_evaluation){.groups = 0};
    if (!metric)
        return 0;
    return metric->source == SL_METRIC_OF_RANKINGS
               ? create_rankings(net)
               : create_counts(net, (int64_t)SL_SPLITS * metric->labels.numbers);
}

void sl_evaluation_destroy(struct sl_network *net)
{
    struct sl_evaluation *e = &net->evaluation;
    const int tiles = net->graph->distribution ? net->graph->distribution->tiles : 0;
    for (int i = 0; e->counts && i < tiles; i++)
        sl_tile_destroy(&e->counts[i]);
    for (int i = 0; e->score && i < e->groups * tiles; i++)
        sl_tile_destroy(&e->score[i]);
    for (int g = 0; e->table && g < e->groups; g++) {
        sl_tile_destroy(&e->work[g]);
        sl_tile_destroy(&e->table[g]);
    }
    free(e->counts);
    free(e->first);
    free(e->score);
    free(e->work);
    free(e->table);
    *e = (struct sl_evaluation){.groups = 0};
}

/* Count scores of this rank's rows, and for its groups scores of all rows and room to sort them. */
int64_t sl_evaluation_bytes(const struct sl_network *net)
{
    const struct sl_evaluation *e = &net->evaluation;
    const struct sl_distribution *d = net->graph->distribution;
    const int64_t rows = net->graph->adjacency->rows, entry = sizeof(uint64_t);
    int64_t bytes = 0;
    for (int i = 0; e->counts && i < d->tiles; i++)
        bytes += e->counts[i].owner == net->rt->rank ? sl_tile_bytes(&e->counts[i]) : 0;
    for (int g = 0; g < e->groups; g++) {
        const bool here = owner_of(net, g) == net->rt->rank;
        int64_t own = 0;
        for (int i = 0; i < d->tiles; i++)
            if (e->score[g * d->tiles + i].owner == net->rt->rank)
                own += sl_tile_bytes(&e->score[g * d->tiles + i]);
        bytes += here ? rows * entry * (group_size(e, g) + 2) : own;
    }
    return bytes;
}

/* ---- Submission ---- */

static struct sl_tile *target_of(struct sl_network *net, const struct sl_matrix *logits, int i)
{
    return &net->graph->target[logits->row_order][i];
}

static void submit_counts(struct sl_network *net, const struct sl_matrix *logits)
{
    struct sl_tile *counts = net->evaluation.counts;
    const enum sl_label_decision decision = net->graph->objective.decision;
    const int tiles = net->graph->distribution->tiles;
    const struct sl_metric *metric = metric_of(net);
    const bool errors = metric->source == SL_METRIC_OF_ERRORS;
    for (int i = 0; i < tiles; i++) {
        struct sl_tile *target = target_of(net, logits, i), *z = sl_matrix_tile(logits, i, 0);
        if (errors)
            sl_submit_value_errors(net->rt, target, z, &counts[i]);
        else
            sl_submit_label_counts(net->rt, form_of(net), decision, target, z, &counts[i]);
    }
    sl_reduce(net->rt, counts, tiles, 1, errors ? sl_submit_join_errors : sl_submit_metrics_add);
    sl_tile_send(net->rt, &counts[0], counts[0].owner, 0);
    sl_submit_label_metric(net->rt, &metric->labels, form_of(net), 1, &counts,
                           sl_network_total(net));
    sl_tile_drop(net->rt, &counts[0]);
}

static void rank_group(struct sl_network *net, const struct sl_matrix *logits, int g,
                       struct sl_tile **list)
{
    struct sl_evaluation *e = &net->evaluation;
    const int tiles = net->graph->distribution->tiles;
    for (int i = 0; i < tiles; i++) {
        list[i] = &e->score[g * tiles + i];
        sl_submit_label_scores(net->rt, form_of(net), e->first[g], target_of(net, logits, i),
                               sl_matrix_tile(logits, i, 0), list[i]);
        sl_tile_send(net->rt, list[i], list[i]->owner, owner_of(net, g));
    }
    sl_submit_ranking(net->rt, tiles, list, &e->work[g], &e->table[g]);
    for (int i = 0; i < tiles; i++)
        sl_tile_drop(net->rt, list[i]);
    sl_tile_send(net->rt, &e->table[g], owner_of(net, g), 0);
}

static void submit_rankings(struct sl_network *net, const struct sl_matrix *logits)
{
    struct sl_evaluation *e = &net->evaluation;
    const int tiles = net->graph->distribution->tiles;
    struct sl_tile *table[SL_MOST_TABLES];
    struct sl_tile **list = calloc((size_t)tiles, sizeof(struct sl_tile *));
    if (!list)
        sl_fatal("no memory to submit the ranking of %d tiles", tiles);
    for (int g = 0; g < e->groups; g++) {
        rank_group(net, logits, g, list);
        table[g] = &e->table[g];
    }
    sl_submit_label_metric(net->rt, &metric_of(net)->labels, form_of(net), e->groups, table,
                           sl_network_total(net));
    for (int g = 0; g < e->groups; g++)
        sl_tile_drop(net->rt, table[g]);
    free(list);
}

void sl_evaluation_submit(struct sl_network *net, const struct sl_matrix *logits)
{
    if (net->evaluation.counts)
        submit_counts(net, logits);
    else if (net->evaluation.groups)
        submit_rankings(net, logits);
}
