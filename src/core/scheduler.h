/* Scheduling policies, StarPU's and home.h's, made to share cores. */
#ifndef SL_CORE_SCHEDULER_H
#define SL_CORE_SCHEDULER_H

struct starpu_sched_policy;

/* Set *policy to the policy of that name, with idle workers that yield their core. SL_ERR_USAGE
 * lists the known policies. */
int sl_scheduler_find(const char *name, struct starpu_sched_policy **policy);

/* Return the name of the index-th policy, NULL beyond the last. Call it before or after the
 * runtime's start. */
const char *sl_scheduler_name(int index);

#endif
