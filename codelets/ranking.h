/* Rankings of labels by their scores, and metrics of tables of labels. */
#ifndef SL_CODELETS_RANKING_H
#define SL_CODELETS_RANKING_H

#include "codelets/label_scores.h"
#include "codelets/metrics.h"
#include "core/split.h"

/* Metrics of a label in a split: area under the ROC curve and average precision. NaN where all, or
 * no, vertices of the split have the label. */
enum { SL_AREA, SL_PRECISION, SL_RANKINGS };

/* Numbers of a label in a table (labels, SL_TABLE_RANKINGS): SL_RANKINGS for each split. */
enum { SL_TABLE_RANKINGS = SL_SPLITS * SL_RANKINGS };

/* Sort `count` entries by score, with as much scratch memory; entries of SL_NO_SCORE are dropped.
 * result: the area under the receiver operating characteristic, where equal scores count half, and
 * the average precision, Σ (recall step · precision), of each split. */
void sl_kernel_ranking(int64_t count, uint64_t *entries, uint64_t *scratch,
                       double result[SL_TABLE_RANKINGS]);

/* Do the work of sl_kernel_ranking on a GPU. The contents of `entries` are undefined afterwards. */
void sl_cuda_ranking(int64_t count, uint64_t *entries, uint64_t *scratch, double *result,
                     struct sl_cuda_queue queue);

/* Set entries (rows) to the first column of scores (rows, labels), to be ranked. */
void sl_cuda_ranking_gather(int64_t rows, int64_t labels, const uint64_t *scores, uint64_t *entries,
                            struct sl_cuda_queue queue);

/* Submit table (labels, SL_TABLE_RANKINGS) of double, from `count` tiles of scores (rows, labels).
 * work (2, all rows) of uint64. */
void sl_submit_ranking(struct sl_runtime *rt, int count, struct sl_tile *const *scores,
                       struct sl_tile *work, struct sl_tile *table);

/* A metric that combines the numbers of labels. `ratio` sets *top and *bottom for one label. The
 * metric is Σ top / Σ bottom if `pooled`. Else it is the mean of top / bottom over the labels with
 * a bottom other than 0; NaN without any. */
struct sl_label_metric {
    void (*ratio)(enum sl_target_form form, const double *numbers, double *top, double *bottom);
    bool pooled;
    int numbers; /* numbers in the table for each label and split */
};

double sl_label_metric_value(const struct sl_label_metric *metric, enum sl_target_form form,
                             int count, const int64_t *labels, const double *const *tables,
                             int split);

enum { SL_MOST_TABLES = 64 };

/* Submit metrics(SL_METRIC_VALUE + split) = the metric of each split, from `count` tables, at most
 * SL_MOST_TABLES, one after the other. All else in `metrics` stays. The task calls `ratio` on the
 * host. */
void sl_submit_label_metric(struct sl_runtime *rt, const struct sl_label_metric *metric,
                            enum sl_target_form form, int count, struct sl_tile *const *tables,
                            struct sl_tile *metrics);

#endif
