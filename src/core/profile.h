/* Measure where the workers' time goes: tasks by operation and by worker, and idle time.
 *
 * StarPU stamps the start and end of every task. A callback on the worker adds the difference to
 * counters of that worker alone, so workers share nothing while tasks run. StarPU's count of
 * sleeping time is of no use here: an idle worker looks for tasks and yields (scheduler.c). A
 * worker is idle from its first look in vain until it finds a task. If a task is handed over
 * directly, the worker is idle until the task starts. Time neither idle nor in a task is overhead
 * of the runtime, of the callback, or of a core shared with other threads. */
#ifndef SL_CORE_PROFILE_H
#define SL_CORE_PROFILE_H

#include <stdbool.h>

#include <jansson.h>

struct starpu_task;

/* Time tasks from now on. Call this after the runtime's start, before the tasks of interest. */
void sl_profile_enable(void);

/* Start the window in which time is counted. No task may be in flight. */
void sl_profile_begin(void);

/* End the window, again with no task in flight. Return the profile of this rank (a new reference):
 *
 *     {"seconds": length of the window,
 *      "tasks", "busy_seconds", "idle_seconds", "overhead_seconds": sums over workers,
 *      "workers": [{"name", "kind", "tasks", "busy_seconds", "idle_seconds", "overhead_seconds",
 *                   "bytes"}],
 *      "kinds": [{"kind": "CPU" or "CUDA", "workers" and the same sums over these}],
 *      "operations": [{"name", "kind", "tasks", "seconds", "bytes", "flops"}], the longest first,
 *      "bytes_to_gpus", "bytes_from_gpus", "bytes_between_gpus": copies of tiles, with GPUs}
 *
 * Busy, idle and overhead seconds add up to seconds x workers. Bytes are the operands of tasks,
 * each read or written once; a kernel that gathers rows again and again moves more. Tasks declare
 * their flops: the flops of a product, else one per element. */
json_t *sl_profile_end(void);

/* Mark a task before its submission, so that it is counted if tasks are timed; task.c calls this.
 * `bytes`: its operands. */
void sl_profile_watch(struct starpu_task *task, double bytes);

/* Note that the calling worker has looked for a task, or starts or ends one of our tasks;
 * scheduler.c calls these. A GPU worker that looks for a task while it runs one is not idle. */
void sl_profile_looked(bool found);
void sl_profile_runs(bool task);

#endif
