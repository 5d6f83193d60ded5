/* Where the workers' time goes: tasks by operation and by worker, and the time in which a worker
 * looked for a task in vain.
 *
 * StarPU stamps the start and end of every task; a callback on the worker adds the difference to
 * counters of that worker alone, so nothing is shared between workers while tasks run. StarPU's own
 * count of sleeping time is of no use here, because an idle worker looks for tasks and yields
 * (scheduler.c): a worker is idle from the first look in vain to the look that finds a task, or to
 * the start of the task if it was handed over directly. What is neither idle nor in a task is
 * overhead: of the runtime, of the callback, and of a core shared with other threads. */
#ifndef SL_CORE_PROFILE_H
#define SL_CORE_PROFILE_H

#include <stdbool.h>

#include <jansson.h>

struct starpu_task;

/* From now on tasks are timed. After the runtime's start, before the tasks of interest. */
void sl_profile_enable(void);

/* Starts the window in which time is counted. No task may be in flight. */
void sl_profile_begin(void);

/* Ends it, again with no task in flight. Returns what happened on this rank (a new reference):
 * {"seconds": length of the window, "tasks", "busy_seconds", "idle_seconds", "overhead_seconds":
 * sums over workers, so that the last three add up to seconds x workers,
 * "workers": [{"name", "kind", "tasks", "busy_seconds", "idle_seconds", "overhead_seconds",
 * "bytes"}],
 * "kinds": [{"kind": "CPU" or "CUDA", "workers" and the same sums over those}],
 * "operations": [{"name", "kind", "tasks", "seconds", "bytes", "flops"}], the longest first,
 * "bytes_to_gpus", "bytes_from_gpus", "bytes_between_gpus": copies of tiles, if there are GPUs}.
 * Bytes are those of the tasks' operands, each read or written once: a kernel that gathers rows
 * again and again moves more. Flops are what the tasks declare: those of products, one per element
 * for the rest. */
json_t *sl_profile_end(void);

/* For task.c: has the task counted, if tasks are timed. Before its submission. */
void sl_profile_watch(struct starpu_task *task, double bytes);

/* For scheduler.c: the calling worker has looked for a task; a task of ours starts or ends on it.
 * One with a GPU looks for the next task while one runs, and is not idle then. */
void sl_profile_looked(bool found);
void sl_profile_runs(bool task);

#endif
