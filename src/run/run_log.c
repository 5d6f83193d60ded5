/* The events of starling train in the log: start and end. Epochs are the trainer's. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/rates.h"
#include "log/environment.h"
#include "predict/prediction_view.h"
#include "run/run.h"
#include "train/breakdown.h"

/* The graph of all ranks that each training step takes; NULL: there are several. */
static const struct sl_pass *pass_of_steps(const struct sl_trainer *trainer)
{
    const struct sl_batches *b = &trainer->batches;
    if (!sl_batches_differ(trainer->config))
        return &trainer->whole;
    return b->count == 1 && b->groups.count == 1 ? &b->batch[0].pass : NULL;
}

/* Whether a prediction counts what walks send: with hops, of grids and halos alone. */
static bool is_predicted(const struct sl_train_run *run)
{
    const struct sl_pass *pass = pass_of_steps(&run->trainer);
    const struct sl_distribution *d = pass ? pass->graph.distribution : NULL;
    return run->rt.ranks > 1 && d &&
           (!d->hop || d->kind == &sl_distribution_block || d->kind == &sl_distribution_halo);
}

/* Predict the messages and the seconds of a training step from the tiles in memory. */
static json_t *predict(const struct sl_train_run *run)
{
    const struct sl_pass *pass = pass_of_steps(&run->trainer);
    const struct sl_operands *operands = &pass->operands;
    const struct sl_runtime *rt = &run->rt;
    struct sl_tile_counts counts;
    struct sl_rates rates;
    struct sl_prediction prediction = {0};
    json_t *object = json_object();
    sl_rates_of_machine(sl_runtime_computing_cores(rt), rt->process->ranks_here, rt->cache_bytes,
                        &rates);
    if (!sl_tile_counts_of(operands->adjacency, operands->transposed, &counts) &&
        !sl_predict_network(&pass->network, operands->distribution, &counts, &rates, &prediction)) {
        json_object_set_new(object, "traffic_per_epoch",
                            sl_prediction_traffic(&prediction, rt->ranks));
        json_object_set_new(object, "epoch_seconds", json_real(prediction.seconds));
    }
    sl_prediction_free(&prediction);
    sl_tile_counts_destroy(&counts);
    return object;
}

static json_t *describe_imbalance(const struct sl_train_run *run)
{
    const struct sl_partition *partition = run->trainer.whole.operands.partition;
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

/* Words of the first round of this run: what stays on a rank is not the same in all rounds. */
static json_t *describe_submodels(struct sl_train_run *run)
{
    struct sl_submodels *s = &run->trainer.submodels;
    const int64_t round = run->trainer.start.first_updates / s->steps;
    return json_pack("{s:I, s:I, s:I, s:I}", "count", (json_int_t)s->count, "local_steps",
                     (json_int_t)sl_submodels_round_steps(s), "words_per_round",
                     (json_int_t)sl_submodels_words(s, round), "evaluation_columns",
                     (json_int_t)run->plan.block_columns);
}

static void set_reason(json_t *event, const char *key, const char *reason)
{
    if (reason[0])
        json_object_set_new(event, key, json_string(reason));
}

/* The members of the event start. */
static json_t *describe_start(struct sl_train_run *run, json_t *bytes_read)
{
    const struct sl_source *source = &run->source;
    const struct sl_partition *partition = run->trainer.whole.operands.partition;
    json_t *event = json_pack(
        "{s:o, s:o, s:o, s:o, s:{s:o, s:I, s:I, s:I, s:I}, s:i, s:I, s:o, s:o, s:f, s:o, s:I, s:o}",
        "configuration", sl_options_to_json(sl_config_options, &run->config), "dataset",
        sl_json_text(run->path), "versions", sl_environment_versions(), "machine",
        sl_environment_machine(&run->rt), "graph", "name", sl_json_text(source->name), "vertices",
        (json_int_t)source->vertices, "adjacency_entries",
        (json_int_t)run->trainer.whole.operands.entries, "features", (json_int_t)source->features,
        "classes", (json_int_t)source->classes, "tiles", partition->tiles, "block_columns",
        (json_int_t)partition->block_cols, "product_orders",
        describe_products(&run->trainer.whole.network), "imbalance", describe_imbalance(run),
        "load_seconds", run->load_seconds, "bytes_read", bytes_read, "first_epoch",
        (json_int_t)run->trainer.start.first_epoch, "planned_bytes", sl_plan_to_json(&run->plan));
    if (run->trainer.start.unfinished.steps > 0)
        json_object_set_new(event, "first_step",
                            json_integer(run->trainer.start.unfinished.steps + 1));
    if (run->class_names)
        json_object_set(json_object_get(event, "graph"), "class_names", run->class_names);
    json_object_set(json_object_get(event, "graph"), "hashes", run->hashes);
    if (run->replication > 0.0)
        json_object_set_new(event, "replication_factor", json_real(run->replication));
    sl_train_log_groups(run, event);
    if (sl_config_has_submodels(&run->config))
        json_object_set_new(event, "submodels", describe_submodels(run));
    if (is_predicted(run))
        json_object_set_new(event, "prediction", predict(run));
    set_reason(event, "grid_reason", run->choice.distribution);
    set_reason(event, "preload_reason", run->choice.preload);
    set_reason(event, "rows_reason", run->choice.rows.reason);
    if (run->config.steps.rows == SL_ROWS_NEEDED)
        json_object_set_new(event, "rows_shares",
                            json_pack("{s:f, s:f}", "rows", run->choice.rows.rows,
                                      "adjacency_entries", run->choice.rows.entries));
    set_reason(event, "parts_reason", run->choice.parts);
    set_reason(event, "order_reason", run->choice.order);
    return event;
}

void sl_train_report_start(struct sl_train_run *run)
{
    json_t *bytes = sl_train_gather(&run->rt, run->trainer.whole.operands.bytes_read);
    const bool verbose = run->rt.rank == 0 && run->config.files.verbose;
    if (!run->report.log && !verbose) {
        json_decref(bytes);
        return;
    }
    run->start = describe_start(run, bytes);
    sl_report_event(&run->report, "start", json_incref(run->start));
}

static void set_finite(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, isfinite(value) ? json_real(value) : json_null());
}

