/* Additional scores of several labels, of numbers or of links, from the last evaluation. */
#ifndef SL_TRAIN_MORE_SCORES_H
#define SL_TRAIN_MORE_SCORES_H

#include "graphs/network.h"
#include "log/report.h"

enum { SL_MORE_SCORES = 7 }; /* the most scores */

struct sl_more_scores {
    int count;
    int printed; /* how many of them belong into a short table */
    const char *name[SL_MORE_SCORES];
    struct sl_scores of[SL_MORE_SCORES];
};

/* Score the logits of the last sl_network_measure. Several labels: micro-f1, macro-f1 and
 * label-accuracy. Numbers: mae and r2. Links: loss, roc-auc, mrr and hits@K. Classes: nothing.
 * Results are the same on all ranks. Collective. The function waits, so it is for the end of a run.
 */
void sl_more_scores_find(struct sl_network *net, struct sl_more_scores *out);

#endif
