#include "core/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "core/progress.h"

enum { MOST_THREADS = 1024 };

struct loop {
    void (*body)(void *context, int64_t i);
    void *context;
    int64_t count;
    _Atomic int64_t next;
};

static void *work(void *argument)
{
    struct loop *loop = argument;
    for (int64_t i; (i = atomic_fetch_add(&loop->next, 1)) < loop->count;) {
        loop->body(loop->context, i);
        sl_progress_add(1);
    }
    return NULL;
}

void sl_parallel_for(int threads, int64_t count, void (*body)(void *context, int64_t i),
                     void *context)
{
    struct loop loop = {body, context, count, 0};
    pthread_t others[MOST_THREADS];
    int started = 0;
    sl_progress_count(count);
    while (started + 1 < threads && started + 1 < count && started < MOST_THREADS &&
           pthread_create(&others[started], NULL, work, &loop) == 0)
        started++;
    work(&loop);
    for (int t = 0; t < started; t++)
        pthread_join(others[t], NULL);
}

struct ranges {
    void (*body)(void *context, int64_t begin, int64_t end);
    void *context;
    int64_t count;
};

enum { RANGE = 4096 };

static void do_range(void *context, int64_t i)
{
    const struct ranges *ranges = context;
    const int64_t begin = i * RANGE, left = ranges->count - begin;
    ranges->body(ranges->context, begin, begin + (left < RANGE ? left : RANGE));
}

void sl_parallel_for_ranges(int threads, int64_t count,
                            void (*body)(void *context, int64_t begin, int64_t end), void *context)
{
    struct ranges ranges = {body, context, count};
    sl_parallel_for(threads, (count + RANGE - 1) / RANGE, do_range, &ranges);
}

int sl_parallel_threads(int64_t wanted)
{
    cpu_set_t allowed;
    if (wanted <= 0)
        wanted = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
    return wanted < MOST_THREADS ? (int)wanted : MOST_THREADS;
}
