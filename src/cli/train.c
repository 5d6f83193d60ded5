/* starling train: a dataset in, a trained model, a log and a table out. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/profile_view.h"
#include "config.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/profile.h"
#include "train/environment.h"
#include "train/plan.h"
#include "train/trainer.h"

static volatile sig_atomic_t stop_requested;

static void request_stop(int signal_number)
{
    (void)signal_number;
    stop_requested = 1;
}

/* The first Ctrl-C asks for an orderly end; the second one kills. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* What all steps of one run share. */
struct run {
    struct sl_config config;
    const char *path;
    struct sl_runtime rt;
    struct sl_dataset data;
    struct sl_checkpoint resumed;
    struct sl_trainer trainer;
    struct sl_report report;
    struct sl_outcome outcome;
    struct sl_plan plan;
};

enum { MOST_OPTIONS = 64 };

/* The checkpoint's configuration holds where the command line says nothing; how and where to run
 * never comes from it. */
static int resume_configuration(struct run *run, const bool *given)
{
    int code = sl_checkpoint_read(run->config.resume, &run->resumed);
    if (code)
        return code;
    bool skip[MOST_OPTIONS];
    for (int o = 0; sl_config_options[o].name; o++)
        skip[o] = given[o] || sl_config_is_execution(&sl_config_options[o]);
    return sl_options_from_json(sl_config_options, &run->config,
                                json_object_get(run->resumed.description, "configuration"), skip,
                                run->config.resume);
}

static bool is_given(const bool *given, const char *name)
{
    for (int o = 0; sl_config_options[o].name; o++)
        if (strcmp(sl_config_options[o].name, name) == 0)
            return given[o];
    return false;
}

/* A checkpoint that cannot be written is better known before the training than after. */
static int probe_checkpoint(const char *path)
{
    struct sl_new_file probe;
    if (!path)
        return 0;
    if (sl_file_create(&probe, path))
        return SL_ERR_USAGE; /* the sentence names the file */
    sl_file_discard(&probe);
    return 0;
}

static int open_inputs(struct run *run, const bool *given)
{
    int code = 0;
    if (run->config.resume)
        code = resume_configuration(run, given);
    if (!code)
        code = sl_config_check(&run->config);
    if (!code)
        code = sl_dataset_open(run->path, &run->data);
    if (!code)
        code = sl_trainer_check(&run->data, &run->config);
    if (!code)
        code = sl_dataset_reorder(&run->data, run->config.order, (uint64_t)run->config.seed);
    if (!code && !run->config.resume && !is_given(given, "normalize-features"))
        run->config.normalize_features = run->data.bag_of_words;
    if (!code && run->data.merged_edges > 0)
        sl_note("%s: %" PRId64 " duplicate edges were merged", run->path, run->data.merged_edges);
    if (!code && run->rt.rank == 0)
        code = probe_checkpoint(run->config.checkpoint);
    if (!code && run->rt.rank == 0)
        code = sl_report_open(&run->report, run->config.log, run->config.resume != NULL,
                              run->config.quiet);
    return sl_runtime_agree(&run->rt, code);
}

/* Each rank has computed the order by itself, and they must agree: METIS draws random numbers from
 * the C library, whose generator other threads share, and nodes may have other versions of it. */
static int check_order(struct run *run)
{
    struct sl_runtime *rt = &run->rt;
    uint64_t sum = 0;
    for (int64_t r = 0; run->data.original && r < run->data.vertices; r++)
        sum = 31 * sum + (uint64_t)run->data.original[r];
    int64_t *sums = calloc((size_t)rt->ranks, sizeof *sums);
    if (!sums)
        sl_fatal("no memory for the figures of %d ranks", rt->ranks); /* the others wait for them */
    sl_runtime_gather(rt, (int64_t)sum, sums);
    int other = 1;
    while (other < rt->ranks && sums[other] == sums[0])
        other++;
    free(sums);
    return other >= rt->ranks
               ? 0
               : sl_error(SL_ERR_SYSTEM,
                          "--order %s came out differently on ranks 0 and %d; expected the same: "
                          "store it once, with starling convert %s DIRECTORY --order %s",
                          run->config.order, other, run->path, run->config.order);
}

static json_t *plan_to_json(const struct sl_plan *plan)
{
    json_t *object = json_object();
    for (int k = 0; k < SL_PLAN_KINDS; k++)
        json_object_set_new(object, sl_plan_names[k], json_integer(plan->bytes[k]));
    json_object_set_new(object, "total", json_integer(plan->total));
    return object;
}

