/* Whether another order of the vertices pays for itself. */
#ifndef SL_PREDICT_ORDER_CHOICE_H
#define SL_PREDICT_ORDER_CHOICE_H

#include <stdbool.h>

#include "data/source.h"
#include "predict/scenario.h"

struct sl_order_choice {
    const char *order; /* "rabbit", "random" or "none" */
    double misses[2];  /* shares of gathered rows that miss a core's cache, and all caches */
    double cost, gain; /* predicted seconds: to find and apply the order; saved in all epochs */
    char reason[256];  /* a sentence */
};

/* Return the seconds in which a usual core sums rows in all aggregations of an epoch. */
double sl_order_sum_seconds(const struct sl_source *source, const struct sl_training *training);

/* 1D in the order that there is, and in random order. */
struct sl_random_order {
    bool counted;
    double stages[2];  /* how long stages take, 1: as long as if all ranks had as much to do */
    double seconds[2]; /* predicted for an epoch, without the effect of random order on caches */
};

/* Predict 1D on these ranks in both orders. Leave `counted` false where a rank's share of the
 * adjacency is so large that reading it once more takes long. Collective. Return 0, SL_ERR_SYSTEM
 * or SL_ERR_DATA, the same on all ranks. */
int sl_random_order_predict(struct sl_runtime *rt, const struct sl_source *source,
                            const struct sl_training *training, struct sl_random_order *out);

/* Choose the order that --order auto takes. The same source, training, ranks and number of cores
 * give the same choice. `whole`: there are several ranks, and rank 0 reads the whole adjacency
 * anyway. `random`: 1D's prediction, where the ranks are 1D for certain; or NULL. Return 0 or
 * SL_ERR_SYSTEM. */
int sl_order_choose(const struct sl_runtime *rt, const struct sl_source *source,
                    const struct sl_training *training, bool whole,
                    const struct sl_random_order *random, struct sl_order_choice *out);

#endif
