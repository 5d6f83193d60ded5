#include "train/more_scores.h"

#include <math.h>
#include <stdlib.h>

#include "codelets/label_counts.h"
#include "codelets/target.h"
#include "codelets/value_errors.h"
#include "core/error.h"
#include "graphs/links.h"
#include "graphs/metric.h"

/* The rows of a tile that this rank owns. */
struct rows {
    const int32_t *target; // (count, sl_target_width)
    const float *z;        // (count, labels)
    int64_t count, labels, ldz;
    enum sl_label_decision decision;
};

/* Scores that are made of one table (labels, numbers). `count` makes the table of a tile's rows;
 * `join` joins it to the sum over other tiles. */
struct kind {
    const struct sl_metric *metrics[SL_MORE_SCORES];
    int64_t numbers;
    void (*count)(const struct rows *rows, double *table);
    void (*join)(int64_t labels, const double *table, double *sum);
};

/* ---- Several labels ---- */

static void count_labels(const struct rows *r, double *table)
{
    sl_kernel_label_counts(&(struct sl_label_counts){SL_TARGET_VALUES, r->decision, r->count,
                                                     r->labels, r->target, r->z, r->ldz},
                           table);
}

static void add_counts(int64_t labels, const double *table, double *sum)
{
    for (int64_t i = 0; i < labels * SL_TABLE_COUNTS; i++)
        sum[i] += table[i];
}

static const struct kind several_labels = {
    {&sl_metric_micro_f1, &sl_metric_macro_f1, &sl_metric_label_accuracy},
    SL_TABLE_COUNTS,
    count_labels,
    add_counts,
};

/* ---- Numbers ---- */

static void count_errors(const struct rows *r, double *table)
{
    sl_kernel_value_errors(&(struct sl_value_errors){r->count, r->labels, r->target, r->z, r->ldz},
                           table);
}

static const struct kind numbers = {
    {&sl_metric_mae, &sl_metric_r2}, SL_TABLE_ERRORS, count_errors, sl_kernel_join_errors};

/* ---- Both ---- */

/* Set sum (labels, kind->numbers), on all ranks, to the tables of all tiles, joined in the order of
 * tiles. */
static void join_tiles(struct sl_network *net, const struct kind *kind, int64_t labels, double *sum)
{
    struct sl_runtime *rt = net->rt;
    const struct sl_matrix *logits = sl_network_logits(net);
    const int tiles = net->graph->distribution->tiles;
    const int64_t size = labels * kind->numbers;
    double *all = calloc((size_t)(tiles * size) + 1, sizeof *all);
    if (!all)
        sl_fatal("no memory for the scores of %lld labels", (long long)labels);
    for (int i = 0; i < tiles; i++) {
        struct sl_tile *z = sl_matrix_tile(logits, i, 0),
                       *target = &net->graph->target[logits->row_order][i];
        if (z->owner != rt->rank)
            continue;
        const struct rows rows = {.target = sl_tile_acquire(rt, target, false),
                                  .z = sl_tile_acquire(rt, z, false),
                                  .count = z->rows,
                                  .labels = labels,
                                  .ldz = z->ld,
                                  .decision = net->graph->objective.decision};
        kind->count(&rows, all + i * size);
        sl_tile_release(z);
        sl_tile_release(target);
    }
    sl_runtime_share(rt, all, tiles * size);
    for (int i = 0; i < tiles; i++)
        kind->join(labels, all + i * size, sum);
    free(all);
}

/* ---- Links ---- */

static const struct sl_metric *const of_links[] = {
    &sl_metric_roc_auc, &sl_metric_mrr,     &sl_metric_hits_10,
    &sl_metric_hits_20, &sl_metric_hits_50, &sl_metric_hits_100,
};

enum { LINK_METRICS = sizeof of_links / sizeof *of_links };
_Static_assert(LINK_METRICS + 1 <= SL_MORE_SCORES, "more metrics of links than scores");

/* Return a metric of the links of a split, or, for NULL, their mean loss. */
static double link_score(const struct sl_network *net, const struct sl_metric *metric,
                         enum sl_split split, const float *score, float *scratch)
{
    const struct sl_link_lists_measured *lists = &net->graph->links->lists;
    const int64_t links = lists->links[split], negatives = lists->negatives[split];
    if (metric)
        return sl_link_metric_value(&metric->links, links, score, negatives, score + links,
                                    scratch);
    return links > 0 ? sl_link_loss_value(net->graph->objective.loss->link_loss, links, score,
                                          negatives, score + links) /
                           (double)links
                     : NAN;
}

/* Rank 0 has the scores of all links. */
static void score_links(struct sl_network *net, struct sl_more_scores *out)
{
    struct sl_tile *tile = &net->graph->links->scores;
    const struct sl_link_lists_measured *lists = &net->graph->links->lists;
    double all[SL_MORE_SCORES * SL_SPLITS] = {0.0};
    out->count = out->printed = LINK_METRICS + 1;
    if (tile->owner == net->rt->rank) {
        float *scores = sl_tile_acquire(net->rt, tile, true);
        const float *next = scores;
        for (int s = 0; s < SL_SPLITS; s++) {
            for (int k = 0; k < out->count; k++)
                all[k * SL_SPLITS + s] = link_score(net, k > 0 ? of_links[k - 1] : NULL,
                                                    (enum sl_split)s, next, scores + tile->ld);
            next += lists->links[s] + lists->negatives[s];
        }
        sl_tile_release(tile);
    }
    sl_runtime_share(net->rt, all, out->count * SL_SPLITS);
    for (int k = 0; k < out->count; k++) {
        out->name[k] = k > 0 ? of_links[k - 1]->name : sl_metric_loss.name;
        for (int s = 0; s < SL_SPLITS; s++)
            out->of[k].of[s] = all[k * SL_SPLITS + s];
    }
}

void sl_more_scores_find(struct sl_network *net, struct sl_more_scores *out)
{
    const struct sl_loss *loss = net->graph->objective.loss;
    const struct kind *kind = loss->classes ? &several_labels : &numbers;
    const int64_t labels = sl_network_logits(net)->cols;
    *out = (struct sl_more_scores){.count = 0, .printed = 2};
    if (net->graph->links)
        score_links(net, out);
    if (loss->form != SL_TARGET_VALUES)
        return;
    double *table = calloc((size_t)(labels * kind->numbers) + 1, sizeof *table);
    if (!table)
        sl_fatal("no memory for the scores of %lld labels", (long long)labels);
    join_tiles(net, kind, labels, table);
    for (; out->count < SL_MORE_SCORES && kind->metrics[out->count]; out->count++) {
        const struct sl_metric *metric = kind->metrics[out->count];
        out->name[out->count] = metric->name;
        for (int s = SL_SPLIT_TRAIN; s < SL_SPLITS; s++)
            out->of[out->count].of[s] = sl_label_metric_value(
                &metric->labels, SL_TARGET_VALUES, 1, &labels, (const double *const[]){table}, s);
    }
    free(table);
}