/* Set "test_accuracy", "val_accuracy" and "train_accuracy", or the same of another metric. */
static void set_scores(json_t *object, const char *name, const struct sl_scores *scores)
{
    static const char *const splits[] = {
        [SL_SPLIT_TRAIN] = "train", [SL_SPLIT_VAL] = "val", [SL_SPLIT_TEST] = "test"};
    char key[64];
    for (int s = SL_SPLIT_TEST; s >= SL_SPLIT_TRAIN; s--)
        set_finite(object, sl_report_key(key, splits[s], name), scores->of[s]);
}

/* Return the figures of an epoch, the mean over these epochs. */
static json_t *describe_traffic(struct sl_runtime *rt, const struct sl_epoch_traffic *epochs)
{
    const struct sl_traffic mean = sl_traffic_mean(&epochs->sum[0], epochs->sum_epochs),
                            *traffic = &mean;
    json_t *object = json_object();
    json_object_set_new(object, "bytes_sent", sl_train_gather(rt, traffic->bytes_sent));
    json_object_set_new(object, "bytes_received", sl_train_gather(rt, traffic->bytes_received));
    json_object_set_new(object, "rows_received", sl_train_gather(rt, traffic->rows_received));
    json_object_set_new(object, "sums_received", sl_train_gather(rt, traffic->sums_received));
    json_object_set_new(object, "adjacency_received",
                        sl_train_gather(rt, traffic->adjacency_received));
    json_object_set_new(object, "messages", sl_train_gather(rt, traffic->messages));
    if (epochs->warming_up)
        json_object_set_new(object, "warming_up", json_true());
    return object;
}

static int count_workers(const struct sl_runtime *rt)
{
    return rt->process->workers + rt->process->gpus;
}

static json_t *describe_times(struct sl_runtime *rt, const struct sl_overlap_times *times)
{
    json_t *object = json_object();
    json_object_set_new(object, "compute_seconds", sl_train_gather_seconds(rt, times->compute));
    json_object_set_new(object, "communication_seconds",
                        sl_train_gather_seconds(rt, times->communication));
    json_object_set_new(object, "hidden_seconds", sl_train_gather_seconds(rt, times->hidden));
    json_object_set_new(object, "between_seconds", sl_train_gather_seconds(rt, times->between));
    json_object_set_new(
        object, "waiting_seconds",
        sl_train_gather_seconds(rt, times->clock - times->compute / count_workers(rt)));
    return object;
}

void sl_train_report_end(struct sl_train_run *run)
{
    struct sl_runtime *rt = &run->rt;
    const struct sl_outcome *outcome = &run->outcome;
    int64_t *values = calloc((size_t)rt->ranks, sizeof *values);
    if (!values)
        sl_fatal("no memory for the figures of %d ranks", rt->ranks); /* the others wait for them */
    char weights[20];
    json_t *event = json_object();
    json_object_set_new(event, "metric", json_string(outcome->metric->name));
    const struct sl_scores accuracies = sl_outcome_accuracies(outcome);
    set_scores(event, "accuracy", &accuracies);
    if (outcome->metric != &sl_metric_accuracy)
        set_scores(event, outcome->metric->name, &outcome->score);
    set_finite(event, "loss", outcome->loss);
    snprintf(weights, sizeof weights, "%016" PRIx64, outcome->weights);
    if (!outcome->broken)
        json_object_set_new(event, "weights", json_string(weights));
    set_finite(event, "largest_class", outcome->largest_class);
    json_object_set_new(event, "underfitted", json_boolean(sl_outcome_underfits(outcome)));
    json_object_set_new(event, "best_epoch", json_integer(outcome->best_epoch));
    json_object_set_new(event, "kept_epoch", json_integer(outcome->kept_epoch));
    json_object_set_new(event, "epochs", json_integer(outcome->epochs));
    if (outcome->unfinished.steps > 0)
        json_object_set_new(event, "unfinished",
                            json_pack("{s:i, s:i}", "steps", outcome->unfinished.steps, "of",
                                      outcome->unfinished.of));
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
    json_object_set_new(event, "bytes_sent", sl_train_gather(rt, rt->traffic.bytes_sent));
    json_object_set_new(event, "traffic_per_epoch", describe_traffic(rt, &run->trainer.traffic));
    if (run->trainer.exact_traffic.sum_epochs > 0)
        json_object_set_new(event, "exact_traffic_per_epoch",
                            describe_traffic(rt, &run->trainer.exact_traffic));
    sl_train_log_traffic(run, event);
    json_object_set_new(event, "time_per_epoch", describe_times(rt, &outcome->epoch_times));
    if (outcome->confusion)
        json_object_set(event, "confusion", outcome->confusion);
    if (outcome->members)
        json_object_set(event, "at_best", outcome->members);
    if (outcome->profile)
        json_object_set(event, "profile", outcome->profile);
    free(values);
    run->end = json_incref(event);
    sl_report_event(&run->report, "end", event);
}
