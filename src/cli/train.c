/* starling train: a dataset in, a trained model, a log and a table out. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/prediction_view.h"
#include "config.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/profile.h"
#include "core/profile_view.h"
#include "core/stop.h"
#include "core/words.h"
#include "predict/order_choice.h"
#include "predict/plan.h"
#include "predict/scenario.h"
#include "train/defaults.h"
#include "train/environment.h"
#include "train/fits.h"
#include "train/objective.h"
#include "train/resume.h"
#include "train/trainer.h"

/* What all steps of one run share. */
struct run {
    struct sl_config config;
    const char *path;
    struct sl_runtime rt;
    struct sl_source source;
    struct sl_checkpoint resumed;
    struct sl_trainer trainer;
    struct sl_report report;
    struct sl_outcome outcome;
    double load_seconds;            /* from the dataset to the tiles */
    struct sl_stage_balance stages; /* of 1D on several ranks; else 0 */
    struct sl_plan plan;
    char chosen[SL_CHOSEN]; /* options that follow from the dataset */
    char reason[256];       /* for the grid; "" where the user chose it */
    char parts[256];        /* what METIS had to do for it */
    char order_reason[256];
};

enum { MOST_OPTIONS = 96 };

static int configure(struct run *run, const bool *given)
{
    int code = sl_defaults_preset(&run->config, given);
    if (!code && run->config.resume)
        code = sl_resume_read(&run->config, given, run->rt.ranks, &run->resumed);
    return code ? code : sl_config_check(&run->config);
}

/* A log or a picture in the place of a model would be the end of the model. */
static int check_outputs(const struct sl_config *config)
{
    const struct {
        const char *option, *path;
    } files[] = {{"log", config->log},
                 {"dag", config->dag},
                 {"checkpoint", config->checkpoint},
                 {"resume", config->resume}};
    const size_t count = sizeof files / sizeof *files, models = 2; /* from that one on */
    for (size_t f = 0; f < models; f++)
        for (size_t g = f + 1; g < count; g++)
            if (sl_file_same(files[f].path, files[g].path))
                return sl_error(SL_ERR_USAGE, "--%s %s is the file of --%s (expected another file)",
                                files[f].option, files[f].path, files[g].option);
    const int code = sl_file_probe(config->dag);
    return code ? code : sl_file_probe(config->checkpoint);
}

static int open_outputs(struct run *run)
{
    const int code = check_outputs(&run->config);
    return code ? code
                : sl_report_open(&run->report, run->config.log, run->config.resume != NULL,
                                 run->config.quiet);
}

static void set_text(char **option, char *text)
{
    free(*option);
    *option = text;
}

static int choose_order(struct run *run)
{
    struct sl_order_choice choice;
    if (strcmp(run->config.order, "auto") != 0)
        return 0;
    const struct sl_training training = sl_config_training(&run->config, &run->source);
    const int code = sl_order_choose(&run->rt, &run->source, &training, &choice);
    char *order = code ? NULL : strdup(choice.order);
    if (!order)
        return code ? code : sl_error(SL_ERR_SYSTEM, "no memory for the name of an order");
    memcpy(run->order_reason, choice.reason, sizeof run->order_reason);
    set_text(&run->config.order, order);
    return 0;
}

static int order_vertices(struct run *run)
{
    const uint64_t seed = (uint64_t)run->config.seed;
    if (strcmp(run->config.order, "double") == 0)
        return sl_source_order_double(&run->rt, &run->source, seed);
    return sl_source_order(&run->rt, &run->source, run->config.order, seed);
}

/* With --allow-inexact, a delay and its sums belong to the inexact choice. */
static int settle_delay(struct sl_config *config, bool exact)
{
    config->allow_inexact = false; /* the choice is made */
    if (!exact)
        return sl_config_delay(config) == SL_DELAY_EXACT ? sl_config_set_text(&config->delay, "0c")
                                                         : 0;
    const int code = sl_config_set_text(&config->delay, "cd-0");
    return code ? code : sl_config_set_text(&config->partial_sums, "scaled");
}

