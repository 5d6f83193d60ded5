#include "bench/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/binding.h"
#include "core/error.h"
#include "core/runtime.h"

struct member {
    _Alignas(64) struct sl_team *team;
    int index;
    pthread_t thread;
    double start, end; /* seconds of the last work */
};

struct sl_team {
    struct sl_binding binding;
    int size, started;
    struct member *members;
    pthread_mutex_t lock;
    pthread_cond_t called, done;
    /* The next members are guarded by the lock. */
    long call; /* number of the current call; a member works on each call once */
    int wanted, working;
    bool over;
    sl_team_work *work;
    void *context;
    /* Not guarded by the lock: threads that wait for it start within a microsecond of one another.
     */
    atomic_int arrived;
};

/* Wait in a loop until all threads have arrived: threads woken by the system start tens of
 * microseconds apart. Yield the core now and then, since others may want it. */
static void start_together(struct sl_team *team, int threads)
{
    atomic_fetch_add(&team->arrived, 1);
    for (int looks = 1; atomic_load(&team->arrived) < threads; looks++)
        if (looks % 1024 == 0)
            sched_yield();
}

static void *live(void *argument)
{
    struct member *me = argument;
    struct sl_team *team = me->team;
    sl_binding_bind_thread(&team->binding, me->index);
    long seen = 0;
    pthread_mutex_lock(&team->lock);
    for (;;) {
        while (!team->over && (team->call == seen || me->index >= team->wanted))
            pthread_cond_wait(&team->called, &team->lock);
        if (team->over)
            break;
        seen = team->call;
        const int threads = team->wanted;
        pthread_mutex_unlock(&team->lock);
        start_together(team, threads);
        me->start = sl_runtime_seconds();
        team->work(team->context, me->index, threads);
        me->end = sl_runtime_seconds();
        pthread_mutex_lock(&team->lock);
        if (--team->working == 0)
            pthread_cond_signal(&team->done);
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

int sl_team_create(struct sl_team **out)
{
    struct sl_team *team = calloc(1, sizeof *team);
    *out = team;
    if (!team)
        return sl_error(SL_ERR_SYSTEM, "no memory for threads");
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->called, NULL);
    pthread_cond_init(&team->done, NULL);
    const int code = sl_binding_open(&team->binding);
    if (code)
        return code;
    team->size = team->binding.cores;
    team->members = aligned_alloc(64, (size_t)team->size * sizeof *team->members);
    if (!team->members)
        return sl_error(SL_ERR_SYSTEM, "no memory for %d threads", team->size);
    for (int t = 0; t < team->size; t++, team->started++) {
        team->members[t] = (struct member){.team = team, .index = t};
        if (pthread_create(&team->members[t].thread, NULL, live, &team->members[t]))
            return sl_error(SL_ERR_SYSTEM, "the system refuses thread %d of %d", t + 1, team->size);
    }
    return 0;
}

void sl_team_destroy(struct sl_team *team)
{
    if (!team)
        return;
    pthread_mutex_lock(&team->lock);
    team->over = true;
    pthread_cond_broadcast(&team->called);
    pthread_mutex_unlock(&team->lock);
    for (int t = 0; t < team->started; t++)
        pthread_join(team->members[t].thread, NULL);
    pthread_cond_destroy(&team->done);
    pthread_cond_destroy(&team->called);
    pthread_mutex_destroy(&team->lock);
    sl_binding_close(&team->binding);
    free(team->members);
    free(team);
}

int sl_team_size(const struct sl_team *team)
{
    return team->size;
}

double sl_team_run(struct sl_team *team, int threads, sl_team_work *work, void *context)
{
    pthread_mutex_lock(&team->lock);
    team->work = work;
    team->context = context;
    team->wanted = team->working = threads;
    atomic_store(&team->arrived, 0);
    team->call++;
    pthread_cond_broadcast(&team->called);
    while (team->working > 0)
        pthread_cond_wait(&team->done, &team->lock);
    pthread_mutex_unlock(&team->lock);
    double start = team->members[0].start, end = team->members[0].end;
    for (int t = 1; t < threads; t++) {
        start = team->members[t].start < start ? team->members[t].start : start;
        end = team->members[t].end > end ? team->members[t].end : end;
    }
    return end - start;
}
