/* Additional scores of several labels or of numbers, from the last evaluation. */
#ifndef SL_TRAIN_MORE_SCORES_H
#define SL_TRAIN_MORE_SCORES_H

#include "graphs/network.h"
#include "log/report.h"

enum { SL_MORE_SCORES = 3 }; /* the most scores */

struct sl_more_scores {
    int count;
    const char *name[SL_MORE_SCORES];
    struct sl_scores of[SL_MORE_SCORES];
};

/* Score the logits of the last sl_network_measure. Several labels: micro-f1, macro-f1 and
 * label-accuracy. Numbers: mae and r2. Classes: nothing. Results are the same on all ranks.
 * Collective. The function waits, so
 * it is for the end of a run. */
void sl_more_scores_find(struct sl_network *net, struct sl_more_scores *out);

#endif
