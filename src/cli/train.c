/* starling train: a dataset in, a trained model, a log and a table out. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/train.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/profile.h"
#include "core/profile_view.h"
#include "core/stop.h"
#include "core/trace.h"
#include "core/words.h"
#include "train/fits.h"
#include "train/objective.h"
#include "train/preload.h"
#include "train/resume.h"
#include "train/shares.h"

static int configure(struct sl_train_run *run, const bool *given)
{
    int code = sl_defaults_preset(&run->config, given);
    if (!code && run->config.resume)
        code = sl_resume_read(&run->config, given, run->rt.ranks, &run->resumed);
    if (!code)
        code = sl_config_check_given(&run->config, given);
    return code ? code : sl_config_check(&run->config);
}

/* A log or a picture in the place of a model would be the end of the model. */
static int check_outputs(const struct sl_config *config)
{
    const struct {
        const char *option, *path;
    } files[] = {{"log", config->log},
                 {"dag", config->dag},
                 {"trace", config->trace},
                 {"checkpoint", config->checkpoint},
                 {"resume", config->resume}};
    const size_t count = sizeof files / sizeof *files, models = 3; /* from that one on */
    for (size_t f = 0; f < models; f++)
        for (size_t g = f + 1; g < count; g++)
            if (sl_file_same(files[f].path, files[g].path))
                return sl_error(SL_ERR_USAGE, "--%s %s is the file of --%s (expected another file)",
                                files[f].option, files[f].path, files[g].option);
    int code = sl_file_probe(config->dag);
    code = code ? code : sl_file_probe(config->trace);
    return code ? code : sl_file_probe(config->checkpoint);
}

static int open_outputs(struct sl_train_run *run)
{
    const int code = check_outputs(&run->config);
    return code ? code
                : sl_report_open(&run->report, run->config.log, run->config.resume != NULL,
                                 run->config.quiet);
}

static int order_vertices(struct sl_train_run *run)
{
    const uint64_t seed = (uint64_t)run->config.seed;
    if (strcmp(run->config.order, "double") == 0)
        return sl_source_order_double(&run->rt, &run->source, seed);
    return sl_source_order(&run->rt, &run->source, run->config.order, seed);
}

static int open_inputs(struct sl_train_run *run, const bool *given)
{
    struct sl_runtime *rt = &run->rt;
    int code = sl_runtime_agree(rt, configure(run, given));
    if (!code)
        code = sl_source_open(rt, run->path, &run->source);
    if (!code)
        code = sl_config_split(&run->config, &run->source.split_rule);
    if (!code)
        code = sl_runtime_agree(rt, sl_trainer_check(&run->source));
    if (!code)
        code = sl_runtime_agree(rt, rt->rank == 0 ? open_outputs(run) : 0);
    if (!code)
        code = sl_runtime_agree(
            rt, sl_train_choose_order(rt, &run->source, &run->config, &run->choice));
    if (!code)
        code = order_vertices(run);
    if (!code)
        code = sl_runtime_agree(rt,
                                sl_defaults_settle(&run->config, &run->source, given, run->chosen));
    if (!code)
        code = sl_runtime_agree(rt, sl_objective_check(&run->config, &run->source));
    if (!code && sl_batches_differ(&run->config))
        code = sl_runtime_agree(rt, sl_source_settle_splits(&run->source));
    if (!code)
        code = sl_train_choose_distribution(rt, &run->source, &run->config, &run->choice);
    if (!code)
        code = sl_preload_choose(rt, &run->source, &run->config, run->choice.preload);
    const struct sl_assembly how = sl_batches_whole(&run->config);
    if (!code)
        code = sl_operands_order(rt, &run->source, &how);
    if (!code)
        code = sl_plan_batches(rt, &run->source, &run->config, run->chosen);
    return code ? code : sl_plan_recompute(rt, &run->source, &run->config, run->chosen);
}

/* What cannot be known before the data are read. */
static int check_inputs(const struct sl_train_run *run)
{
    const struct sl_trainer *trainer = &run->trainer;
    if (trainer->first_epoch > sl_config_epochs(&run->config))
        return sl_error(SL_ERR_USAGE,
                        "--resume %s: epoch %" PRId64
                        " is done already; ask for more with --epochs",
                        run->config.resume, trainer->first_epoch - 1);
    if (run->config.resume && trainer->trained_vertices != run->source.vertices)
        return sl_error(SL_ERR_DATA,
                        "--resume %s: the checkpoint is of a graph of %" PRId64
                        " vertices, and %s has %" PRId64,
                        run->config.resume, trainer->trained_vertices, run->path,
                        run->source.vertices);
    return sl_trainer_check_labels(trainer);
}

