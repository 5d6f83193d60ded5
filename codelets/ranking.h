/* Rankings of labels by their scores, and metrics of tables of labels. */
#ifndef SL_CODELETS_RANKING_H
#define SL_CODELETS_RANKING_H

#include "codelets/label_scores.h"
#include "codelets/metrics.h"
#include "core/split.h"

/* Of a label and a split; NaN where the split lacks a vertex with the label, or one without. */
enum { SL_AREA, SL_PRECISION, SL_RANKINGS };

/* Numbers of a label in a table (labels, SL_TABLE_RANKINGS): SL_RANKINGS for each split. */
enum { SL_TABLE_RANKINGS = SL_SPLITS * SL_RANKINGS };

/* Sort `count` entries by score, with as much scratch memory; entries of SL_NO_SCORE go. result:
 * the area under the receiver operating characteristic, where equal scores count half, and the
 * average precision, Σ (recall step · precision), of each split. */
void sl_kernel_ranking(int64_t count, uint64_t *entries, uint64_t *scratch,
                       double result[SL_TABLE_RANKINGS]);

/* The same on a GPU, entries without a score among them; it leaves other entries, in any order. */
void sl_cuda_ranking(int64_t count, uint64_t *entries, uint64_t *scratch, double *result,
                     struct sl_cuda_queue queue);

/* entries (rows) = the first column of scores (rows, labels), to be ranked. */
void sl_cuda_ranking_gather(int64_t rows, int64_t labels, const uint64_t *scores, uint64_t *entries,
                            struct sl_cuda_queue queue);

/* Submit table (labels, SL_TABLE_RANKINGS) of double, from `count` tiles of scores (rows, labels).
 * work (2, all rows) of uint64. */
void sl_submit_ranking(struct sl_runtime *rt, int count, struct sl_tile *const *scores,
                       struct sl_tile *work, struct sl_tile *table);

/* A metric from the numbers of labels. `ratio` sets *top and *bottom of one label. The metric is
 * Σ top / Σ bottom if `pooled`. Else it is the mean of top / bottom over the labels with a bottom
 * other than 0; NaN without any. */
struct sl_label_metric {
    void (*ratio)(enum sl_target_form form, const double *numbers, double *top, double *bottom);
    bool pooled;
    int numbers; /* of a label and split */
};

double sl_label_metric_value(const struct sl_label_metric *metric, enum sl_target_form form,
                             int count, const int64_t *labels, const double *const *tables,
                             int split);

enum { SL_MOST_TABLES = 64 };

/* A task of the host, which calls `ratio`. Submit metrics(SL_METRIC_VALUE + split) = the metric of
 * each split, from `count` tables, at most SL_MOST_TABLES, one after the other. All else of
 * `metrics` stays. */
void sl_submit_label_metric(struct sl_runtime *rt, const struct sl_label_metric *metric,
                            enum sl_target_form form, int count, struct sl_tile *const *tables,
                            struct sl_tile *metrics);

#endif
