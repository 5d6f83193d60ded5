/* How many hops a group preloads. */
#ifndef SL_TRAIN_PRELOAD_H
#define SL_TRAIN_PRELOAD_H

#include "predict/group.h"
#include "train/batches.h"

enum { SL_PRELOAD_REASON = 256 };

/* What preloading h hops is predicted to be, of the slowest group. */
struct sl_preload {
    int hops;
    double share;     /* outer vertices over inner ones */
    double redundant; /* adjacency entries in rows of outer vertices, over all */
    double rows; /* that travel between all groups in an epoch, both ways: once for each clone */
    double computing, messages;             /* seconds of an epoch; of messages between groups */
    double between_bytes, between_messages; /* of an epoch, of all groups */
    struct sl_group_prediction inside;      /* likewise; its seconds: of the slowest group */
};

/* The seconds of an epoch. */
static inline double sl_preload_seconds(const struct sl_preload *preload)
{
    return preload->computing + preload->inside.seconds + preload->messages;
}

/* Groups that are not there. */
struct sl_preload_groups {
    int groups, each;               /* ranks of each */
    struct sl_group_options inside; /* all but what follows from the number of hops */
};

/* Predict numbers of hops up to that of the layers that aggregate. Of numbers with as many
 * refreshings, only the least is in the list. This process selects for all groups. `rt` is one
 * rank. The caller frees the list. Return 0, or a code of sl_batches_create or sl_group_predict. */
int sl_preload_predict(struct sl_runtime *rt, const struct sl_source *source,
                       const struct sl_config *config, const struct sl_preload_groups *groups,
                       struct sl_preload **list, int *count);

/* Settle --preload-hops auto: the number of hops with the least predicted time of an epoch. Rows
 * of other groups take messages; more hops take more computing instead (GraNNDis, condition 7). Say
 * why in `reason` (SL_PRELOAD_REASON); leave it alone where the user chose. The vertices are in
 * order. Collective. Return 0, or a code of sl_batches_create. */
int sl_preload_choose(struct sl_runtime *rt, const struct sl_source *source,
                      struct sl_config *config, char *reason);

#endif
