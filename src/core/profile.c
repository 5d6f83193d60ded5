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

/* Counters of a worker. The worker alone writes them while tasks run, the main thread while none
 * does. */
struct worker {
    _Alignas(64) _Atomic double idle_since; /* 0: not idle; the main thread looks at it any time */
    bool running;                           /* the worker runs a task */
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
    if (!found && !workers[id].running)
        start_idling(&workers[id]);
    else if (atomic_load_explicit(&workers[id].idle_since, memory_order_relaxed) != 0.0)
        end_idling(&workers[id], starpu_timing_now());
}

void sl_profile_runs(bool task)
{
    const int id = starpu_worker_get_id();
    if (id < 0)
        return;
    if (task && atomic_load_explicit(&workers[id].idle_since, memory_order_relaxed) != 0.0)
        end_idling(&workers[id], starpu_timing_now());
    workers[id].running = task;
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

/* Count a task; StarPU calls this on the worker that ran it. */
static void count_task(void *bytes)
{
    struct starpu_task *task = starpu_task_get_current();
    struct starpu_profiling_task_info *info = task->profiling_info;
    const int id = starpu_worker_get_id();
    if (!info || id < 0)
        return;
    const double start = starpu_timing_timespec_to_us(&info->start_time);
    end_idling(&workers[id], start); /* the task may have come without a look */
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

/* ---- Copies between memories ---- */

enum transfer { TO_GPUS, FROM_GPUS, BETWEEN_GPUS, TRANSFERS };

/* Add the bytes copied since the last call to `bytes`; each bus is one direction. */
static void take_transfers(double bytes[TRANSFERS])
{
    for (int bus = 0; bus < starpu_bus_get_count(); bus++) {
        struct starpu_profiling_bus_info info = {.transferred_bytes = 0};
        const bool from = starpu_node_get_kind((unsigned)starpu_bus_get_src(bus)) != STARPU_CPU_RAM;
        const bool to = starpu_node_get_kind((unsigned)starpu_bus_get_dst(bus)) != STARPU_CPU_RAM;
        starpu_bus_get_profiling_info(bus, &info);
        bytes[from && to ? BETWEEN_GPUS
              : from     ? FROM_GPUS
                         : TO_GPUS] += (double)info.transferred_bytes;
    }
}

static void forget_transfers(void)
{
    double bytes[TRANSFERS] = {0.0};
    take_transfers(bytes);
}

static void describe_transfers(json_t *report)
{
    static const char *const names[] = {"bytes_to_gpus", "bytes_from_gpus", "bytes_between_gpus"};
    double bytes[TRANSFERS] = {0.0};
    take_transfers(bytes);
    for (int t = 0; starpu_cuda_worker_get_count() > 0 && t < TRANSFERS; t++)
        json_object_set_new(report, names[t], json_real(bytes[t]));
}

void sl_profile_begin(void)
{
    for (int w = 0; w < STARPU_NMAXWORKERS; w++) {
        workers[w].idle = 0.0;
        workers[w].operations = 0;
    }
    forget_transfers();
    begun = starpu_timing_now();
}

/* ---- The report ---- */

/* Return the name without "starling_", which keeps performance models of programs apart. */
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

enum kind { CPU, CUDA, KINDS };
static const char *const kind_names[] = {"CPU", "CUDA"};

static enum kind kind_of(int worker)
{
    return starpu_worker_get_type(worker) == STARPU_CPU_WORKER ? CPU : CUDA;
}

struct part {
    const struct operation *operation;
    enum kind kind;
};

static int compare_parts(const void *a, const void *b)
{
    return compare_duration(((const struct part *)a)->operation,
                            ((const struct part *)b)->operation);
}

static json_t *describe_operations(const struct worker all[KINDS])
{
    struct part parts[KINDS * MOST_OPERATIONS];
    int count = 0;
    for (enum kind k = CPU; k < KINDS; k++)
        for (int o = 0; o < all[k].operations; o++)
            parts[count++] = (struct part){&all[k].operation[o], k};
    qsort(parts, (size_t)count, sizeof *parts, compare_parts);
    json_t *list = json_array();
    for (int p = 0; p < count; p++) {
        const struct operation *operation = parts[p].operation;
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:I, s:f, s:f, s:f}", "name", name_of(operation->codelet),
                            "kind", kind_names[parts[p].kind], "tasks",
                            (json_int_t)operation->tasks, "seconds", 1e-6 * operation->microseconds,
                            "bytes", operation->bytes, "flops", operation->flops));
    }
    return list;
}

/* Return the members that a worker and sums over workers have in common, from times in
 * microseconds. */
static json_t *describe_time(const struct operation *sum, double idle, double window)
{
    const double overhead = later(window - sum->microseconds - idle, 0.0);
    return json_pack("{s:I, s:f, s:f, s:f, s:f}", "tasks", (json_int_t)sum->tasks, "busy_seconds",
                     1e-6 * sum->microseconds, "idle_seconds", 1e-6 * idle, "overhead_seconds",
                     1e-6 * overhead, "bytes", sum->bytes);
}

/* Return the sum over a worker's operations, and add the operations to those of its kind. */
static struct operation sum_up(const struct worker *worker, struct worker *kind)
{
    struct operation sum = {.codelet = NULL};
    for (int o = 0; o < worker->operations; o++) {
        add(&sum, &worker->operation[o]);
        add(operation_of(kind, worker->operation[o].codelet), &worker->operation[o]);
    }
    return sum;
}

static json_t *describe_kind(const char *name, int count, const struct operation *sum, double idle,
                             double window)
{
    json_t *row = describe_time(sum, idle, count * window);
    json_object_set_new(row, "kind", json_string(name));
    json_object_set_new(row, "workers", json_integer(count));
    return row;
}

json_t *sl_profile_end(void)
{
    const double now = starpu_timing_now(), window = now - begun;
    const int count = (int)starpu_worker_get_count();
    static struct worker all[KINDS]; /* static, because it is large */
    struct operation total = {.codelet = NULL}, of_kind[KINDS] = {{.codelet = NULL}};
    int counts[KINDS] = {0};
    json_t *list = json_array(), *kinds = json_array();
    memset(all, 0, sizeof all);
    for (int w = 0; w < count; w++) {
        const enum kind kind = kind_of(w);
        const double since = atomic_load_explicit(&workers[w].idle_since, memory_order_relaxed);
        const double idle =
            workers[w].idle + (since != 0.0 ? later(now - later(since, begun), 0.0) : 0.0);
        const struct operation sum = sum_up(&workers[w], &all[kind]);
        char name[64];
        starpu_worker_get_name(w, name, sizeof name);
        json_t *row = describe_time(&sum, idle, window);
        json_object_set_new(row, "name", json_string(name));
        json_object_set_new(row, "kind", json_string(kind_names[kind]));
        json_array_append_new(list, row);
        add(&of_kind[kind], &sum);
        all[kind].idle += idle;
        counts[kind]++;
    }
    for (enum kind k = CPU; k < KINDS; k++) {
        add(&total, &of_kind[k]);
        if (counts[k])
            json_array_append_new(
                kinds, describe_kind(kind_names[k], counts[k], &of_kind[k], all[k].idle, window));
    }
    json_t *report = describe_time(&total, all[CPU].idle + all[CUDA].idle, count * window);
    json_object_set_new(report, "seconds", json_real(1e-6 * window));
    json_object_set_new(report, "workers", list);
    json_object_set_new(report, "kinds", kinds);
    json_object_set_new(report, "operations", describe_operations(all));
    describe_transfers(report);
    return report;
}