/* Afterwards the dataset is in tiles, and nowhere else. */
static int load(struct sl_train_run *run)
{
    int code = sl_plan_check(&run->rt, &run->source, &run->config);
    if (!code)
        code = sl_shares_measure(&run->rt, &run->source, &run->config, run->chosen);
    if (!code)
        code = sl_trainer_create(&run->trainer, &run->rt, &run->source, &run->config,
                                 run->config.resume ? &run->resumed : NULL);
    if (!code)
        code = sl_runtime_agree(&run->rt, check_inputs(run));
    if (sl_batches_read_source(&run->trainer.batches))
        sl_memory_trim();
    else
        sl_source_release(&run->source);
    if (!code && run->trainer.whole.operands.merged_edges > 0)
        sl_note("%s: %" PRId64 " duplicate edge%s merged", run->path,
                run->trainer.whole.operands.merged_edges,
                sl_plural(run->trainer.whole.operands.merged_edges, " was", "s were"));
    return code;
}

/* Prints what training would take. */
static int show_plan(struct sl_train_run *run)
{
    static const double MIB = 1 << 20;
    struct sl_plan plan;
    int code = sl_plan_make(&run->rt, &run->source, &run->config, &plan);
    if (code)
        return code;
    plan = sl_plan_largest(&run->rt, &plan);
    if (run->rt.rank != 0)
        return 0;
    printf("memory of %s in MiB, the most of any kind on %s\n", run->path,
           run->rt.ranks > 1 ? "a rank" : "this machine");
    if (sl_config_recompute(&run->config) > 1)
        printf("  with --recompute %s\n", run->config.recompute);
    if (strcmp(run->config.batches, "full") != 0)
        printf("  with --batches %s\n", run->config.batches);
    for (int k = 0; k < SL_PLAN_KINDS; k++)
        printf("  %-12s %12.1f\n", sl_plan_names[k], (double)plan.bytes[k] / MIB);
    printf("  %-12s %12.1f\n", "total", (double)plan.total / MIB);
    return 0;
}

/* Clones of a vertex, on average; 0 where there are none. */
static double replication(const struct sl_train_run *run)
{
    if (!sl_config_kind(&run->config)->clones)
        return 0.0;
    const struct sl_partition *partition = run->trainer.whole.operands.partition;
    return (double)partition->row_cut[partition->tiles] / (double)run->source.vertices;
}

/* Of 1D, with two orders of vertices the less even one. */
static struct sl_stage_balance measure_stages(const struct sl_train_run *run)
{
    const struct sl_operands *operands = &run->trainer.whole.operands;
    const struct sl_distribution *d = operands->distribution;
    struct sl_stage_balance all = {0.0, 0.0};
    if (run->rt.ranks == 1 || d->kind != &sl_distribution_block || d->grid.rows < run->rt.ranks)
        return all;
    for (int order = 0; order < operands->row_orders; order++) {
        struct sl_tile_counts counts;
        if (!sl_tile_counts_of(&operands->adjacency[order], &operands->transposed[order],
                               &counts)) {
            const struct sl_stage_balance one =
                sl_tile_counts_stages(&counts, d->rank_cut, d->ranks);
            all.worst = fmax(all.worst, one.worst);
            all.all = fmax(all.all, one.all);
        }
        sl_tile_counts_destroy(&counts);
    }
    return all;
}

static void print_start(const struct sl_train_run *run)
{
    const struct sl_partition *partition = run->trainer.whole.operands.partition;
    printf("%s: read and cut in %.3g s; nonzeros, largest / mean: %.3f over %d tile%s, %.3f over "
           "%d rank%s",
           run->source.name, run->load_seconds, partition->tile_imbalance, partition->tiles,
           sl_s(partition->tiles), partition->rank_imbalance, partition->ranks,
           sl_s(partition->ranks));
    if (run->stages.all > 0.0)
        printf(", %.3f stage by stage", run->stages.all);
    putchar('\n');
    if (run->replication > 0.0)
        printf("vertex-cut: %.3f clones of a vertex, on average\n", run->replication);
    sl_train_print_groups(run);
    if (run->chosen[0])
        printf("chosen for this dataset:%s\n", run->chosen);
    if (run->choice.distribution[0])
        printf("distribution %s\n", run->choice.distribution);
    if (run->choice.preload[0])
        printf("preloaded hops %s\n", run->choice.preload);
    if (run->choice.parts[0])
        printf("parts of vertices: %s\n", run->choice.parts);
    fflush(stdout);
}