/* Beside the distribution, the sentence that says why. */
static int choose_distribution(struct run *run)
{
    struct sl_decision decision;
    struct sl_config *config = &run->config;
    char *name = NULL;
    if (strcmp(config->distribution, "auto") != 0 || config->grid || config->replication)
        return 0;
    if (run->rt.ranks == 1)
        return settle_delay(config, true);
    const struct sl_training training = sl_config_training(config, &run->source);
    int code = sl_scenario_decide(&run->rt, &run->source, &training, &decision);
    if (!code)
        code = sl_runtime_agree(&run->rt, settle_delay(config, decision.exact));
    if (code)
        return code;
    memcpy(run->reason, decision.reason, sizeof run->reason);
    memcpy(run->parts, decision.parts, sizeof run->parts);
    /* Leave auto for 1D: auto trains in 1D, and checkpoints equal the checkpoints of one rank. */
    const struct sl_grid *grid = &decision.grid;
    const bool is_grid = sl_distribution_find(decision.distribution) == &sl_distribution_block;
    if (is_grid && grid->columns * grid->depth == 1)
        return 0;
    const int length = is_grid ? asprintf(&name, "%dx%dx%d", grid->rows, grid->columns, grid->depth)
                               : asprintf(&name, "%s", decision.distribution);
    if (length < 0)
        code = sl_error(SL_ERR_SYSTEM, "no memory for the name of a distribution");
    else
        set_text(is_grid ? &config->grid : &config->distribution, name);
    return sl_runtime_agree(&run->rt, code);
}

static int open_inputs(struct run *run, const bool *given)
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
        code = sl_runtime_agree(rt, choose_order(run));
    if (!code)
        code = order_vertices(run);
    if (!code)
        code = sl_runtime_agree(rt,
                                sl_defaults_settle(&run->config, &run->source, given, run->chosen));
    if (!code)
        code = sl_runtime_agree(rt, sl_objective_check(&run->config, &run->source));
    if (!code)
        code = choose_distribution(run);
    const struct sl_assembly how = sl_config_assembly(&run->config);
    return code ? code : sl_operands_order(rt, &run->source, &how);
}

/* What cannot be known before the data are read. */
static int check_inputs(const struct run *run)
{
    const struct sl_trainer *trainer = &run->trainer;
    if (trainer->first_epoch > run->config.epochs)
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
static int load(struct run *run)
{
    int code = sl_plan_check(&run->rt, &run->source, &run->config);
    if (!code)
        code = sl_trainer_create(&run->trainer, &run->rt, &run->source, &run->config,
                                 run->config.resume ? &run->resumed : NULL);
    if (!code)
        code = sl_runtime_agree(&run->rt, check_inputs(run));
    sl_source_release(&run->source);
    if (!code && run->trainer.operands.merged_edges > 0)
        sl_note("%s: %" PRId64 " duplicate edge%s merged", run->path,
                run->trainer.operands.merged_edges,
                sl_plural(run->trainer.operands.merged_edges, " was", "s were"));
    return code;
}

/* The ranks' values, as a list; of times, in seconds. */
static json_t *gather_as(struct sl_runtime *rt, int64_t value, bool is_time)
{
    int64_t *values = calloc((size_t)rt->ranks, sizeof *values);
    if (!values)
        sl_fatal("no memory for the figures of %d ranks", rt->ranks); /* the others wait for them */
    sl_runtime_gather(rt, value, values);
    json_t *list = json_array();
    for (int r = 0; r < rt->ranks; r++)
        json_array_append_new(list, is_time ? json_real(sl_overlap_seconds(values[r]))
                                            : json_integer(values[r]));
    free(values);
    return list;
}

static json_t *gather(struct sl_runtime *rt, int64_t value)
{
    return gather_as(rt, value, false);
}

/* Prints what training would take. */
static int show_plan(struct run *run)
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
    for (int k = 0; k < SL_PLAN_KINDS; k++)
        printf("  %-12s %12.1f\n", sl_plan_names[k], (double)plan.bytes[k] / MIB);
    printf("  %-12s %12.1f\n", "total", (double)plan.total / MIB);
    return 0;
}

