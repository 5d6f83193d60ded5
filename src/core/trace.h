/* A picture of some epochs over time, of all ranks: the tasks of every worker, and the messages of
 * every link. Perfetto and chrome://tracing open it.
 *
 * Each worker has a list of its own tasks, so workers share nothing while tasks run. Messages have
 * one list and a lock. Clocks of ranks on one node are one clock. Ranks on several nodes meet a few
 * times at the end, and each corrects its clock by the median difference from rank 0. */
#ifndef SL_CORE_TRACE_H
#define SL_CORE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/runtime.h"

struct starpu_task;

/* Count messages from now on. After the runtime's start, before the first message. */
void sl_trace_enable(void);

/* Record the tasks and messages of epochs `first` to `last`. Before the tasks of interest. */
void sl_trace_open(int64_t first, int64_t last);

/* Assign all tasks submitted from now on to an epoch. Call it on the submitting thread; it waits
 * for nothing. */
void sl_trace_epoch(int64_t epoch);

/* Write the records of all ranks into one file, with no task in flight, and stop recording.
 * Collective. Return 0 or SL_ERR_SYSTEM, the same on all ranks. */
int sl_trace_close(struct sl_runtime *rt, const char *path);

/* Mark a task with the epoch of sl_trace_epoch; task.c calls this. */
void sl_trace_mark(struct starpu_task *task);

/* Note that the calling worker starts or ends a task; scheduler.c calls this. */
void sl_trace_task(const struct starpu_task *task, bool starts);

/* Note a payload that is sent to a process or received from one; message.c calls this on MPI's
 * thread. Return a number for sl_trace_message_ends, -1 where nothing is recorded. Both processes
 * count the messages of a pair and a tag alike, so that both ends of a message have one number. */
enum sl_trace_way { SL_TRACE_SENT, SL_TRACE_RECEIVED };
int64_t sl_trace_message(enum sl_trace_way way, int process, int tag, int64_t bytes);
void sl_trace_message_ends(int64_t number);

#endif
