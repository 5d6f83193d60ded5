/* Metrics: an evaluation measures one for each split, and early stopping follows it. */
#ifndef SL_GRAPHS_METRIC_H
#define SL_GRAPHS_METRIC_H

#include "codelets/label_counts.h"
#include "codelets/link_ranking.h"
#include "codelets/metrics.h"
#include "codelets/ranking.h"
#include "codelets/value_errors.h"
#include "graphs/loss.h"

/* The data from which a metric is made. */
enum sl_metric_source {
    SL_METRIC_OF_SUMS,     /* sums that the loss counts anyway, divided by the split's vertices */
    SL_METRIC_OF_COUNTS,   /* right and wrong labels (codelets/label_counts.h) */
    SL_METRIC_OF_ERRORS,   /* errors of numbers (codelets/value_errors.h) */
    SL_METRIC_OF_RANKINGS, /* scores of labels, sorted (codelets/ranking.h) */
    SL_METRIC_OF_LINKS,    /* scores of links (codelets/link_ranking.h) */
};

struct sl_metric {
    const char *name; /* name for --metric */
    enum sl_metric_source source;
    int index;  /* place of split 0 in sl_network_total; split s is s further */
    bool falls; /* smaller is better */
    bool of_numbers, of_classes, of_several; /* labels that it suits (data/labels.h) */
    struct sl_link_metric
        links; /* how it measures links; all zero: it does not, unless it is the loss */
    struct sl_label_metric labels; /* ratio of labels, unless the source is sums */
};

/* The metrics. Each has an entry and a file metric_<id>.c with sl_metric_<id>. --metric takes the
 * name in quotes.
 *
 *   loss              mean loss of the vertices, without class weights and label smoothing
 *   accuracy          share of the vertices whose label is right; of several labels, all of them
 *   micro_f1          F1 of all pairs of vertex and label
 *   macro_f1          mean F1 of the labels
 *   label_accuracy    mean over the labels of the share of right vertices
 *   mae               mean over the columns of the mean absolute error
 *   r2                mean over the columns of the explained share of the variance
 *   roc_auc           mean over the labels of the area under the ROC curve
 *   average_precision mean over the labels of the average precision
 *   hits_10 …, mrr    of links (codelets/link_ranking.h); roc_auc likewise */
#define SL_METRIC_KINDS(ENTRY)                    \
    ENTRY(loss, "loss")                           \
    ENTRY(accuracy, "accuracy")                   \
    ENTRY(micro_f1, "micro-f1")                   \
    ENTRY(macro_f1, "macro-f1")                   \
    ENTRY(label_accuracy, "label-accuracy")       \
    ENTRY(mae, "mae")                             \
    ENTRY(r2, "r2")                               \
    ENTRY(roc_auc, "roc-auc")                     \
    ENTRY(average_precision, "average-precision") \
    ENTRY(hits_10, "hits@10")                     \
    ENTRY(hits_20, "hits@20")                     \
    ENTRY(hits_50, "hits@50")                     \
    ENTRY(hits_100, "hits@100")                   \
    ENTRY(mrr, "mrr")

#define SL_METRIC_DECLARED(id, name) extern const struct sl_metric sl_metric_##id;
SL_METRIC_KINDS(SL_METRIC_DECLARED)
#undef SL_METRIC_DECLARED

/* Names that --metric takes: "|loss|accuracy|…". */
#define SL_METRIC_NAMED(id, name) "|" name
#define SL_METRIC_NAMES           SL_METRIC_KINDS(SL_METRIC_NAMED)

/* Return the metric of that name, or NULL. */
const struct sl_metric *sl_metric_find(const char *name);

/* Return the metric that suits a loss. */
const struct sl_metric *sl_metric_of_loss(const struct sl_loss *loss);

/* Return the metric that evaluations show beside `metric`, or NULL: what a loss or a share of whole
 * vertices says little of. */
const struct sl_metric *sl_metric_shown(const struct sl_loss *loss, const struct sl_metric *metric);

/* The loss that training reduces, and the metric that evaluation measures. */
struct sl_objective {
    const struct sl_loss *loss;
    const struct sl_metric *metric;
    const struct sl_metric *shown; /* metric of labels beside a metric of sums; NULL: none */
    enum sl_label_decision decision;
    double smoothing; /* label smoothing */
    bool balanced;    /* classes weigh as much as each other */
};

#endif