/* Prints what training would take. */
static int show_plan(struct run *run)
{
    static const double MIB = 1 << 20;
    struct sl_plan plan;
    int code = sl_plan_make(&run->rt, &run->data, &run->config, &plan);
    if (code)
        return code;
    plan = sl_plan_largest(&run->rt, &plan);
    if (run->rt.rank != 0)
        return 0;
    printf("memory of %s in MiB, the most of any kind on %s\n", run->path,
           run->rt.ranks > 1 ? "a rank" : "this machine");
    for (int k = 0; k < SL_PLAN_KINDS; k++)
        printf("  %-12s %12.1f\n", sl_plan_names[k], (double)plan.bytes[k] / MIB);
    printf("  %-12s %12.1f\n", "total", (double)plan.total / MIB);
    return 0;
}

static void report_start(struct run *run)
{
    const struct sl_dataset *data = &run->data;
    if (!run->report.log)
        return;
    json_t *event = json_pack(
        "{s:o, s:o, s:o, s:o, s:{s:o, s:I, s:I, s:I, s:I}, s:i, s:I, s:o}", "configuration",
        sl_options_to_json(sl_config_options, &run->config), "dataset", sl_json_text(run->path),
        "versions", sl_environment_versions(), "machine", sl_environment_machine(&run->rt), "graph",
        "name", sl_json_text(data->name), "vertices", (json_int_t)data->vertices,
        "adjacency_entries", (json_int_t)data->adjacency.indptr[data->vertices], "features",
        (json_int_t)data->features, "classes", (json_int_t)data->classes, "tiles",
        run->trainer.operands.partition.tiles, "first_epoch", (json_int_t)run->trainer.first_epoch,
        "planned_bytes", plan_to_json(&run->plan));
    sl_report_event(&run->report, "start", event);
}

static void set_finite(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, isfinite(value) ? json_real(value) : json_null());
}

/* One figure of each rank; `values` has room for them. */
static json_t *gather(struct sl_runtime *rt, int64_t value, int64_t *values)
{
    json_t *list = json_array();
    sl_runtime_gather(rt, value, values);
    for (int r = 0; r < rt->ranks; r++)
        json_array_append_new(list, json_integer(values[r]));
    return list;
}

static json_t *describe_traffic(struct sl_runtime *rt, const struct sl_traffic *traffic,
                                int64_t *values)
{
    json_t *object = json_object();
    json_object_set_new(object, "bytes_sent", gather(rt, traffic->bytes_sent, values));
    json_object_set_new(object, "bytes_received", gather(rt, traffic->bytes_received, values));
    json_object_set_new(object, "rows_received", gather(rt, traffic->rows_received, values));
    json_object_set_new(object, "messages", gather(rt, traffic->messages, values));
    return object;
}

static void report_end(struct run *run)
{
    struct sl_runtime *rt = &run->rt;
    const struct sl_outcome *outcome = &run->outcome;
    int64_t *values = calloc((size_t)rt->ranks, sizeof *values);
    if (!values)
        sl_fatal("no memory for the figures of %d ranks", rt->ranks); /* the others wait for them */
    json_t *event = json_object();
    set_finite(event, "test_accuracy", outcome->test_accuracy);
    set_finite(event, "val_accuracy", outcome->val_accuracy);
    set_finite(event, "train_accuracy", outcome->train_accuracy);
    set_finite(event, "loss", outcome->loss);
    json_object_set_new(event, "best_epoch", json_integer(outcome->best_epoch));
    json_object_set_new(event, "epochs", json_integer(outcome->epochs));
    json_object_set_new(event, "stopped", json_boolean(outcome->stopped));
    set_finite(event, "epoch_seconds_median", outcome->epoch_seconds_median);
    set_finite(event, "seconds", outcome->seconds);
    int64_t most = 0, tasks = 0;
    sl_runtime_gather(rt, (int64_t)sl_memory_resident_peak(), values);
    for (int r = 0; r < rt->ranks; r++)
        most = values[r] > most ? values[r] : most;
    sl_runtime_gather(rt, run->trainer.tasks_per_epoch, values);
    for (int r = 0; r < rt->ranks; r++)
        tasks += values[r];
    json_object_set_new(event, "peak_memory_bytes", json_integer(most));
    json_object_set_new(event, "tile_bytes",
                        json_integer(-sl_runtime_least(rt, -(int64_t)sl_memory_peak())));
    json_object_set_new(event, "tasks_per_epoch", json_integer(tasks));
    json_object_set_new(event, "bytes_sent", gather(rt, rt->traffic.bytes_sent, values));
    json_object_set_new(event, "traffic_per_epoch",
                        describe_traffic(rt, &run->trainer.traffic_per_epoch, values));
    if (outcome->profile)
        json_object_set(event, "profile", outcome->profile);
    free(values);
    sl_report_event(&run->report, "end", event);
}

