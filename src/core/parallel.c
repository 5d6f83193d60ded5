#include "core/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/error.h"
#include "core/progress.h"

enum { MOST_THREADS = 1024 };

struct loop {
    void (*body)(void *context, int64_t i);
    void *context;
    int64_t count;
    _Atomic int64_t next;
    char sentence[512]; /* last error of a thread other than the caller's */
};

/* Threads that stay for the loops of this process, one loop at a time. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    struct loop *loop; /* the loop under way; NULL: none */
    int64_t seats;     /* threads that may still join the loop */
    int inside;        /* threads in the loop */
    int threads;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static void work(struct loop *loop)
{
    for (int64_t i; (i = atomic_fetch_add(&loop->next, 1)) < loop->count;) {
        loop->body(loop->context, i);
        sl_progress_add(1);
    }
}

static void *serve(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.seats == 0)
            pthread_cond_wait(&pool.work, &pool.lock);
        struct loop *loop = pool.loop;
        pool.seats--;
        pool.inside++;
        pthread_mutex_unlock(&pool.lock);
        sl_error(SL_OK, "%s", "");
        work(loop);
        pthread_mutex_lock(&pool.lock);
        if (sl_error_message()[0])
            snprintf(loop->sentence, sizeof loop->sentence, "%s", sl_error_message());
        if (--pool.inside == 0)
            pthread_cond_signal(&pool.done);
    }
    return NULL;
}

/* Forget all threads in a child of fork, which has none of them. */
static void forget_threads(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.done, NULL);
    pool.loop = NULL;
    pool.seats = 0;
    pool.inside = pool.threads = 0;
}

static void add_threads(int64_t wanted)
{
    pthread_t thread;
    if (pool.threads == 0 && wanted > 0)
        pthread_atfork(NULL, NULL, forget_threads);
    while (pool.threads < wanted && pthread_create(&thread, NULL, serve, NULL) == 0) {
        pthread_detach(thread);
        pool.threads++;
    }
}

/* Ask up to `threads` threads to join. Return false where another loop is under way. */
static bool open_loop(struct loop *loop, int64_t threads)
{
    pthread_mutex_lock(&pool.lock);
    const bool opened = threads > 0 && !pool.loop;
    if (opened) {
        add_threads(threads);
        pool.loop = loop;
        pool.seats = threads;
        pthread_cond_broadcast(&pool.work);
    }
    pthread_mutex_unlock(&pool.lock);
    return opened;
}

/* Wait for the threads that have joined. */
static void close_loop(const struct loop *loop)
{
    pthread_mutex_lock(&pool.lock);
    pool.seats = 0;
    while (pool.inside > 0)
        pthread_cond_wait(&pool.done, &pool.lock);
    pool.loop = NULL;
    pthread_mutex_unlock(&pool.lock);
    if (loop->sentence[0])
        sl_error(SL_ERR_SYSTEM, "%s", loop->sentence); /* for callers that look at the codes */
}

void sl_parallel_for(int threads, int64_t count, void (*body)(void *context, int64_t i),
                     void *context)
{
    struct loop loop = {.body = body, .context = context, .count = count};
    sl_progress_count(count);
    const bool shared = open_loop(&loop, (threads < count ? threads : count) - 1);
    work(&loop);
    if (shared)
        close_loop(&loop);
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