/* What a training step will send, and how long it takes, from the tiles as they are. */
static json_t *predict(const struct run *run)
{
    const struct sl_operands *operands = &run->trainer.operands;
    const struct sl_runtime *rt = &run->rt;
    struct sl_tile_counts counts;
    struct sl_rates rates;
    struct sl_prediction prediction = {0};
    json_t *object = json_object();
    sl_rates_of_machine(rt->process->workers, rt->process->ranks_here, rt->cache_bytes, &rates);
    if (!sl_tile_counts_of(operands->adjacency, operands->transposed, &counts) &&
        !sl_predict_network(&run->trainer.network, operands->distribution, &counts, &rates,
                            &prediction)) {
        json_object_set_new(object, "traffic_per_epoch",
                            sl_prediction_traffic(&prediction, rt->ranks));
        json_object_set_new(object, "epoch_seconds", json_real(prediction.seconds));
    }
    sl_prediction_free(&prediction);
    sl_tile_counts_destroy(&counts);
    return object;
}

/* Clones of a vertex, on average. */
static double replication(const struct run *run)
{
    const struct sl_partition *partition = run->trainer.operands.partition;
    return (double)partition->row_cut[partition->tiles] / (double)run->source.vertices;
}

/* Of 1D, with two orders of vertices the less even one. */
static struct sl_stage_balance measure_stages(const struct run *run)
{
    const struct sl_operands *operands = &run->trainer.operands;
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

static json_t *describe_imbalance(const struct run *run)
{
    const struct sl_partition *partition = run->trainer.operands.partition;
    json_t *object = json_pack("{s:f, s:f}", "tiles", partition->tile_imbalance, "ranks",
                               partition->rank_imbalance);
    if (run->stages.all > 0.0) {
        json_object_set_new(object, "stages", json_real(run->stages.all));
        json_object_set_new(object, "worst_stage", json_real(run->stages.worst));
    }
    return object;
}

/* The products' order of each layer. */
static json_t *describe_products(const struct sl_network *net)
{
    static const char *const words[] = {
        [SL_GEMM_FIRST] = "gemm", [SL_SPMM_FIRST] = "spmm", [SL_AGGREGATED] = "aggregated"};
    json_t *orders = json_array();
    for (int l = 0; l < net->layers; l++)
        json_array_append_new(orders, json_string(words[net->layer[l].order]));
    return orders;
}

static void report_start(struct run *run)
{
    const struct sl_source *source = &run->source;
    const struct sl_partition *partition = run->trainer.operands.partition;
    json_t *bytes = gather(&run->rt, run->trainer.operands.bytes_read);
    if (!run->report.log) {
        json_decref(bytes);
        return;
    }
    json_t *event = json_pack(
        "{s:o, s:o, s:o, s:o, s:{s:o, s:I, s:I, s:I, s:I}, s:i, s:I, s:o, s:o, s:f, s:o, s:I, s:o}",
        "configuration", sl_options_to_json(sl_config_options, &run->config), "dataset",
        sl_json_text(run->path), "versions", sl_environment_versions(), "machine",
        sl_environment_machine(&run->rt), "graph", "name", sl_json_text(source->name), "vertices",
        (json_int_t)source->vertices, "adjacency_entries",
        (json_int_t)run->trainer.operands.entries, "features", (json_int_t)source->features,
        "classes", (json_int_t)source->classes, "tiles", partition->tiles, "block_columns",
        (json_int_t)partition->block_cols, "product_orders",
        describe_products(&run->trainer.network), "imbalance", describe_imbalance(run),
        "load_seconds", run->load_seconds, "bytes_read", bytes, "first_epoch",
        (json_int_t)run->trainer.first_epoch, "planned_bytes", sl_plan_to_json(&run->plan));
    if (sl_config_kind(&run->config)->clones)
        json_object_set_new(event, "replication_factor", json_real(replication(run)));
    if (run->rt.ranks > 1)
        json_object_set_new(event, "prediction", predict(run));
    if (run->reason[0])
        json_object_set_new(event, "grid_reason", json_string(run->reason));
    if (run->parts[0])
        json_object_set_new(event, "parts_reason", json_string(run->parts));
    if (run->order_reason[0])
        json_object_set_new(event, "order_reason", json_string(run->order_reason));
    sl_report_event(&run->report, "start", event);
}

static void print_start(const struct run *run)
{
    const struct sl_partition *partition = run->trainer.operands.partition;
    printf("%s: read and cut in %.3g s; nonzeros, largest / mean: %.3f over %d tile%s, %.3f over "
           "%d rank%s",
           run->source.name, run->load_seconds, partition->tile_imbalance, partition->tiles,
           sl_s(partition->tiles), partition->rank_imbalance, partition->ranks,
           sl_s(partition->ranks));
    if (run->stages.all > 0.0)
        printf(", %.3f stage by stage", run->stages.all);
    putchar('\n');
    if (sl_config_kind(&run->config)->clones)
        printf("vertex-cut: %.3f clones of a vertex, on average\n", replication(run));
    if (run->chosen[0])
        printf("chosen for this dataset:%s\n", run->chosen);
    if (run->reason[0])
        printf("distribution %s\n", run->reason);
    if (run->parts[0])
        printf("parts of vertices: %s\n", run->parts);
    fflush(stdout);
}

static void set_finite(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, isfinite(value) ? json_real(value) : json_null());
}

