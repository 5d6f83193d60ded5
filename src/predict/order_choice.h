/* Whether another order of the vertices pays for itself. */
#ifndef SL_PREDICT_ORDER_CHOICE_H
#define SL_PREDICT_ORDER_CHOICE_H

#include <stdbool.h>

#include "data/source.h"
#include "predict/scenario.h"

struct sl_order_choice {
    const char *order; /* "rabbit" or "none" */
    double misses[2];  /* shares of gathered rows that miss a core's cache, and all caches */
    double cost, gain; /* predicted seconds: to find and apply the order; saved in all epochs */
    char reason[256];  /* a sentence */
};

/* Choose the order that --order auto takes. The same source, training, ranks and number of cores
 * give the same choice. `whole`: there are several ranks, and rank 0 reads the whole adjacency
 * anyway. Return 0 or SL_ERR_SYSTEM. */
int sl_order_choose(const struct sl_runtime *rt, const struct sl_source *source,
                    const struct sl_training *training, bool whole, struct sl_order_choice *out);

#endif
