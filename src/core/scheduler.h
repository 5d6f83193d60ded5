/* Scheduling policies, StarPU's and home.h's, made to share cores. */
#ifndef SL_CORE_SCHEDULER_H
#define SL_CORE_SCHEDULER_H

struct starpu_sched_policy;

/* The policy of that name, with idle workers that yield their core. SL_ERR_USAGE names the policies
 * that there are. */
int sl_scheduler_find(const char *name, struct starpu_sched_policy **policy);

/* The name of the index-th policy that there is, NULL beyond the last. Before or after the
 * runtime's start. */
const char *sl_scheduler_name(int index);

#endif