static void print_accuracy(const char *name, double value)
{
    if (isnan(value))
        printf("  %-22s -\n", name);
    else
        printf("  %-22s %.4f\n", name, value);
}

static void print_table(const struct run *run)
{
    const struct sl_outcome *outcome = &run->outcome;
    printf("\n%s: %" PRId64 " vertices, %" PRId64 " adjacency entries, %" PRId64
           " features, %" PRId64 " classes\n",
           run->data.name ? run->data.name : run->path, run->data.vertices,
           run->data.adjacency.indptr[run->data.vertices], run->data.features, run->data.classes);
    printf("%" PRId64 " epochs on %d rank%s x %d worker%s, %d tiles, scheduler %s\n",
           outcome->epochs, run->rt.ranks, run->rt.ranks == 1 ? "" : "s", run->rt.workers,
           run->rt.workers == 1 ? "" : "s", run->trainer.operands.partition.tiles,
           run->rt.scheduler);
    printf("  %-22s %.4f\n", "loss", outcome->loss);
    print_accuracy("training accuracy", outcome->train_accuracy);
    print_accuracy("validation accuracy", outcome->val_accuracy);
    print_accuracy("test accuracy", outcome->test_accuracy);
    printf("  %-22s %.6f (median)\n", "seconds per epoch", outcome->epoch_seconds_median);
    if (outcome->profile) {
        json_t *breakdown = sl_profile_breakdown(outcome->profile);
        printf("\nthe workers' time%s:\n", run->rt.ranks > 1 ? " on rank 0" : "");
        sl_profile_print(breakdown);
        json_decref(breakdown);
    }
    if (outcome->stopped)
        printf("stopped on request after epoch %" PRId64 "\n", outcome->epochs);
}

static int train(struct run *run, const bool *given)
{
    int code = open_inputs(run, given);
    if (!code)
        code = check_order(run);
    if (!code && run->config.plan)
        return show_plan(run);
    if (!code)
        code = sl_plan_check(&run->rt, &run->data, &run->config);
    if (!code)
        code = sl_trainer_create(&run->trainer, &run->rt, &run->data, &run->config,
                                 run->config.resume ? &run->resumed : NULL);
    if (!code && run->trainer.first_epoch > run->config.epochs)
        code =
            sl_error(SL_ERR_USAGE,
                     "--resume %s: epoch %" PRId64 " is done already; ask for more with --epochs",
                     run->config.resume, run->trainer.first_epoch - 1);
    if (!code && run->config.resume && run->trainer.trained_vertices != run->data.vertices)
        code = sl_error(SL_ERR_DATA,
                        "--resume %s: the checkpoint is of a graph of %" PRId64
                        " vertices, and %s has %" PRId64,
                        run->config.resume, run->trainer.trained_vertices, run->path,
                        run->data.vertices);
    if (code)
        return code;
    const struct sl_plan own = sl_plan_of(&run->trainer);
    run->plan = sl_plan_largest(&run->rt, &own);
    catch_signals();
    run->trainer.stop_requested = &stop_requested;
    report_start(run);
    code = sl_trainer_run(&run->trainer, &run->report, &run->outcome);
    if (run->rt.rank == 0 && !run->config.quiet)
        print_table(run);
    report_end(run);
    return code;
}

static int run_train(int argc, char **argv)
{
    struct run run = {0};
    int positionals;
    bool given[MOST_OPTIONS];
    int code =
        sl_command_parse(&sl_command_train, &run.config, argc, argv, 1, 1, &positionals, given);
    if (code) {
        sl_options_free(sl_config_options, &run.config);
        return code;
    }
    run.path = argv[0];
    const struct sl_runtime_options options = {run.config.scheduler, (int)run.config.workers,
                                               run.config.quiet};
    code = sl_runtime_start(&run.rt, &options);
    if (!code) {
        run.rt.stages = run.config.overlap ? 2 : 1;
        sl_log_enable(run.rt.rank == 0 && !run.config.quiet);
        if (run.config.profile)
            sl_profile_enable();
        code = train(&run, given);
        sl_trainer_destroy(&run.trainer);
        sl_runtime_stop(&run.rt);
    }
    const int closed = sl_report_close(&run.report);
    json_decref(run.outcome.profile);
    sl_checkpoint_free(&run.resumed);
    sl_dataset_close(&run.data);
    sl_options_free(sl_config_options, &run.config);
    return code ? code : closed;
}

const struct sl_command sl_command_train = {
    .name = "train",
    .synopsis = "DATASET [--OPTION ...]",
    .summary = "Train a graph neural network on the whole graph of DATASET",
    .options = sl_config_options,
    .run = run_train,
};
