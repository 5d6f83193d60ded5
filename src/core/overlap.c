#include "core/overlap.h"

#include <pthread.h>
#include <time.h>

static struct sl_overlap overlap;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void sl_overlap_change(struct sl_overlap *o, int64_t clock, int computing, int travelling)
{
    const int64_t span = clock - o->times.clock;
    if (span > 0) { /* another thread may have read the clock later and come first */
        o->times.clock = clock;
        o->times.compute += span * o->computing;
        if (o->travelling > 0) {
            o->times.communication += span;
            o->times.hidden += o->computing > 0 ? span : 0;
            o->times.between += o->between > 0 ? span : 0;
        }
    }
    o->computing += computing;
    o->travelling += travelling;
}

static int64_t read_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct sl_overlap_times change(int computing, int travelling, int between)
{
    const int64_t clock = read_clock(); /* before the lock, so that it is held shortly */
    pthread_mutex_lock(&lock);
    sl_overlap_change(&overlap, clock, computing, travelling);
    overlap.between += between;
    const struct sl_overlap_times times = overlap.times;
    pthread_mutex_unlock(&lock);
    return times;
}

struct sl_overlap_times sl_overlap_now(void)
{
    return change(0, 0, 0);
}

struct sl_overlap_times sl_overlap_since(const struct sl_overlap_times *times,
                                         const struct sl_overlap_times *before)
{
    return (struct sl_overlap_times){
        .clock = times->clock - before->clock,
        .compute = times->compute - before->compute,
        .communication = times->communication - before->communication,
        .hidden = times->hidden - before->hidden,
        .between = times->between - before->between,
    };
}

void sl_overlap_task(bool starts)
{
    change(starts ? 1 : -1, 0, 0);
}

void sl_overlap_message(bool starts, bool between)
{
    const int by = starts ? 1 : -1;
    change(0, by, between ? by : 0);
}
