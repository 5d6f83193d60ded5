/* Metrics of links of validation and test. A metric compares scores of links with scores of
 * negatives. The Open Graph Benchmark defines hits@K and mrr (Hu et al., NeurIPS 2020). */
#ifndef SL_CODELETS_LINK_RANKING_H
#define SL_CODELETS_LINK_RANKING_H

#include "codelets/link_loss.h"
#include "core/split.h"

/* A metric of links.
 *
 *   hits   share of the links whose score is larger than the K-th largest score of a negative; 1
 *          with fewer than K negatives
 *   mrr    mean of 1 / rank. The rank of a link among its own negatives is 1 + the negatives that
 *          score more + half of those that score as much
 *   area   share of pairs of a link and a negative in which the link scores more; equal scores
 *          count half */
enum sl_link_measure { SL_LINKS_UNMEASURED, SL_LINKS_HITS, SL_LINKS_MRR, SL_LINKS_AREA };

struct sl_link_metric {
    enum sl_link_measure measure;
    int64_t most; /* K of hits */
};

/* Return the metric; NaN without links or negatives. score (links), other (negatives); negatives
 * k · (negatives / links) … belong to link k. scratch (negatives). Sorts neither `score` nor
 * `other`. */
double sl_link_metric_value(const struct sl_link_metric *metric, int64_t links, const float *score,
                            int64_t negatives, const float *other, float *scratch);

/* Return the loss of links (link_loss.h), summed over them; 0 without links or negatives. A
 * pairwise loss compares a link with its own negatives; where there are fewer negatives than links,
 * with one.
 */
double sl_link_loss_value(enum sl_link_loss loss, int64_t links, const float *score,
                          int64_t negatives, const float *other);

/* The lists of the links that are measured, one after the other: links, then negatives, of each
 * split. */
struct sl_link_lists_measured {
    int64_t links[SL_SPLITS], negatives[SL_SPLITS];
};

/* Submit metrics = the loss, summed over the links, and the metric, of each split; all else is 0.
 * The values of blocks (count) are scores, the numbers places in the lists. scratch (2, places). */
void sl_submit_link_metric(struct sl_runtime *rt, const struct sl_link_metric *metric,
                           enum sl_link_loss loss, const struct sl_link_lists_measured *lists,
                           int count, struct sl_tile *const *blocks, struct sl_tile *scratch,
                           struct sl_tile *metrics);

#endif
