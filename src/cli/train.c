/* starling train: trains a model on a dataset, writes a log and prints a table. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/train_choices.h"
#include "cli/train_verify.h"
#include "core/dag.h"
#include "core/error.h"
#include "core/profile_view.h"
#include "core/stop.h"
#include "core/words.h"
#include "log/epoch_table.h"
#include "report/dag_picture.h"
#include "report/page.h"
#include "report/plot.h"
#include "run/fits.h"
#include "run/run.h"

/* Print the memory plan of the training. */
static int show_plan(struct sl_train_run *run)
{
    struct sl_plan plan;
    int code = sl_plan_make(&run->rt, &run->source, &run->config, &plan);
    if (code)
        return code;
    plan = sl_plan_largest(&run->rt, &plan);
    if (run->rt.rank != 0)
        return 0;
    printf("memory of %s in MiB, the most of any kind on %s\n", run->path,
           run->rt.ranks > 1 ? "a rank" : "this machine");
    if (run->config.machine.recompute > 0)
        printf("  with --recompute %d\n", run->config.machine.recompute);
    if (sl_config_has_batches(&run->config))
        printf("  with --batches %s\n", sl_config_text(&run->config, "batches").text);
    sl_train_print_evaluation(&run->config, &plan);
    sl_train_print_memory(&plan);
    return 0;
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
    if (run->rt.process->scarce_cores)
        printf("%d ranks share %d core%s: they take turns, so that no epoch is faster\n",
               run->rt.process->ranks_here, run->rt.process->scarce_cores,
               sl_s(run->rt.process->scarce_cores));
    sl_train_print_groups(run);
    if (run->chosen[0])
        printf("chosen for this dataset:%s\n", run->chosen);
    if (run->choice.distribution[0])
        printf("distribution %s\n", run->choice.distribution);
    if (run->choice.preload[0])
        printf("preloaded hops %s\n", run->choice.preload);
    if (run->choice.parts[0])
        printf("%sparts of vertices: %s\n", run->config.ranks.distribution ? "" : "compared with ",
               run->choice.parts);
    fflush(stdout);
}

/* Print the scores of splits from `first` on. */
static void print_splits(const char *name, const struct sl_scores *scores, int first)
{
    static const char *const splits[] = {
        [SL_SPLIT_TRAIN] = "training", [SL_SPLIT_VAL] = "validation", [SL_SPLIT_TEST] = "test"};
    char line[64];
    for (int s = first; s <= SL_SPLIT_TEST; s++) {
        snprintf(line, sizeof line, "%s %s", splits[s], name);
        if (isnan(scores->of[s]))
            printf("  %-22s -\n", line);
        else
            printf("  %-22s %.4f\n", line, scores->of[s]);
    }
}

static void print_scores(const char *name, const struct sl_scores *scores)
{
    print_splits(name, scores, SL_SPLIT_TRAIN);
}

/* Print the seconds of communication. `times`: sums over the ranks. */
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

/* Return the text after the CPU workers: GPUs and the way of their messages. A build with CUDA says
 * so if it finds no GPU. */
static const char *name_gpus(const struct sl_runtime *rt, char text[64])
{
    const struct sl_process *process = rt->process;
    const char *messages =
        process->gpus_send ? ", messages between them" : ", messages through the host";
    snprintf(text, 64, " + %d GPU%s%s", process->gpus, sl_s(process->gpus),
             rt->ranks > 1 ? messages : "");
    return process->gpus > 0 ? text : sl_runtime_lacks_gpus() ? " (no GPU found)" : "";
}