/* Of the splits: "test_accuracy", "val_accuracy", "train_accuracy". */
static void set_scores(json_t *object, const char *name, const struct sl_scores *scores)
{
    static const char *const splits[] = {
        [SL_SPLIT_TRAIN] = "train", [SL_SPLIT_VAL] = "val", [SL_SPLIT_TEST] = "test"};
    char key[64];
    for (int s = SL_SPLIT_TEST; s >= SL_SPLIT_TRAIN; s--)
        set_finite(object, sl_report_key(key, splits[s], name), scores->of[s]);
}

static json_t *describe_traffic(struct sl_runtime *rt, const struct sl_traffic *traffic)
{
    json_t *object = json_object();
    json_object_set_new(object, "bytes_sent", gather(rt, traffic->bytes_sent));
    json_object_set_new(object, "bytes_received", gather(rt, traffic->bytes_received));
    json_object_set_new(object, "rows_received", gather(rt, traffic->rows_received));
    json_object_set_new(object, "sums_received", gather(rt, traffic->sums_received));
    json_object_set_new(object, "adjacency_received", gather(rt, traffic->adjacency_received));
    json_object_set_new(object, "messages", gather(rt, traffic->messages));
    return object;
}

static json_t *describe_times(struct sl_runtime *rt, const struct sl_overlap_times *times)
{
    json_t *object = json_object();
    json_object_set_new(object, "compute_seconds", gather_as(rt, times->compute, true));
    json_object_set_new(object, "communication_seconds", gather_as(rt, times->communication, true));
    json_object_set_new(object, "hidden_seconds", gather_as(rt, times->hidden, true));
    return object;
}

static struct sl_scores accuracies_of(const struct sl_outcome *outcome)
{
    return (struct sl_scores){{[SL_SPLIT_NONE] = NAN,
                               [SL_SPLIT_TRAIN] = outcome->train_accuracy,
                               [SL_SPLIT_VAL] = outcome->val_accuracy,
                               [SL_SPLIT_TEST] = outcome->test_accuracy}};
}

