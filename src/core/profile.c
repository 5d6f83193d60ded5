#include "core/profile.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <starpu.h>
#include <starpu_profiling.h>

#include "core/error.h"

enum { MOST_OPERATIONS = 64 };

struct operation {
    const struct starpu_codelet *codelet;
    int64_t tasks;
    double microseconds, bytes, flops;
};

/* Written by its worker alone while tasks run, by the main thread while none does. */
struct worker {
    _Alignas(64) _Atomic double idle_since; /* 0: not idle; the main thread looks at it any time */
    double idle;                            /* microseconds */
    int operations;
    struct operation operation[MOST_OPERATIONS];
};

static atomic_bool enabled;
static double begun;
static struct worker workers[STARPU_NMAXWORKERS];

void sl_profile_enable(void)
{
    starpu_profiling_status_set(STARPU_PROFILING_ENABLE);
    atomic_store(&enabled, true);
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

static void start_idling(struct worker *worker)
{
    if (atomic_load_explicit(&worker->idle_since, memory_order_relaxed) == 0.0)
        atomic_store_explicit(&worker->idle_since, starpu_timing_now(), memory_order_relaxed);
}

static void end_idling(struct worker *worker, double now)
{
    const double since = atomic_load_explicit(&worker->idle_since, memory_order_relaxed);
    if (since == 0.0)
        return;
    worker->idle += later(now - later(since, begun), 0.0);
    atomic_store_explicit(&worker->idle_since, 0.0, memory_order_relaxed);
}

void sl_profile_looked(bool found)
{
    if (!atomic_load_explicit(&enabled, memory_order_relaxed))
        return;
    const int id = starpu_worker_get_id();
    if (id < 0)
        return;
    if (!found)
        start_idling(&workers[id]);
    else if (atomic_load_explicit(&workers[id].idle_since, memory_order_relaxed) != 0.0)
        end_idling(&workers[id], starpu_timing_now());
}

static struct operation *operation_of(struct worker *worker, const struct starpu_codelet *codelet)
{
    int o = 0;
    while (o < worker->operations && worker->operation[o].codelet != codelet)
        o++;
    if (o == MOST_OPERATIONS)
        sl_fatal("a profile of more than %d codelets", MOST_OPERATIONS);
    if (o == worker->operations)
        worker->operation[worker->operations++] = (struct operation){.codelet = codelet};
    return &worker->operation[o];
}

/* Runs on the worker that ran the task. */
static void count_task(void *bytes)
{
    struct starpu_task *task = starpu_task_get_current();
    struct starpu_profiling_task_info *info = task->profiling_info;
    const int id = starpu_worker_get_id();
    if (!info || id < 0)
        return;
    const double start = starpu_timing_timespec_to_us(&info->start_time);
    end_idling(&workers[id], start); /* if it did not come through a look */
    struct operation *operation = operation_of(&workers[id], task->cl);
    operation->tasks++;
    operation->microseconds += starpu_timing_timespec_to_us(&info->end_time) - start;
    operation->bytes += (double)(uintptr_t)bytes;
    operation->flops += task->flops;
}

void sl_profile_watch(struct starpu_task *task, double bytes)
{
    if (!atomic_load_explicit(&enabled, memory_order_relaxed))
        return;
    task->callback_func = count_task;
    task->callback_arg = (void *)(uintptr_t)bytes; /* a number: nothing to allocate */
}

void sl_profile_begin(void)
{
    for (int w = 0; w < STARPU_NMAXWORKERS; w++) {
        workers[w].idle = 0.0;
        workers[w].operations = 0;
    }
    begun = starpu_timing_now();
}

/* ---- The report ---- */

/* "starling_spmm_set": the prefix keeps performance models of programs apart, no more. */
static const char *name_of(const struct starpu_codelet *codelet)
{
    static const char prefix[] = "starling_";
    const char *name = codelet->name ? codelet->name : "?";
    return strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : name;
}

static void add(struct operation *to, const struct operation *from)
{
    to->tasks += from->tasks;
    to->microseconds += from->microseconds;
    to->bytes += from->bytes;
    to->flops += from->flops;
}

static int compare_duration(const void *a, const void *b)
{
    const struct operation *x = a, *y = b;
    return (x->microseconds < y->microseconds) - (x->microseconds > y->microseconds);
}

static json_t *describe_operations(struct worker *all)
{
    json_t *list = json_array();
    qsort(all->operation, (size_t)all->operations, sizeof *all->operation, compare_duration);
    for (int o = 0; o < all->operations; o++) {
        const struct operation *operation = &all->operation[o];
        json_array_append_new(list, json_pack("{s:s, s:I, s:f, s:f, s:f}", "name",
                                              name_of(operation->codelet), "tasks",
                                              (json_int_t)operation->tasks, "seconds",
                                              1e-6 * operation->microseconds, "bytes",
                                              operation->bytes, "flops", operation->flops));
    }
    return list;
}

/* Members that a worker and the sum over workers have in common; microseconds in. */
static json_t *describe_time(const struct operation *sum, double idle, double window)
{
    const double overhead = later(window - sum->microseconds - idle, 0.0);
    return json_pack("{s:I, s:f, s:f, s:f, s:f}", "tasks", (json_int_t)sum->tasks, "busy_seconds",
                     1e-6 * sum->microseconds, "idle_seconds", 1e-6 * idle, "overhead_seconds",
                     1e-6 * overhead, "bytes", sum->bytes);
}

json_t *sl_profile_end(void)
{
    const double now = starpu_timing_now(), window = now - begun;
    const int count = (int)starpu_worker_get_count();
    struct worker all = {.idle = 0.0};
    struct operation total = {.codelet = NULL};
    json_t *list = json_array();
    for (int w = 0; w < count; w++) {
        struct worker *worker = &workers[w];
        const double since = atomic_load_explicit(&worker->idle_since, memory_order_relaxed);
        const double idle =
            worker->idle + (since != 0.0 ? later(now - later(since, begun), 0.0) : 0.0);
        struct operation sum = {.codelet = NULL};
        for (int o = 0; o < worker->operations; o++) {
            add(&sum, &worker->operation[o]);
            add(operation_of(&all, worker->operation[o].codelet), &worker->operation[o]);
        }
        char name[64];
        starpu_worker_get_name(w, name, sizeof name);
        json_t *row = describe_time(&sum, idle, window);
        json_object_set_new(row, "name", json_string(name));
        json_array_append_new(list, row);
        add(&total, &sum);
        all.idle += idle;
    }
    json_t *report = describe_time(&total, all.idle, count * window);
    json_object_set_new(report, "seconds", json_real(1e-6 * window));
    json_object_set_new(report, "workers", list);
    json_object_set_new(report, "operations", describe_operations(&all));
    return report;
}
