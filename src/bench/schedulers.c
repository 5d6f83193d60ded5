/* starling bench schedulers: one training under every policy of this StarPU and with several
 * numbers of workers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/contest.h"
#include "bench/input.h"
#include "core/binding.h"
#include "core/error.h"
#include "core/log.h"
#include "core/profile_view.h"
#include "core/remembered.h"
#include "core/runtime.h"
#include "core/scheduler.h"
#include "core/table.h"
#include "core/words.h"

struct config {
    struct sl_bench_common common;
    struct sl_bench_input input;
    char *policies, *workers_list;
    double limit;
    bool remember;
};

static const struct sl_option options[] = {
    {"policies", SL_OPTION_STRING, offsetof(struct config, policies), "all", 0, 0, NULL, "LIST",
     "policies with commas between; all: every one that this StarPU has", "Contestants"},
    {"workers-list", SL_OPTION_STRING, offsetof(struct config, workers_list), NULL, 0, 0, NULL,
     "LIST", "numbers of CPU workers; default: 1, 2, 4, ... and every core", "Contestants"},
    {"limit", SL_OPTION_REAL, offsetof(struct config, limit), "300", 0.1, 1e6, NULL, "SECONDS",
     "after which a training counts as hanging and is killed", "Measuring"},
    {"remember", SL_OPTION_FLAG, offsetof(struct config, remember), "no", 0, 0, NULL, NULL,
     "make the fastest policy with the most workers train's default on this machine (the usual one "
     "if the quartiles overlap)",
     "Output"},
    SL_BENCH_INPUT_OPTIONS(config),
    SL_BENCH_OPTIONS(config, "3"),
    {0},
};

static const struct sl_bench_reserved reserved[] = {
    SL_BENCH_RESERVED, {"workers", "--workers-list"}, {"scheduler", "--policies"}, {0}};

enum { MOST_POLICIES = 64, MOST_WORKERS = 32 };

struct bench {
    struct config config;
    const char *policy[MOST_POLICIES];
    int policies;
    int64_t workers[MOST_WORKERS];
    int worker_counts;
    struct sl_bench_contest contest; /* of (worker_counts, policies) */
};

static const char *policy_of(const struct bench *bench, int entry)
{
    return bench->policy[entry % bench->policies];
}

static int workers_of(const struct bench *bench, int entry)
{
    return (int)bench->workers[entry / bench->policies];
}

/* ---- Who takes part ---- */

static int refuse_policy(const char *name)
{
    char list[512] = "";
    for (int p = 0; sl_scheduler_name(p); p++)
        if (strlen(list) + strlen(sl_scheduler_name(p)) + 3 < sizeof list) {
            strcat(list, p ? ", " : "");
            strcat(list, sl_scheduler_name(p));
        }
    return sl_error(SL_ERR_USAGE, "--policies: no policy \"%s\"; this StarPU has %s", name, list);
}

static int add_policy(struct bench *bench, const char *name)
{
    for (int p = 0; sl_scheduler_name(p); p++)
        if (strcmp(sl_scheduler_name(p), name) == 0) {
            for (int known = 0; known < bench->policies; known++)
                if (bench->policy[known] == sl_scheduler_name(p))
                    return 0;
            if (bench->policies < MOST_POLICIES)
                bench->policy[bench->policies++] = sl_scheduler_name(p);
            return 0;
        }
    return refuse_policy(name);
}

static int choose_policies(struct bench *bench)
{
    if (strcmp(bench->config.policies, "all") == 0) {
        for (int p = 0; sl_scheduler_name(p) && p < MOST_POLICIES; p++)
            bench->policy[bench->policies++] = sl_scheduler_name(p);
        return 0;
    }
    int code = 0;
    for (const char *at = bench->config.policies; !code && *at;) {
        char name[64];
        const size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        code = add_policy(bench, name);
        at += length + (at[length] == ',');
    }
    if (!code && bench->policies == 0)
        code = sl_error(SL_ERR_USAGE, "--policies: expected names of policies, or all");
    return code;
}