static void report_end(struct run *run)
{
    struct sl_runtime *rt = &run->rt;
    const struct sl_outcome *outcome = &run->outcome;
    int64_t *values = calloc((size_t)rt->ranks, sizeof *values);
    if (!values)
        sl_fatal("no memory for the figures of %d ranks", rt->ranks); /* the others wait for them */
    json_t *event = json_object();
    json_object_set_new(event, "metric", json_string(outcome->metric->name));
    const struct sl_scores accuracies = accuracies_of(outcome);
    set_scores(event, "accuracy", &accuracies);
    if (outcome->metric != &sl_metric_accuracy)
        set_scores(event, outcome->metric->name, &outcome->score);
    set_finite(event, "loss", outcome->loss);
    set_finite(event, "largest_class", outcome->largest_class);
    json_object_set_new(event, "underfitted", json_boolean(sl_outcome_underfits(outcome)));
    json_object_set_new(event, "best_epoch", json_integer(outcome->best_epoch));
    json_object_set_new(event, "epochs", json_integer(outcome->epochs));
    json_object_set_new(event, "stopped", json_boolean(outcome->stopped));
    json_object_set_new(event, "stopped_early", json_boolean(outcome->early));
    if (outcome->broken)
        json_object_set_new(event, "not_finite",
                            json_pack("{s:I, s:i, s:s}", "epoch", (json_int_t)outcome->epochs,
                                      "layer", outcome->broken_layer, "operation",
                                      sl_breakdown_name(outcome->broken)));
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
    json_object_set_new(event, "bytes_sent", gather(rt, rt->traffic.bytes_sent));
    json_object_set_new(event, "traffic_per_epoch",
                        describe_traffic(rt, &run->trainer.traffic_per_epoch));
    json_object_set_new(event, "time_per_epoch", describe_times(rt, &outcome->epoch_times));
    if (outcome->profile)
        json_object_set(event, "profile", outcome->profile);
    free(values);
    sl_report_event(&run->report, "end", event);
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
static void print_communication(const struct run *run, const struct sl_overlap_times *times)
{
    const double share =
        times->communication ? 100.0 * (double)times->hidden / (double)times->communication : 0.0;
    printf("  %-22s %.6f (mean over epochs and ranks), %.0f %% hidden\n", "communicating",
           sl_overlap_seconds(times->communication) / run->rt.ranks, share);
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
static void print_stop(const struct run *run)
{
    const struct sl_outcome *outcome = &run->outcome;
    if (outcome->stopped)
        printf("stopped on request after epoch %" PRId64 "\n", outcome->epochs);
    if (outcome->early)
        printf("stopped early after epoch %" PRId64 ": validation %s has not %s for %" PRId64
               " epochs\n",
               outcome->epochs, outcome->metric->name, outcome->metric->falls ? "fallen" : "risen",
               outcome->epochs - outcome->best_epoch);
    if (run->config.patience > 0 && outcome->best_epoch > 0)
        printf("the weights of epoch %" PRId64 ", the best one, are kept\n", outcome->best_epoch);
}

static void print_table(const struct run *run, const struct sl_overlap_times *all)
{
    const struct sl_outcome *outcome = &run->outcome;
    const struct sl_process *process = run->rt.process;
    char gpus[64];
    const int64_t entries = run->trainer.operands.entries;
    const int tiles = run->trainer.operands.partition->tiles;
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
    const struct sl_scores accuracies = accuracies_of(outcome);
    if (sl_config_objective(&run->config).loss->form == SL_TARGET_CLASS ||
        outcome->metric == &sl_metric_accuracy)
        print_scores("accuracy", &accuracies);
    if (outcome->metric != &sl_metric_accuracy)
        print_scores(outcome->metric->name, &outcome->score);
    printf("  %-22s %.6f (median)\n", "seconds per epoch", outcome->epoch_seconds_median);
    if (run->rt.ranks > 1)
        print_communication(run, all);
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
    int64_t values[] = {times->compute, times->communication, times->hidden};
    sl_runtime_sum(rt, values, 3);
    return (struct sl_overlap_times){
        .compute = values[0], .communication = values[1], .hidden = values[2]};
}

static int train(struct run *run, const bool *given)
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
    const struct sl_plan own = sl_plan_of(&run->trainer.operands, &run->trainer.network);
    run->plan = sl_plan_largest(&run->rt, &own);
    sl_stop_catch(&run->rt);
    run->trainer.records.stop_requested = sl_stop_flag();
    run->stages = measure_stages(run);
    report_start(run);
    if (run->rt.rank == 0 && !run->config.quiet)
        print_start(run);
    code = sl_trainer_run(&run->trainer, &run->report, &run->outcome);
    sl_stop_release();
    const struct sl_overlap_times all = sum_times(&run->rt, &run->outcome.epoch_times);
    if (run->rt.rank == 0 && !run->config.quiet && !run->outcome.broken)
        print_table(run, &all);
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
    const struct sl_runtime_options options = {.scheduler = run.config.scheduler,
                                               .workers = (int)run.config.workers,
                                               .quiet = run.config.quiet,
                                               .device = run.config.device};
    code = sl_runtime_start(&run.rt, &options);
    if (!code) {
        run.rt.stages = sl_config_stages(&run.config);
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
    sl_source_close(&run.source);
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
