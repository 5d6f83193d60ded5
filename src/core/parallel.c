#include "core/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/progress.h"

enum { MOST_THREADS = 1024 };

struct loop {
    void (*body)(void *context, int64_t i);
    void *context;
    int64_t count;
    _Atomic int64_t next;
};

/* One of the loop's threads, and the sentence of its last error. */
struct worker {
    struct loop *loop;
    pthread_t thread;
    char sentence[512];
};

static void work(struct loop *loop)
{
    for (int64_t i; (i = atomic_fetch_add(&loop->next, 1)) < loop->count;) {
        loop->body(loop->context, i);
        sl_progress_add(1);
    }
}

static void *work_beside(void *argument)
{
    struct worker *worker = argument;
    work(worker->loop);
    snprintf(worker->sentence, sizeof worker->sentence, "%s", sl_error_message());
    return NULL;
}

void sl_parallel_for(int threads, int64_t count, void (*body)(void *context, int64_t i),
                     void *context)
{
    struct loop loop = {body, context, count, 0};
    const int64_t most = threads < count ? threads : count;
    struct worker *others =
        most > 1 ? calloc((size_t)most - 1, sizeof *others) : NULL; /* NULL: works alone */
    int started = 0;
    sl_progress_count(count);
    for (; others && started + 1 < most; started++) {
        others[started].loop = &loop;
        if (pthread_create(&others[started].thread, NULL, work_beside, &others[started]))
            break;
    }
    work(&loop);
    for (int t = 0; t < started; t++) {
        pthread_join(others[t].thread, NULL);
        if (others[t].sentence[0])
            sl_error(SL_ERR_SYSTEM, "%s", others[t].sentence); /* for whoever looks at the codes */
    }
    free(others);
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
