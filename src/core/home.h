/* "home", a scheduling policy beside StarPU's: a task goes to the NUMA node where its output is, as
 * the first touch of memory has it (sl_runtime_touch; the share of a matrix that is worker w's is
 * on w's node), and leaves it only for a worker that has nothing to do. On a node, workers take
 * tasks in the order in which they became ready, urgent ones first, so that they are at
 * neighbouring tiles, whose rows they have in one cache. */
#ifndef SL_CORE_HOME_H
#define SL_CORE_HOME_H

struct starpu_sched_policy;
struct starpu_task;

extern struct starpu_sched_policy sl_home_policy;

/* Before it is submitted: where the task's output is among the tiles of its matrix, 0 … 1; below 0:
 * with whoever made the task ready. */
void sl_home_set(struct starpu_task *task, float place);

/* Asks the CPU workers for their nodes: once, after StarPU's start. Until then there is one. */
void sl_home_start(void);

/* Sets the node of the index-th CPU worker; for tests. Not while tasks run. */
void sl_home_set_node(int index, int node);

#endif
