/* Scores of several labels and of numbers beside the metric, of the last evaluation. */
#ifndef SL_TRAIN_MORE_SCORES_H
#define SL_TRAIN_MORE_SCORES_H

#include "graphs/network.h"
#include "log/report.h"

enum { SL_MORE_SCORES = 3 }; /* at most */

struct sl_more_scores {
    int count;
    const char *name[SL_MORE_SCORES];
    struct sl_scores of[SL_MORE_SCORES];
};

/* Measure the logits that sl_network_measure has measured last: micro-f1, macro-f1 and
 * label-accuracy of several labels, mae and r2 of numbers (means over the columns), nothing of
 * classes. `numbers`: labels are numbers. The same on all ranks, and on any number of ranks.
 * Collective. It waits, so it is for the end of a run. */
void sl_more_scores_find(struct sl_network *net, bool numbers, struct sl_more_scores *out);

#endif