/* Print when the run ended early, and which weights are kept. */
static void print_stop(const struct sl_train_run *run)
{
    const struct sl_outcome *outcome = &run->outcome;
    const struct sl_unfinished *u = &outcome->unfinished;
    if (outcome->stopped && u->steps > 0)
        printf("stopped on request after step %d of %d of epoch %" PRId64 "\n", u->steps, u->of,
               outcome->epochs + 1);
    else if (outcome->stopped)
        printf("stopped on request after epoch %" PRId64 "\n", outcome->epochs);
    if (outcome->early && outcome->best_epoch == 0)
        printf("stopped early after epoch %" PRId64 ": validation %s is not defined\n",
               outcome->epochs, outcome->metric->name);
    else if (outcome->early)
        printf("stopped early after epoch %" PRId64 ": validation %s has not %s for %" PRId64
               " epochs\n",
               outcome->epochs, outcome->metric->name, outcome->metric->falls ? "fallen" : "risen",
               outcome->epochs - outcome->best_epoch);
    if (sl_config_keeps_best(&run->config) && outcome->best_epoch > 0)
        printf("the weights of epoch %" PRId64 ", the best one, are kept\n", outcome->best_epoch);
}

static void print_loss(double loss)
{
    if (isnan(loss))
        printf("  %-22s -\n", "loss");
    else
        printf("  %-22s %.4f\n", "loss", loss);
}