static int choose_workers(struct bench *bench)
{
    const int most = sl_runtime_starpu_max_workers();
    if (bench->config.workers_list)
        return sl_bench_parse_list("workers-list", bench->config.workers_list, 1, most,
                                   MOST_WORKERS, bench->workers, &bench->worker_counts);
    struct sl_binding binding;
    const int code = sl_binding_open(&binding);
    if (code)
        return code;
    const int all = binding.cores < most ? binding.cores : most;
    sl_binding_close(&binding);
    for (int workers = 1; workers < all; workers *= 2)
        bench->workers[bench->worker_counts++] = workers;
    bench->workers[bench->worker_counts++] = all;
    return 0;
}

static int create_bench(struct bench *bench)
{
    int code = choose_policies(bench);
    if (!code)
        code = choose_workers(bench);
    if (!code && bench->config.remember && bench->config.common.rt.rank == 0)
        code = sl_remembered_probe("scheduler");
    if (code)
        return code;
    struct sl_bench_common *common = &bench->config.common;
    const int count = bench->policies * bench->worker_counts;
    code = sl_bench_contest_create(&bench->contest, common, count, common->repetitions + 1);
    for (int e = 0; !code && e < count; e++) {
        struct sl_bench_entry *entry = &bench->contest.entries[e];
        sl_bench_entry_number(entry, "--workers", workers_of(bench, e));
        entry->words[2] = "--scheduler";
        entry->words[3] = policy_of(bench, e);
    }
    bench->contest.limit = bench->config.limit;
    /* A policy that hangs would cost the limit in each round. Profiling costs a little, so the last
     * round is not timed. */
    bench->contest.tolerant = bench->contest.profile_last = true;
    return code ? code : sl_bench_input_path(&bench->config.input, common, &bench->contest.dataset);
}

static void destroy(struct bench *bench)
{
    sl_bench_contest_destroy(&bench->contest);
    sl_bench_input_remove(&bench->config.input);
}

/* ---- What comes out ---- */

static const char *const endings[] = {"done", "failed", "timed out"};

static json_t *list_of(const json_t *workers, const char *key, double divisor)
{
    json_t *list = json_array();
    size_t index;
    const json_t *worker;
    json_array_foreach((json_t *)workers, index, worker)
        json_array_append_new(list, json_real(sl_number(worker, key) / divisor));
    return list;
}

static void add_profile(json_t *row, const struct sl_bench_run *run)
{
    const json_t *profile = json_object_get(run->end, "profile");
    const json_t *workers = json_object_get(profile, "workers");
    const double epochs = sl_number(profile, "epochs"), tasks = sl_number(profile, "tasks");
    const double all = sl_number(profile, "seconds") * (double)json_array_size(workers);
    if (!profile || !(tasks > 0.0) || !(all > 0.0))
        return;
    json_object_set_new(row, "busy_share", json_real(sl_number(profile, "busy_seconds") / all));
    sl_profile_set_shares(row, profile);
    sl_profile_set_gpus(row, profile);
    json_object_set_new(row, "tasks_per_epoch", json_real(tasks / epochs));
    json_object_set_new(row, "tasks_per_worker", list_of(workers, "tasks", epochs));
    json_object_set_new(row, "bytes_per_worker", list_of(workers, "bytes", epochs));
    json_object_set_new(row, "idle_seconds_per_worker", list_of(workers, "idle_seconds", epochs));
}

/* Return how many runs without a profile were done. */
static int timed_runs(const struct bench *bench, const struct sl_bench_entry *e)
{
    const int done = sl_bench_entry_done(e), most = bench->contest.rounds - 1;
    return done < most ? done : most;
}

static struct sl_spread spread_of(const struct bench *bench, const struct sl_bench_entry *e)
{
    return sl_spread_of(e->seconds, timed_runs(bench, e));
}

