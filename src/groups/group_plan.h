/* What training in groups of ranks takes, before there is a group. */
#ifndef SL_GROUPS_GROUP_PLAN_H
#define SL_GROUPS_GROUP_PLAN_H

#include "batches/batches.h"
#include "predict/group.h"

/* Figures of an epoch, of the slowest group where nothing else is said. */
struct sl_group_plan {
    int hops;         /* that are preloaded; 0: as --max-hop and --batches say */
    int steps;        /* of the optimizer */
    double share;     /* outer vertices over inner ones */
    double redundant; /* adjacency entries in rows of outer vertices, over all */
    double rows; /* that travel between all groups in an epoch, both ways: once for each clone */
    double computing, messages;             /* seconds; of messages between groups */
    double waiting;                         /* for the slowest group: the mean of all groups */
    double between_bytes, between_messages; /* of all groups */
    struct sl_group_prediction inside;      /* likewise; its seconds: of the slowest group */
};

/* The seconds of an epoch. */
static inline double sl_group_plan_seconds(const struct sl_group_plan *plan)
{
    return plan->computing + plan->inside.seconds + plan->messages;
}

/* Groups that are not there. */
struct sl_group_plan_options {
    int groups, each;               /* ranks of each */
    struct sl_group_options inside; /* all but what follows from the number of hops */
};

/* Predict exact groups, if the configuration has groups, with numbers of hops up to that of the
 * layers that aggregate. Of numbers with as many refreshings, only the least is in the list. Where
 * the configuration has a sample or batches (not co:auto), they come last: the first epoch. This
 * process selects for all groups. `rt` is one rank. The caller frees the list. Return 0, or a code
 * of sl_batches_create or sl_group_predict. */
int sl_group_plan_predict(struct sl_runtime *rt, const struct sl_source *source,
                          const struct sl_config *config,
                          const struct sl_group_plan_options *options, struct sl_group_plan **list,
                          int *count);

#endif