static void print_scores(const char *name, const struct sl_scores *scores)
{
    static const char *const splits[] = {
        [SL_SPLIT_TRAIN] = "training", [SL_SPLIT_VAL] = "validation", [SL_SPLIT_TEST] = "test"};
    char line[64];
    for (int s = SL_SPLIT_TRAIN; s <= SL_SPLIT_TEST; s++) {
        snprintf(line, sizeof line, "%s %s", splits[s], name);
        if (isnan(scores->of[s]))
            printf("  %-22s -\n", line);
        else
            printf("  %-22s %.4f\n", line, scores->of[s]);
    }
}

/* The times are sums over the ranks. */
static void print_communication(const struct sl_train_run *run,
                                const struct sl_overlap_times *times)
{
    const double share =
        times->communication ? 100.0 * (double)times->hidden / (double)times->communication : 0.0;
    printf("  %-22s %.6f (mean over epochs and ranks), %.0f %% hidden\n", "communicating",
           sl_overlap_seconds(times->communication) / run->rt.ranks, share);
    if (run->groups.count > 1)
        printf("  %-22s %.6f (likewise)\n", "... between groups",
               sl_overlap_seconds(times->between) / run->rt.ranks);
}

/* What stands after the CPU workers: a build with CUDA says once where it trains. */
static const char *name_gpus(const struct sl_runtime *rt, char text[64])
{
    const struct sl_process *process = rt->process;
    const char *messages =
        process->gpus_send ? ", messages between them" : ", messages through the host";
    snprintf(text, 64, " + %d GPU%s%s", process->gpus, sl_s(process->gpus),
             rt->ranks > 1 ? messages : "");
    return process->gpus > 0 ? text : sl_runtime_lacks_gpus() ? " (no GPU found)" : "";
}

/* When the run ended before its time, and what is kept of it. */
static void print_stop(const struct sl_train_run *run)
{
    const struct sl_outcome *outcome = &run->outcome;
    if (outcome->stopped)
        printf("stopped on request after epoch %" PRId64 "\n", outcome->epochs);
    if (outcome->early && outcome->best_epoch == 0)
        printf("stopped early after epoch %" PRId64 ": validation %s is not defined\n",
               outcome->epochs, outcome->metric->name);
    else if (outcome->early)
        printf("stopped early after epoch %" PRId64 ": validation %s has not %s for %" PRId64
               " epochs\n",
               outcome->epochs, outcome->metric->name, outcome->metric->falls ? "fallen" : "risen",
               outcome->epochs - outcome->best_epoch);
    if (run->config.patience > 0 && outcome->best_epoch > 0)
        printf("the weights of epoch %" PRId64 ", the best one, are kept\n", outcome->best_epoch);
}

static void print_table(const struct sl_train_run *run, const struct sl_overlap_times *all)
{
    const struct sl_outcome *outcome = &run->outcome;
    const struct sl_process *process = run->rt.process;
    char gpus[64];
    const int64_t entries = run->trainer.whole.operands.entries;
    const int tiles = run->trainer.whole.operands.partition->tiles;
    printf("\n%s: %" PRId64 " %s, %" PRId64 " adjacency %s, %" PRId64 " feature%s, %" PRId64
           " %s%s\n",
           run->source.name, run->source.vertices, sl_vertices(run->source.vertices), entries,
           sl_entries(entries), run->source.features, sl_s(run->source.features),
           run->source.classes, run->source.label_kind == SL_LABELS_NUMBERS ? "number" : "class",
           sl_plural(run->source.classes, "",
                     run->source.label_kind == SL_LABELS_NUMBERS ? "s" : "es"));
    printf("%" PRId64 " epoch%s on %d rank%s x %d worker%s%s, %d tile%s, scheduler %s\n",
           outcome->epochs, sl_s(outcome->epochs), run->rt.ranks, sl_s(run->rt.ranks),
           process->workers, sl_s(process->workers), name_gpus(&run->rt, gpus), tiles, sl_s(tiles),
           process->scheduler);
    printf("  %-22s %.4f\n", "loss", outcome->loss);
    const struct sl_scores accuracies = sl_outcome_accuracies(outcome);
    if (sl_config_objective(&run->config).loss->form == SL_TARGET_CLASS ||
        outcome->metric == &sl_metric_accuracy)
        print_scores("accuracy", &accuracies);
    if (outcome->metric != &sl_metric_accuracy)
        print_scores(outcome->metric->name, &outcome->score);
    printf("  %-22s %.6f (median)\n", "seconds per epoch", outcome->epoch_seconds_median);
    if (run->rt.ranks > 1)
        print_communication(run, all);
    sl_train_print_traffic(run);
    if (outcome->profile) {
        json_t *breakdown = sl_profile_breakdown(outcome->profile);
        printf("\nthe workers' time%s:\n", run->rt.ranks > 1 ? " on rank 0" : "");
        sl_profile_print(breakdown);
        json_decref(breakdown);
    }
    if (sl_outcome_underfits(outcome))
        printf(
            "underfitted: training accuracy is near the share of the largest class, %.4f; try "
            "more --epochs, a larger --hidden or --lr, a smaller --weight-decay or --dropout, or "
            "another --normalize-features\n",
            outcome->largest_class);
    print_stop(run);
}