static double loss_of(const struct sl_bench_run *run)
{
    return sl_number(run->end, "loss");
}

static json_t *row_of(const struct bench *bench, int number)
{
    const struct sl_bench_entry *e = &bench->contest.entries[number];
    const struct sl_bench_run *last = sl_bench_entry_last(e);
    const int done = sl_bench_entry_done(e);
    json_t *row = json_pack("{s:s, s:i, s:s, s:i}", "scheduler", policy_of(bench, number),
                            "workers", workers_of(bench, number), "ending", endings[last->ending],
                            "runs", timed_runs(bench, e));
    if (last->reason[0])
        json_object_set_new(row, "reason", sl_json_text(last->reason));
    if (done) {
        const double loss = loss_of(&e->runs[done - 1]);
        sl_bench_set_spread(row, "epoch_seconds", spread_of(bench, e));
        json_object_set_new(row, "loss", isfinite(loss) ? json_real(loss) : json_null());
    }
    if (done == bench->contest.rounds)
        add_profile(row, last);
    return row;
}

static bool is_done(const struct sl_bench_entry *e)
{
    return sl_bench_entry_last(e)->ending == SL_BENCH_DONE && e->tried > 0;
}

/* Return the number of the entry with the smallest median among those with the most workers, as
 * train runs; -1 if none was done. */
static int fastest(const struct bench *bench)
{
    int best = -1, most = 0;
    for (int w = 0; w < bench->worker_counts; w++)
        most = bench->workers[w] > most ? (int)bench->workers[w] : most;
    for (int i = 0; i < bench->contest.count; i++) {
        const struct sl_bench_entry *e = &bench->contest.entries[i];
        if (workers_of(bench, i) == most && is_done(e) &&
            (best < 0 ||
             spread_of(bench, e).median < spread_of(bench, &bench->contest.entries[best]).median))
            best = i;
    }
    return best;
}

/* Whether losses differ between runs. All policies compute the same bits, so a difference is a bug.
 */
static bool losses_differ(const struct bench *bench)
{
    const struct sl_bench_run *first = NULL;
    for (int i = 0; i < bench->contest.count; i++) {
        const struct sl_bench_entry *e = &bench->contest.entries[i];
        for (int r = 0; is_done(e) && r < e->tried; r++) {
            first = first ? first : &e->runs[r];
            if (loss_of(&e->runs[r]) != loss_of(first))
                return true;
        }
    }
    return false;
}

static void print(const struct bench *bench, const json_t *document)
{
    static const struct sl_column columns[] = {
        {"scheduler", "scheduler", 0, 0},
        {"workers", "workers", 0, 0},
        {"epoch_seconds", "ms/epoch", 1e-3, 3},
        {"epoch_seconds_low", "quartiles", 1e-3, 3},
        {"epoch_seconds_high", "", 1e-3, 3},
        {"idle_share", "idle %", 1e-2, 1},
        {"overhead_share", "overhead %", 1e-2, 1},
        {"tasks_per_epoch", "tasks", 0, 1},
        {"task_overhead_seconds", "us/task", 1e-6, 2},
        {"ending", "ending", 0, 0},
        {0},
    };
    const int best = fastest(bench);
    printf("%s: median epoch of %d run%s; idle and overhead: shares of the workers' time\n\n",
           bench->contest.dataset, (int)bench->config.common.repetitions,
           sl_s(bench->config.common.repetitions));
    sl_table_print(json_object_get(document, "rows"), columns);
    for (int i = 0; i < bench->contest.count; i++) {
        const char *reason = sl_bench_entry_last(&bench->contest.entries[i])->reason;
        if (reason[0])
            printf("%s, %d worker%s: %s\n", policy_of(bench, i), workers_of(bench, i),
                   sl_s(workers_of(bench, i)), reason);
    }
    if (best >= 0)
        printf("\nfastest with %d worker%s: %s\n", workers_of(bench, best),
               sl_s(workers_of(bench, best)), policy_of(bench, best));
    if (losses_differ(bench))
        printf("the losses of the runs differ, which they must not\n");
}

