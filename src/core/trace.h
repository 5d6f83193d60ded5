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

/* What is submitted from now on belongs to an epoch. On the submitting thread; nothing is waited
 * for. */
void sl_trace_epoch(int64_t epoch);

/* Write what was recorded on all ranks into one file, with no task in flight, and record no more.
 * Collective. Return 0 or SL_ERR_SYSTEM, the same on all ranks. */
int sl_trace_close(struct sl_runtime *rt, const char *path);

/* For task.c: the task is of the epoch that is submitted. */
void sl_trace_mark(struct starpu_task *task);

/* For scheduler.c: the calling worker starts or ends a task. */
void sl_trace_task(const struct starpu_task *task, bool starts);

/* For message.c, with MPI's thread: a payload is sent to a process, or received from one. Return a
 * number for sl_trace_message_ends, -1 where nothing is recorded. Both processes count all messages
 * of a pair and a tag alike, so that both ends of a message have one number in the picture. */
enum sl_trace_way { SL_TRACE_SENT, SL_TRACE_RECEIVED };
int64_t sl_trace_message(enum sl_trace_way way, int process, int tag, int64_t bytes);
void sl_trace_message_ends(int64_t number);

#endif