/* Over the ranks. */
static struct sl_overlap_times sum_times(struct sl_runtime *rt,
                                         const struct sl_overlap_times *times)
{
    int64_t values[] = {times->compute, times->communication, times->hidden, times->between};
    sl_runtime_sum(rt, values, 4);
    return (struct sl_overlap_times){.compute = values[0],
                                     .communication = values[1],
                                     .hidden = values[2],
                                     .between = values[3]};
}

static int train(struct sl_train_run *run, const bool *given)
{
    const double started = sl_runtime_seconds();
    int code = open_inputs(run, given);
    if (!code && run->config.plan)
        return show_plan(run);
    if (!code)
        code = load(run);
    run->load_seconds = sl_runtime_seconds() - started;
    if (code)
        return code;
    const struct sl_plan own = sl_trainer_plan(&run->trainer);
    run->plan = sl_plan_largest(&run->rt, &own);
    sl_stop_catch(&run->rt);
    run->trainer.records.stop_requested = sl_stop_flag();
    run->stages = measure_stages(run);
    run->replication = replication(run);
    sl_train_find_groups(run);
    sl_train_report_start(run);
    if (run->rt.rank == 0 && !run->config.quiet)
        print_start(run);
    code = sl_trainer_run(&run->trainer, &run->report, &run->outcome);
    sl_stop_release();
    sl_train_sum_traffic(run);
    const struct sl_overlap_times all = sum_times(&run->rt, &run->outcome.epoch_times);
    if (run->rt.rank == 0 && !run->config.quiet && !run->outcome.broken)
        print_table(run, &all);
    sl_train_report_end(run);
    return code;
}

static int run_train(int argc, char **argv)
{
    struct sl_train_run run = {0};
    int positionals;
    bool given[SL_MOST_OPTIONS];
    int code =
        sl_command_parse(&sl_command_train, &run.config, argc, argv, 1, 1, &positionals, given);
    if (!code)
        code = sl_config_read_file(&run.config, given);
    if (code) {
        sl_options_free(sl_config_options, &run.config);
        return code;
    }
    run.path = argv[0];
    const struct sl_runtime_options options = {.scheduler = run.config.scheduler,
                                               .workers = (int)run.config.workers,
                                               .quiet = run.config.quiet,
                                               .device = run.config.device,
                                               .own_first =
                                                   strcmp(run.config.sum_order, "own-first") == 0};
    code = sl_runtime_start(&run.rt, &options);
    if (!code) {
        run.rt.stages = sl_config_stages(&run.config);
        sl_log_enable(run.rt.rank == 0 && !run.config.quiet);
        if (run.config.profile)
            sl_profile_enable();
        if (run.config.trace)
            sl_trace_enable();
        code = train(&run, given);
        sl_trainer_destroy(&run.trainer);
        sl_runtime_stop(&run.rt);
    }
    const int closed = sl_report_close(&run.report);
    json_decref(run.outcome.profile);
    json_decref(run.outcome.members);
    free(run.groups.group);
    sl_checkpoint_free(&run.resumed);
    sl_source_close(&run.source);
    sl_options_free(sl_config_options, &run.config);
    return code ? code : closed;
}

static const char *const often[] = {
    "model",   "layers",       "hidden",     "epochs",  "seed",      "dropout",
    "lr",      "weight-decay", "patience",   "batches", "split",     "plan",
    "log",     "trace",        "checkpoint", "resume",  "submodels", "distribution",
    "workers", "config",       "quiet",      NULL};

const struct sl_command sl_command_train = {
    .name = "train",
    .synopsis = "DATASET [--OPTION ...]",
    .summary = "Train a graph neural network on the whole graph of DATASET",
    .options = sl_config_options,
    .often = often,
    .run = run_train,
};
