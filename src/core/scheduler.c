/* In its default build, StarPU's drivers spin while there is no task. They spin for a whole time
 * slice if the submitting thread or the messages' thread waits for the same core. One process runs
 * both beside its workers, so that a message between two ranks of one core each takes milliseconds
 * instead of microseconds. A policy's pop function is called whenever a worker looks for a task:
 * wrapped, it gives the core away when it finds none. The hooks around a task are wrapped, too, to
 * know when workers compute. */
#include "core/scheduler.h"

#include <sched.h>
#include <string.h>

#include <starpu.h>
#include <starpu_scheduler.h>

#include "core/error.h"
#include "core/home.h"
#include "core/nearest.h"
#include "core/overlap.h"
#include "core/profile.h"
#include "core/trace.h"

enum {
    PATIENCE = 16
}; /* looks in vain before a worker yields: in a dense graph a task comes sooner */

static struct starpu_sched_policy wrapped;
static struct starpu_task *(*pop_task)(unsigned context);
static void (*before_task)(struct starpu_task *task, unsigned context);
static void (*after_task)(struct starpu_task *task, unsigned context);

static struct starpu_task *pop_or_yield(unsigned context)
{
    static _Thread_local int in_vain;
    /* A policy that pushes to the workers' own queues, which are searched before, has no pop. */
    struct starpu_task *task = pop_task ? pop_task(context) : NULL;
    in_vain = task ? 0 : in_vain + 1;
    sl_profile_looked(task);
    if (in_vain > PATIENCE) {
        starpu_worker_relax_on(); /* who pushes a task to this worker need not wait for its core */
        sched_yield();
        starpu_worker_relax_off();
    }
    return task;
}

/* Return whether a task is ours: our tasks have a performance model. StarPU's own tasks have none,
 * and the hooks see only their start. */
static bool computes(const struct starpu_task *task)
{
    return task->cl && task->cl->model;
}

static void start_task(struct starpu_task *task, unsigned context)
{
    if (before_task)
        before_task(task, context);
    if (computes(task)) {
        sl_overlap_task(true);
        sl_trace_task(task, true);
    }
    sl_profile_runs(true);
}

static void end_task(struct starpu_task *task, unsigned context)
{
    if (computes(task)) {
        sl_trace_task(task, false);
        sl_overlap_task(false);
    }
    sl_profile_runs(false);
    if (after_task)
        after_task(task, context);
}

static void wrap(const struct starpu_sched_policy *policy)
{
    wrapped = *policy;
    pop_task = wrapped.pop_task;
    before_task = wrapped.pre_exec_hook;
    after_task = wrapped.post_exec_hook;
    wrapped.pop_task = pop_or_yield;
    wrapped.pre_exec_hook = start_task;
    wrapped.post_exec_hook = end_task;
}

/* Return the index-th policy: StarPU's, then ours. */
static struct starpu_sched_policy *policy_at(int index)
{
    struct starpu_sched_policy **all = starpu_sched_get_predefined_policies();
    int p = 0;
    while (p < index && all[p])
        p++;
    return all[p] ? all[p] : p == index ? &sl_home_policy : NULL;
}

int sl_scheduler_find(const char *name, struct starpu_sched_policy **policy)
{
    char list[512] = "";
    struct starpu_sched_policy *p;
    for (int i = 0; (p = policy_at(i)); i++) {
        if (strcmp(p->policy_name, name) == 0) {
            wrap(p);
            *policy = &wrapped;
            return 0;
        }
        if (strncmp(p->policy_name, "modular-", 8) != 0 && strlen(list) + 32 < sizeof list) {
            strcat(list, list[0] ? ", " : "");
            strcat(list, p->policy_name);
        }
    }
    struct sl_guess guess = sl_guess_begin(name);
    sl_guess_consider_list(&guess, list, ", ");
    return sl_error(SL_ERR_USAGE, "--scheduler (or STARPU_SCHED) %s: there are %s%s", name, list,
                    sl_guess_hint(&guess).text);
}

const char *sl_scheduler_name(int index)
{
    const struct starpu_sched_policy *policy = policy_at(index);
    return policy ? policy->policy_name : NULL;
}