static bool ran_on_gpus(const struct sl_bench_entry *e)
{
    size_t index;
    const json_t *worker,
        *workers =
            json_object_get(json_object_get(sl_bench_entry_last(e)->end, "profile"), "workers");
    json_array_foreach((json_t *)workers, index, worker)
    {
        const char *name = json_string_value(json_object_get(worker, "name"));
        if (name && strncmp(name, "CPU", 3) != 0)
            return true;
    }
    return false;
}

/* Return the usual policy if it is as fast as the fastest within the spread, else the fastest: a
 * default should not change for noise. */
static int worth_remembering(const struct bench *bench)
{
    const struct sl_bench_entry *entries = bench->contest.entries;
    const int best = fastest(bench);
    for (int i = 0; best >= 0 && i < bench->contest.count; i++)
        if (is_done(&entries[i]) && workers_of(bench, i) == workers_of(bench, best) &&
            strcmp(policy_of(bench, i),
                   sl_runtime_usual_scheduler(ran_on_gpus(&entries[i]), false, false)) == 0 &&
            spread_of(bench, &entries[i]).low <= spread_of(bench, &entries[best]).high)
            return i;
    return best;
}

static int remember(const struct bench *bench, const json_t *rows)
{
    const int best = worth_remembering(bench);
    (void)rows;
    if (!bench->config.remember)
        return 0;
    if (best < 0)
        return sl_error(SL_ERR_SYSTEM, "--remember: no training was done");
    const struct sl_bench_entry *e = &bench->contest.entries[best];
    if (!bench->config.common.quiet)
        printf("remembered as the default on this machine: %s\n", policy_of(bench, best));
    return sl_remembered_set("scheduler", json_pack("{s:s, s:i, s:b, s:o, s:f}", "scheduler",
                                                    policy_of(bench, best), "workers",
                                                    workers_of(bench, best), "gpus", ran_on_gpus(e),
                                                    "dataset", sl_json_text(bench->contest.dataset),
                                                    "epoch_seconds", spread_of(bench, e).median));
}

static json_t *training_words(const struct bench *bench)
{
    json_t *list = json_array();
    for (int w = 0; w < bench->config.common.words.train_count; w++)
        json_array_append_new(list, sl_json_text(bench->config.common.words.train[w]));
    return list;
}

static int measure(struct bench *bench, json_t *document, json_t *rows)
{
    const int code = sl_bench_contest_run(&bench->contest), best = fastest(bench);
    for (int e = 0; !code && e < bench->contest.count; e++)
        json_array_append_new(rows, row_of(bench, e));
    json_object_set_new(document, "dataset", sl_json_text(bench->contest.dataset));
    json_object_set_new(document, "training", training_words(bench));
    json_object_set_new(document, "fastest",
                        best < 0 ? json_null() : json_string(policy_of(bench, best)));
    json_object_set_new(document, "same_losses", json_boolean(!losses_differ(bench)));
    return code;
}

static int run_schedulers(int argc, char **argv)
{
    static const struct sl_bench_part part = {
        .command = &sl_bench_schedulers,
        .reserved = reserved,
        .create = create_bench,
        .measure = measure,
        .print = print,
        .remember = remember,
        .destroy = destroy,
        .on_ranks = true,
        .datasets = 1,
    };
    struct bench bench = {0};
    return sl_bench_run(&part, &bench.config.common, &bench, argc, argv);
}

const struct sl_command sl_bench_schedulers = {
    .name = "bench schedulers",
    .synopsis = "DATASET | --like NAME [--OPTION ...] [--OPTION of train ...]",
    .summary = "Train on DATASET under every scheduling policy and with several numbers of workers",
    .options = options,
    .run = run_schedulers,
};
