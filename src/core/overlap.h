/* Measure the share of messages' travelling time that tasks hide, on this rank.
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
    int64_t clock;         /* steady clock of sl_runtime_seconds; in a difference, its length */
    int64_t compute;       /* computing time, summed over workers */
    int64_t communication; /* time in which at least one message travelled */
    int64_t hidden;        /* part of `communication` in which at least one worker computed */
    int64_t between; /* part of `communication` in which a message of another group travelled */
};

static inline double sl_overlap_seconds(int64_t nanoseconds)
{
    return 1e-9 * (double)nanoseconds;
}

/* Return the sums up to now. */
struct sl_overlap_times sl_overlap_now(void);

/* Return the difference of `times` and `before`. It has 0 <= hidden <= communication <= clock, 0 <=
 * between <= communication, and compute <= workers x clock. */
struct sl_overlap_times sl_overlap_since(const struct sl_overlap_times *times,
                                         const struct sl_overlap_times *before);

/* Note that the calling worker starts or ends a task; scheduler.c calls this. */
void sl_overlap_task(bool starts);

/* Note that a message starts to travel or arrives; message.c calls this. `between`: from another
 * group. */
void sl_overlap_message(bool starts, bool between);

/* Sums of times up to a clock value, with the workers and messages active at this value. */
struct sl_overlap {
    struct sl_overlap_times times;
    int computing;  /* workers that compute */
    int travelling; /* messages that travel */
    int between;    /* messages that travel from other groups */
};

/* Add the time up to `clock` (nothing if it is past), then add to the counts of computing workers
 * and travelling messages. */
void sl_overlap_change(struct sl_overlap *overlap, int64_t clock, int computing, int travelling);

#endif
