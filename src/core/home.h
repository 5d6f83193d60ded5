/* The scheduling policy "home", beside StarPU's own. A task goes to the NUMA node of its output, as
 * the first touch of memory placed it (sl_runtime_touch). Worker w's share of a matrix is on w's
 * node. A task leaves its node only for a worker that has nothing to do. Workers of a node take
 * urgent tasks first, then the task that became ready first. So workers of a node are at
 * neighbouring tiles, whose rows share one cache. */
#ifndef SL_CORE_HOME_H
#define SL_CORE_HOME_H

struct starpu_sched_policy;
struct starpu_task;

extern struct starpu_sched_policy sl_home_policy;

/* Set where a task's output lies among the tiles of its matrix, 0 … 1, before the task is
 * submitted. Below 0, the task goes to the node of the worker that makes it ready. */
void sl_home_set(struct starpu_task *task, float place);

/* Ask the CPU workers for their NUMA nodes, once, after StarPU's start. Before this call, all
 * workers count as one node. */
void sl_home_start(void);

/* Set the node of the index-th CPU worker, for tests. Do not call it while tasks run. */
void sl_home_set_node(int index, int node);

#endif
