#include "core/home.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <starpu.h>
#include <starpu_scheduler.h>
#include <starpu_thread_util.h>

enum { URGENCIES = 3, NODES = 64, PARTS = 65536 };

/* Ready tasks by urgency (enum sl_task_urgency), each list in the order of becoming ready. */
struct queue {
    starpu_pthread_mutex_t lock;
    struct starpu_task_list tasks[URGENCIES];
    atomic_int count;
};

static struct queue queues[NODES];
static int node_of[STARPU_NMAXWORKERS]; /* NUMA node of the index-th CPU worker */
static atomic_int nodes = 1;            /* largest NUMA node of a worker, plus one */

void sl_home_set(struct starpu_task *task, float place)
{
    task->sched_data = (void *)(place < 0.0f ? (uintptr_t)0 : 1 + (uintptr_t)(place * PARTS));
}

void sl_home_set_node(int index, int node)
{
    node_of[index] = node % NODES;
    for (int seen = nodes; node_of[index] >= seen;)
        if (atomic_compare_exchange_weak(&nodes, &seen, node_of[index] + 1))
            break;
}

static void find_node(void *unused)
{
    unsigned core, node;
    (void)unused;
    if (getcpu(&core, &node) == 0)
        sl_home_set_node(starpu_worker_get_devid(starpu_worker_get_id()), (int)node);
}

void sl_home_start(void)
{
    starpu_execute_on_each_worker(find_node, NULL, STARPU_CPU);
}

static int node_here(void)
{
    const int worker = starpu_worker_get_id();
    const bool cpu = worker >= 0 && starpu_worker_get_type(worker) == STARPU_CPU_WORKER;
    return cpu ? node_of[starpu_worker_get_devid(worker)] : 0;
}

static int home_of(const struct starpu_task *task)
{
    const uintptr_t place = (uintptr_t)task->sched_data, workers = starpu_cpu_worker_get_count();
    if (place == 0 || place > PARTS || workers == 0)
        return node_here();
    return node_of[(place - 1) * workers / PARTS];
}

static void init(unsigned context)
{
    (void)context;
    for (int n = 0; n < NODES; n++) {
        STARPU_PTHREAD_MUTEX_INIT(&queues[n].lock, NULL);
        for (int u = 0; u < URGENCIES; u++)
            starpu_task_list_init(&queues[n].tasks[u]);
        atomic_store(&queues[n].count, 0);
    }
}

static void deinit(unsigned context)
{
    (void)context;
    for (int n = 0; n < NODES; n++)
        STARPU_PTHREAD_MUTEX_DESTROY(&queues[n].lock);
}

/* Wake a sleeping worker, of node `home` if one sleeps there. */
static void wake(int home)
{
#ifndef STARPU_NON_BLOCKING_DRIVERS
    for (int elsewhere = 0; elsewhere < 2; elsewhere++)
        for (int w = 0; w < (int)starpu_worker_get_count(); w++) {
            const bool at_home = starpu_worker_get_type(w) == STARPU_CPU_WORKER &&
                                 node_of[starpu_worker_get_devid(w)] == home;
            if (at_home == !elsewhere && starpu_wake_worker_relax_light(w))
                return;
        }
#else
    (void)home;
#endif
}

static int push(struct starpu_task *task)
{
    const int home = home_of(task);
    struct queue *queue = &queues[home];
    const int urgency = task->priority > 0 ? 0 : task->priority < 0 ? 2 : 1;
    STARPU_PTHREAD_MUTEX_LOCK(&queue->lock);
    starpu_task_list_push_back(&queue->tasks[urgency], task);
    atomic_fetch_add(&queue->count, 1);
    starpu_push_task_end(task);
    STARPU_PTHREAD_MUTEX_UNLOCK(&queue->lock);
    wake(home);
    return 0;
}

/* Remove and return the first task of the list that the worker can run, or NULL. */
static struct starpu_task *take_from(struct starpu_task_list *list, unsigned worker)
{
    unsigned implementation;
    for (struct starpu_task *task = starpu_task_list_begin(list);
         task != starpu_task_list_end(list); task = starpu_task_list_next(task))
        if (starpu_worker_can_execute_task_first_impl(worker, task, &implementation)) {
            starpu_task_set_implementation(task, implementation);
            starpu_task_list_erase(list, task);
            return task;
        }
    return NULL;
}

static struct starpu_task *take(struct queue *queue, unsigned worker)
{
    struct starpu_task *task = NULL;
    if (atomic_load_explicit(&queue->count, memory_order_relaxed) == 0)
        return NULL;
    STARPU_PTHREAD_MUTEX_LOCK(&queue->lock);
    for (int u = 0; u < URGENCIES && !task; u++)
        task = take_from(&queue->tasks[u], worker);
    if (task)
        atomic_fetch_sub(&queue->count, 1);
    STARPU_PTHREAD_MUTEX_UNLOCK(&queue->lock);
    return task;
}

/* Return a task from the worker's node, or else from the next node that has one. */
static struct starpu_task *pop(unsigned context)
{
    const unsigned worker = starpu_worker_get_id_check();
    const int here = node_here();
    struct starpu_task *task = NULL;
    (void)context;
    for (int n = 0; n < nodes && !task; n++)
        task = take(&queues[(here + n) % nodes], worker);
    return task;
}

struct starpu_sched_policy sl_home_policy = {
    .init_sched = init,
    .deinit_sched = deinit,
    .push_task = push,
    .pop_task = pop,
    .policy_name = "home",
    .policy_description = "the NUMA node of the output, then any",
    .worker_type = STARPU_WORKER_LIST,
};
