/* Predicts training in groups of ranks, before groups are made. */
#ifndef SL_GROUPS_GROUP_PLAN_H
#define SL_GROUPS_GROUP_PLAN_H

#include "batches/batches.h"
#include "predict/group.h"

/* Figures of an epoch. Those without another word are the slowest group's. */
struct sl_group_plan {
    int hops;         /* preloaded hops; 0: as --max-hop and --batches say */
    int steps;        /* steps of the optimizer */
    double share;     /* outer vertices over inner vertices */
    double redundant; /* adjacency entries in rows of outer vertices, over all entries */
    double rows;      /* rows that all groups send and receive; a row counts once for each clone */
    double computing, messages; /* seconds of computing, and of messages between groups */
    double waiting;             /* mean seconds that groups wait for the slowest */
    double between_bytes, between_messages; /* bytes and messages between all groups */
    struct sl_group_prediction inside;      /* inside all groups; seconds of the slowest */
};

/* Return the predicted seconds of an epoch. */
static inline double sl_group_plan_seconds(const struct sl_group_plan *plan)
{
    return plan->computing + plan->inside.seconds + plan->messages;
}

/* Options of groups to predict. */
struct sl_group_plan_options {
    int groups, each;               /* number of groups, ranks of each group */
    struct sl_group_options inside; /* everything but `refresh`, which hops decide */
};

/* Predict epochs of exact groups, if the configuration has groups, for 1 hop up to as many as
 * layers aggregate. If several numbers of hops need as many refreshings, list only the least. Then
 * predict the first epoch of a sample or of batches (not co:auto), if the configuration has any.
 * This process selects the graphs of all groups. `rt` is one rank. The caller frees *list (*count).
 * Return 0, or a code of sl_batches_create or sl_group_predict. */
int sl_group_plan_predict(struct sl_runtime *rt, const struct sl_source *source,
                          const struct sl_config *config,
                          const struct sl_group_plan_options *options, struct sl_group_plan **list,
                          int *count);

#endif
