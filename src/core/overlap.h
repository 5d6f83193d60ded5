/* How much of the time in which messages travel is hidden behind tasks, on this rank.
 *
 * A worker computes from where StarPU starts its task until the task's results were handed over
 * (hooks of the scheduling policy, scheduler.c). A message to this rank travels from when both ends
 * are ready until it arrives. Both ends are ready when the sender announced the message and this
 * rank asked for it. StarPU's thread then receives the payload (message.c). The receiver counts a
 * message, not the sender. On one rank, nothing travels.
 *
 * Always on: a task costs two looks at the clock and two short locks. */
#ifndef SL_CORE_OVERLAP_H
#define SL_CORE_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds, sums since the start of the process. */
struct sl_overlap_times {
    int64_t clock;         /* the steady clock's, of sl_runtime_seconds; of a span: its length */
    int64_t compute;       /* sum over workers */
    int64_t communication; /* in which at least one message travelled */
    int64_t hidden;        /* the part of it in which at least one worker computed */
    int64_t between;       /* the part of it in which a message of another group travelled */
};

static inline double sl_overlap_seconds(int64_t nanoseconds)
{
    return 1e-9 * (double)nanoseconds;
}

/* The sums up to now. */
struct sl_overlap_times sl_overlap_now(void);

/* What came to `times` since they were `before`: 0 <= hidden <= communication <= clock,
 * 0 <= between <= communication, and compute <= workers x clock. */
struct sl_overlap_times sl_overlap_since(const struct sl_overlap_times *times,
                                         const struct sl_overlap_times *before);

/* For scheduler.c: the calling worker starts a task, or ends one. */
void sl_overlap_task(bool starts);

/* For message.c: a message starts to travel, or arrives. `between`: from another group. */
void sl_overlap_message(bool starts, bool between);

/* The sums and what goes on at their end. */
struct sl_overlap {
    struct sl_overlap_times times;
    int computing;  /* workers */
    int travelling; /* messages */
    int between;    /* of them, from other groups */
};

/* Adds up to `clock`, nothing if it is past, then changes how many compute and travel. */
void sl_overlap_change(struct sl_overlap *overlap, int64_t clock, int computing, int travelling);

#endif