static void print_table(const struct sl_train_run *run, const struct sl_overlap_times *all)
{
    const struct sl_outcome *outcome = &run->outcome;
    const struct sl_process *process = run->rt.process;
    const struct sl_links *links = run->trainer.whole.graph.links;
    char gpus[64];
    const int64_t entries = run->trainer.whole.operands.entries;
    const int tiles = run->trainer.whole.operands.partition->tiles;
    printf("\n%s: %" PRId64 " %s, %" PRId64 " adjacency %s, %" PRId64 " feature%s, %" PRId64
           " %s%s\n",
           run->source.name, run->source.vertices, sl_vertices(run->source.vertices), entries,
           sl_entries(entries), run->source.features, sl_s(run->source.features),
           links ? links->count : run->source.classes,
           links                                                 ? "training link"
           : run->source.targets.label_kind == SL_LABELS_NUMBERS ? "number"
                                                                 : "class",
           sl_plural(links ? links->count : run->source.classes, "",
                     links || run->source.targets.label_kind == SL_LABELS_NUMBERS ? "s" : "es"));
    printf("%" PRId64 " epoch%s on %d rank%s x %d worker%s%s, %d tile%s, scheduler %s\n",
           outcome->epochs, sl_s(outcome->epochs), run->rt.ranks, sl_s(run->rt.ranks),
           process->workers, sl_s(process->workers), name_gpus(&run->rt, gpus), tiles, sl_s(tiles),
           process->scheduler);
    print_loss(outcome->loss);
    const struct sl_scores accuracies = sl_outcome_accuracies(outcome);
    if (sl_config_objective(&run->config).loss->form == SL_TARGET_CLASS ||
        outcome->metric == &sl_metric_accuracy)
        print_scores("accuracy", &accuracies);
    if (outcome->metric != &sl_metric_accuracy)
        print_scores(outcome->metric->name, &outcome->score);
    for (int k = 0; k < outcome->more.count && k < outcome->more.printed; k++)
        if (strcmp(outcome->more.name[k], outcome->metric->name) != 0)
            print_splits(outcome->more.name[k], &outcome->more.of[k],
                         links ? SL_SPLIT_TEST : SL_SPLIT_TRAIN);
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

/* Return the sums of times over the ranks. Collective. */
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

static int train(struct sl_train_run *run, const bool *given, struct sl_verify *verify)
{
    int code = sl_verify_open(verify, run);
    if (!code)
        code = sl_train_open(run, given);
    if (!code && run->config.files.plan)
        return show_plan(run);
    if (!code)
        code = sl_verify_begin(verify, run);
    if (!code)
        code = sl_train_load(run);
    if (!code)
        code = sl_stop_check(&run->rt);
    if (code)
        return code;
    signal(SIGPIPE, SIG_IGN); /* the reader of stdout may end first; the log has all lines */
    run->trainer.records.stop_requested = sl_stop_flag();
    sl_train_measure(run);
    sl_train_report_start(run);
    if (run->rt.rank == 0 && !run->config.files.quiet)
        print_start(run);
    if (run->rt.rank == 0 && !run->config.files.quiet && run->config.files.verbose)
        sl_train_print_choices(run);
    code = sl_trainer_run(&run->trainer, &run->report, &run->outcome);
    sl_stop_release();
    sl_train_sum_traffic(run);
    const struct sl_overlap_times all = sum_times(&run->rt, &run->outcome.epoch_times);
    if (run->rt.rank == 0 && !run->config.files.quiet && !run->outcome.broken)
        print_table(run, &all);
    sl_train_report_end(run);
    if (!run->config.files.verify)
        return code; /* of this rank: a file could not be written */
    code = sl_runtime_agree(&run->rt, code);
    return code ? code : sl_verify_end(verify, run);
}

/* Name the log if --report needs one and --log names none, since the page is drawn from the log. */
static int name_log(struct sl_config *config)
{
    char log[PATH_MAX];
    if (config->files.report && sl_epoch_table_is(config->files.log))
        return sl_error(SL_ERR_USAGE,
                        "--log %s: --report draws a log of JSON lines (expected another ending "
                        "than .csv)",
                        config->files.log);
    if (!config->files.report || config->files.log)
        return 0;
    snprintf(log, sizeof log, "%s.jsonl", config->files.report);
    return sl_config_set_text(&config->files.log, log);
}

static bool draws(const struct sl_train_run *run, const char *path)
{
    return path && !run->config.files.plan && run->rt.rank == 0;
}

/* Check before the run that the programs that draw pictures exist. */
static int probe_pictures(const struct sl_train_run *run)
{
    int code = 0;
    if (draws(run, run->config.files.report))
        code = sl_plot_probe();
    if (!code && draws(run, run->config.files.dag) && sl_dag_is_drawn(run->config.files.dag))
        code = sl_dag_picture_probe();
    return code;
}

/* Draw the page and the picture. MPI is up, but posix_spawn, unlike fork, does not touch its
 * memory. */
static int draw_pictures(struct sl_train_run *run)
{
    const struct sl_config *config = &run->config;
    int code = sl_report_close(&run->report);
    if (!code && draws(run, config->files.report))
        code = sl_page_write_log(config->files.log, config->files.report);
    if (!code && draws(run, config->files.dag) && sl_dag_is_drawn(config->files.dag))
        code = sl_dag_picture_draw(config->files.dag);
    return code;
}

static int run_train(int argc, char **argv)
{
    struct sl_train_run run = {0};
    struct sl_verify verify = {0};
    char *logged = NULL;
    int positionals;
    bool given[SL_MOST_OPTIONS];
    int code =
        sl_command_parse(&sl_command_train, &run.config, argc, argv, 0, 1, &positionals, given);
    if (!code)
        code = sl_verify_check(&run.config, given);
    if (!code)
        code = sl_config_read_file(&run.config, given);
    if (!code && positionals == 0)
        logged = sl_verify_dataset(run.config.files.verify ? run.config.files.config : NULL);
    run.path = positionals > 0 ? argv[0] : logged;
    if (!code && !run.path)
        code = sl_command_missing(&sl_command_train);
    if (!code)
        code = name_log(&run.config);
    sl_stop_catch();
    if (!code)
        code = sl_train_start(&run, given, run.config.files.quiet);
    if (!code) {
        sl_stop_watch(&run.rt);
        code = sl_runtime_agree(&run.rt, probe_pictures(&run));
        if (!code)
            code = train(&run, given, &verify);
        sl_stop_release(); /* ranks that end after an error are not gone */
        sl_train_stop(&run);
        if (!code)
            code = draw_pictures(&run);
    }
    const int closed = sl_train_free(&run);
    sl_verify_close(&verify);
    free(logged);
    return code ? code : closed;
}

static const char *const often[] = {
    "model",        "layers",     "hidden",  "epochs",    "seed",         "dropout", "lr",
    "weight-decay", "patience",   "keep",    "batches",   "split",        "plan",    "log",
    "trace",        "checkpoint", "resume",  "submodels", "distribution", "workers", "config",
    "report",       "quiet",      "verbose", NULL};

const struct sl_command sl_command_train = {
    .name = "train",
    .synopsis = "DATASET [--OPTION ...]",
    .summary = "Train a graph neural network on the whole graph of DATASET",
    .options = sl_config_options,
    .often = often,
    .run = run_train,
    .on_ranks = true,
};
