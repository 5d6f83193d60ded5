/* How many hops a group preloads. */
#ifndef SL_TRAIN_PRELOAD_H
#define SL_TRAIN_PRELOAD_H

#include "train/batches.h"

enum { SL_PRELOAD_REASON = 256 };

/* What preloading h hops is predicted to be, of the slowest group. */
struct sl_preload {
    int hops;
    double share;               /* outer vertices over inner ones */
    double redundant;           /* adjacency entries in rows of outer vertices, over all */
    double rows;                /* that travel between all groups in an epoch, both ways */
    double computing, messages; /* seconds of an epoch */
};

/* Predict 1, 2, … hops, as many as layers aggregate, for `groups` groups of `each` ranks that are
 * not there: this process selects for all groups. `rt` is one rank. The caller frees the list.
 * Return 0, or a code of sl_batches_create. */
int sl_preload_predict(struct sl_runtime *rt, const struct sl_source *source,
                       const struct sl_config *config, int groups, int each,
                       const struct sl_rates *rates, struct sl_preload **list, int *count);

/* Settle --preload-hops auto: the number of hops with the least predicted time of an epoch. Rows
 * of other groups take messages; more hops take more computing instead (GraNNDis, condition 7). Say
 * why in `reason` (SL_PRELOAD_REASON); leave it alone where the user chose. The vertices are in
 * order. Collective. Return 0, or a code of sl_batches_create. */
int sl_preload_choose(struct sl_runtime *rt, const struct sl_source *source,
                      struct sl_config *config, char *reason);

#endif
