#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/vector.h"
#include "core/dag.h"
#include "core/error.h"
#include "core/log.h"
#include "core/message.h"
#include "core/profile.h"
#include "train/late_messages.h"
#include "train/state.h"

/* Epochs that may be submitted ahead of the last epoch with known metrics. They are enough that
 * workers never wait for the submitting thread. They are few enough that pending tasks stay within
 * some tens of megabytes. */
enum { MOST_AHEAD = 8, LEAST_AHEAD = 2, PENDING_TASKS = 20000 };
_Static_assert(MOST_AHEAD + 2 < SL_EPOCHS_IN_FLIGHT, "tags come round too early");
static const double MOST_SECONDS_AHEAD = 0.5;

static double mean_of(const struct sl_trainer *trainer, double sum, enum sl_split split)
{
    const int64_t count = trainer->whole.operands.split_count[split];
    return count ? sum / (double)count : NAN;
}

/* Numbers are never right. */
static double accuracy(const struct sl_trainer *trainer, double correct, enum sl_split split)
{
    return trainer->whole.graph.objective.loss->classes ? mean_of(trainer, correct, split) : NAN;
}

/* What an evaluation has measured. */
static struct sl_scores scores_of(const struct sl_trainer *trainer, const struct sl_record *record)
{
    const struct sl_metric *metric = trainer->whole.graph.objective.metric;
    struct sl_scores scores;
    for (int s = 0; s < SL_SPLITS; s++) {
        const double value = record->values[metric->index + s];
        scores.of[s] =
            metric->source == SL_METRIC_OF_SUMS ? mean_of(trainer, value, (enum sl_split)s) : value;
    }
    return scores;
}

static double accuracy_of(const struct sl_trainer *trainer, const struct sl_record *record,
                          enum sl_split split)
{
    return accuracy(trainer, record->values[SL_METRIC_CORRECT + (int)split], split);
}

static const struct sl_scores unmeasured = {{NAN, NAN, NAN, NAN}};

/* ---- Create ---- */

int sl_trainer_check(const struct sl_source *source)
{
    const struct sl_npy *labels = &source->labels;
    if (!source->split_rule.given &&
        (!source->split[SL_SPLIT_TRAIN].data || source->split[SL_SPLIT_TRAIN].count == 0))
        return sl_error(SL_ERR_DATA,
                        "%s: there is no training vertex (expected a train_idx with at least one, "
                        "or --split 60/20/20, or --split 20/30/rest for 20 of each class)",
                        source->path);
    if (!labels->data || source->classes < 1)
        return sl_error(SL_ERR_DATA, "%s: the dataset has no labels to train on", source->path);
    return 0;
}

int sl_trainer_check_labels(const struct sl_trainer *trainer)
{
    const int64_t *count = trainer->whole.operands.split_count;
    const char *path = trainer->source->path;
    if (count[SL_SPLIT_TRAIN] == 0)
        return sl_error(SL_ERR_DATA,
                        "%s: no training vertex has a label (--split 60/20/20 draws "
                        "the splits of labelled ones)",
                        path);
    if (trainer->config->patience > 0 && count[SL_SPLIT_VAL] == 0)
        return sl_error(SL_ERR_USAGE,
                        "--patience needs labelled validation vertices, and %s has none (expected "
                        "--patience 0)",
                        path);
    return 0;
}

/* Whether the global model of sub-models is evaluated by blocks. */
static bool is_wide(const struct sl_trainer *trainer, const struct sl_model_shape *shape)
{
    return sl_submodels_there(trainer->config) &&
           sl_wide_fits(shape, trainer->source->vertices, sl_config_type(trainer->config));
}

static int create_network(struct sl_trainer *trainer, const struct sl_checkpoint *checkpoint)
{
    const struct sl_model_shape shape = sl_config_shape(
        trainer->config, trainer->whole.operands.input.width, trainer->source->classes);
    int code = sl_model_create(&trainer->model, trainer->rt, &shape);
    int *orders = code ? NULL : sl_state_orders(trainer->config, checkpoint, trainer->model.layers);
    trainer->whole.network.evaluates =
        sl_batches_differ(trainer->config) || sl_submodels_there(trainer->config);
    trainer->whole.network.logits_only =
        trainer->whole.network.evaluates &&
        (!sl_config_evaluates(trainer->config) || is_wide(trainer, &shape));
    if (!code)
        code = sl_pass_add_network(&trainer->whole, &trainer->model, NULL, &trainer->core,
                                   trainer->config, orders);
    free(orders);
    if (!code && checkpoint && trainer->config->resume)
        code = sl_submodels_check(trainer->config, checkpoint);
    if (!code && checkpoint)
        code = sl_state_load(trainer, checkpoint);
    return code;
}

/* All ranks cut the tiles alike, and choose kernels by what rank 0 remembers. */
static void start_spmm(struct sl_runtime *rt, const struct sl_config *config)
{
    sl_spmm_choice_reset(&rt->spmm);
    rt->spmm.kernel = sl_config_spmm(config);
    sl_spmm_choice_read(&rt->spmm);
    sl_runtime_broadcast(rt, 0, &rt->spmm.count, sizeof rt->spmm.count);
    sl_runtime_broadcast(rt, 0, rt->spmm.measured, sizeof rt->spmm.measured);
}

static void end_spmm(const struct sl_trainer *trainer)
{
    struct sl_runtime *rt = trainer->rt;
    if (rt->process->gpus > 0 && rt->spmm.kernel == SL_SPMM_CUSPARSE && rt->spmm.products == 0 &&
        trainer->epoch >= trainer->first_epoch)
        sl_note("--spmm cusparse: no sparse product of rank %d was cuSPARSE's, which takes float32 "
                "and what a GPU has room for",
                rt->rank);
    if (rt->process->gpus > 0)
        sl_runtime_drop_kept();
    sl_spmm_choice_reset(&rt->spmm);
}

/* The first parameters, or those of the checkpoint. */
static int fill_model(struct sl_trainer *trainer, const struct sl_checkpoint *checkpoint)
{
    if (!checkpoint) {
        sl_model_init(&trainer->model);
        return 0;
    }
    sl_model_spread(&trainer->model);
    return sl_runtime_agree(trainer->rt, sl_late_messages_load(&trainer->whole.network, checkpoint,
                                                               trainer->config->resume));
}

/* The sub-models of this rank's group are the models of its batches. */
static int create_submodels(struct sl_trainer *trainer, const struct sl_checkpoint *checkpoint)
{
    struct sl_batches *b = &trainer->batches;
    struct sl_submodels *s = &trainer->submodels;
    const struct sl_model_shape shape = sl_config_shape(
        trainer->config, trainer->whole.operands.input.width, trainer->source->classes);
    const int64_t most = sl_config_epochs(trainer->config) * sl_batches_steps(b);
    int code =
        is_wide(trainer, &shape) && sl_config_evaluates(trainer->config)
            ? sl_wide_create(&trainer->wide, &trainer->whole,
                             b->groups.count > 1 ? NULL : &b->places, &shape, trainer->config)
            : 0;
    code = sl_runtime_agree(trainer->rt, code);
    if (code)
        return code;
    code = sl_submodels_create(s, trainer->rt, sl_batches_own(b),
                               b->groups.count > 1 ? &b->groups : NULL, &trainer->model, &shape,
                               trainer->config, most);
    if (code)
        return code;
    struct sl_model **model = calloc((size_t)s->own_slots, sizeof *model);
    for (int k = 0; model && k < s->own_slots; k++)
        model[k] = &s->slot[s->first_slot + k].model;
    code = model ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for %d models", s->own_slots);
    code = sl_runtime_agree(trainer->rt, code);
    s->spreads = !trainer->whole.network.logits_only;
    if (!code)
        code = sl_batches_create(b, model, s->own_slots, true);
    return code || !checkpoint ? code : sl_submodels_load(s, trainer->first_updates, checkpoint);
}

static int create_batches(struct sl_trainer *trainer, const struct sl_checkpoint *checkpoint)
{
    if (sl_submodels_there(trainer->config))
        return create_submodels(trainer, checkpoint);
    struct sl_model **model = calloc(1, sizeof *model);
    if (!model)
        sl_fatal("no memory for a list of one model");
    *model = &trainer->model;
    return sl_batches_create(&trainer->batches, model, 1, false);
}

int sl_trainer_create(struct sl_trainer *trainer, struct sl_runtime *rt,
                      const struct sl_source *source, const struct sl_config *config,
                      const struct sl_checkpoint *checkpoint)
{
    *trainer = (struct sl_trainer){
        .rt = rt, .config = config, .source = source, .first_epoch = 1, .best_value = -1.0};
    const struct sl_assembly how = sl_batches_whole(config);
    int code = sl_records_create(&trainer->records, rt);
    const enum sl_instructions level = strcmp(config->instructions, "auto") == 0
                                           ? sl_instructions_best()
                                           : sl_instructions_find(config->instructions);
    start_spmm(rt, config);
    sl_rates_of_core(rt->cache_bytes, &trainer->core);
    sl_runtime_broadcast(rt, 0, &trainer->core, sizeof trainer->core);
    rt->tf32 = strcmp(config->precision, "tf32") == 0;
    /* The same on all ranks: with and without fused multiply-add, sums are rounded differently. */
    sl_instructions_set((enum sl_instructions)sl_runtime_least(rt, level));
    if (!code)
        code = sl_pass_open(&trainer->whole, rt, source, config, &how);
    if (!code)
        code = create_network(trainer, checkpoint);
    code = sl_runtime_agree(rt, code);
    if (code)
        return code;
    trainer->epoch = trainer->first_epoch - 1;
    if (!rt->plans)
        code = fill_model(trainer, checkpoint);
    if (!code)
        code =
            sl_batches_open(&trainer->batches, rt, source, config, &trainer->whole, &trainer->core);
    return code ? code : create_batches(trainer, checkpoint);
}

void sl_trainer_destroy(struct sl_trainer *trainer)
{
    sl_wide_destroy(&trainer->wide);
    sl_batches_clear(&trainer->batches);
    if (trainer->submodels.rt)
        sl_submodels_destroy(&trainer->submodels);
    sl_batches_destroy(&trainer->batches);
    sl_pass_destroy(&trainer->whole);
    sl_model_destroy(&trainer->model);
    if (trainer->rt)
        end_spmm(trainer);
    if (trainer->rt)
        sl_records_destroy(&trainer->records);
    *trainer = (struct sl_trainer){0};
}

/* ---- Save ---- */

int sl_trainer_save(struct sl_trainer *trainer, const char *path)
{
    struct sl_checkpoint checkpoint = {0};
    int code = sl_state_collect(trainer, &checkpoint);
    if (!code && trainer->rt->rank == 0)
        code = sl_checkpoint_write(&checkpoint, path);
    if (!code)
        trainer->saved_epoch = json_integer_value(json_object_get(checkpoint.description, "epoch"));
    sl_checkpoint_free(&checkpoint);
    return code;
}

/* ---- Run ---- */

/* What the loop knows of the epochs whose records were read. */
struct progress {
    int64_t read;                     /* records of epochs up to this one were read */
    int64_t last;                     /* the run ends with this epoch */
    struct sl_overlap_times previous; /* when the epoch before ended */
    struct sl_overlap_times sum;      /* of the epochs read, without their evaluations */
    double *seconds;                  // (epochs), of each epoch read
    bool stopped, early;              /* on request; by --patience */
    bool broken;                      /* a number of the last epoch is not finite */
};

/* The weights of such an epoch may be kept: the same ones, however often a run is resumed. */
static bool is_candidate(const struct sl_config *config, int64_t epoch)
{
    return epoch % sl_config_eval_every(config) == 0;
}

static bool is_saved(const struct sl_config *config, int64_t epoch)
{
    return config->checkpoint_every && epoch % config->checkpoint_every == 0;
}

/* What is saved is evaluated before: weights may be finite whose logits are not. */
static bool is_evaluated(const struct sl_config *config, int64_t epoch)
{
    if (!sl_config_evaluates(config))
        return false;
    return is_candidate(config, epoch) || epoch == sl_config_epochs(config) ||
           is_saved(config, epoch);
}

static struct sl_optimizer_step optimizer_step(const struct sl_config *config, int64_t epoch,
                                               int64_t update)
{
    const float beta1 = 0.9f, beta2 = 0.999f;
    return (struct sl_optimizer_step){
        .method = sl_optimizer_find(config->optimizer),
        .rate = (float)sl_config_rate(config, epoch),
        .momentum = (float)config->momentum,
        .beta1 = beta1,
        .beta2 = beta2,
        .epsilon = 1e-8f,
        .average_rate = 0.1f,
        .correction1 = (float)(1.0 - pow((double)beta1, (double)update)),
        .correction2 = (float)(1.0 - pow((double)beta2, (double)update)),
    };
}

static void train_network(struct sl_trainer *trainer, struct sl_network *net, int64_t epoch,
                          const struct sl_optimizer_step *step)
{
    const struct sl_config *config = trainer->config;
    net->epoch = (uint32_t)epoch;
    net->update = (uint32_t)trainer->updates;
    net->exact = epoch > sl_config_epochs(config) - config->exact_epochs;
    sl_network_train(net, step);
}

static void train_model(struct sl_trainer *trainer, struct sl_network *net, int64_t epoch)
{
    const struct sl_optimizer_step step =
        optimizer_step(trainer->config, epoch, ++trainer->updates);
    train_network(trainer, net, epoch, &step);
}

/* Without carried state, Adam counts the steps of the round. */
static void train_submodels(struct sl_trainer *trainer, int64_t epoch, int number)
{
    struct sl_submodels *s = &trainer->submodels;
    const int64_t local = sl_submodels_step(s, trainer->updates++, epoch);
    struct sl_optimizer_step step = optimizer_step(
        trainer->config, epoch, trainer->config->reset_optimizer ? local : trainer->updates);
    step.local = local;
    for (int p = s->first; p < s->first + s->here; p++) {
        const int slot = sl_submodels_enter(s, p);
        struct sl_network *net = sl_batches_network(&trainer->batches, epoch, number, slot);
        train_network(trainer, net, epoch, &step);
        sl_submodels_leave(s, p, net);
    }
}

static void record_step(struct sl_trainer *trainer, struct sl_network *net, int64_t epoch)
{
    if (sl_submodels_there(trainer->config))
        sl_submodels_record(&trainer->submodels, epoch, sl_records_train, &trainer->records);
    else
        sl_network_record(net, sl_records_train, &trainer->records);
}

/* The steps without a training vertex, which all ranks leave out, learn nothing. */
static void submit_steps(struct sl_trainer *trainer, int64_t epoch)
{
    struct sl_batches *batches = &trainer->batches;
    const int64_t tasks = trainer->rt->tasks + batches->own.tasks;
    const struct sl_traffic traffic = trainer->rt->traffic, inside = batches->own.traffic;
    sl_records_open(&trainer->records, epoch, batches->steps);
    trainer->tasks_per_epoch = 0;
    for (int s = 0; s < batches->steps; s++) {
        struct sl_network *net = sl_batches_network(batches, epoch, s, 0);
        if (!net) {
            sl_records_skip(&trainer->records, epoch);
            continue;
        }
        if (sl_submodels_there(trainer->config))
            train_submodels(trainer, epoch, s);
        else
            train_model(trainer, net, epoch);
        trainer->tasks_per_epoch = trainer->rt->tasks + batches->own.tasks - tasks;
        record_step(trainer, net, epoch);
        if (batches->steps > 1) /* an epoch may have many */
            sl_runtime_wait_for_room(trainer->rt, PENDING_TASKS);
    }
    sl_batches_leave(batches);
    sl_records_of(&trainer->records, epoch)->updates = trainer->updates;
    trainer->traffic_per_epoch = sl_traffic_since(trainer->rt, &traffic);
    trainer->traffic_inside = sl_traffic_since(&batches->own, &inside);
}

static void evaluate(struct sl_trainer *trainer)
{
    if (trainer->wide.shapes > 0)
        sl_wide_evaluate(&trainer->wide);
    else
        sl_network_evaluate(&trainer->whole.network);
}

/* The model is that of the sub-models then. */
static void put_submodels(struct sl_trainer *trainer, int64_t epoch)
{
    if (sl_submodels_there(trainer->config))
        sl_submodels_put(&trainer->submodels, epoch);
}

static void submit_epoch(struct sl_trainer *trainer, int64_t epoch)
{
    const struct sl_config *config = trainer->config;
    struct sl_network *net = &trainer->whole.network;
    submit_steps(trainer, epoch);
    net->epoch = (uint32_t)epoch;
    if (is_evaluated(config, epoch) || is_saved(config, epoch))
        put_submodels(trainer, epoch);
    if (is_evaluated(config, epoch)) {
        evaluate(trainer);
        if (config->patience > 0 && is_candidate(config, epoch)) {
            sl_network_keep_best(net, (int)config->patience);
            if (sl_submodels_there(config))
                sl_submodels_share_end(&trainer->submodels);
        }
        sl_network_record(net, sl_records_evaluate, &trainer->records);
    }
    trainer->epoch = epoch;
}

static struct sl_overlap_times add_times(struct sl_overlap_times a, struct sl_overlap_times b)
{
    return (struct sl_overlap_times){a.clock + b.clock, a.compute + b.compute,
                                     a.communication + b.communication, a.hidden + b.hidden,
                                     a.between + b.between};
}

static struct sl_overlap_times mean_times(struct sl_overlap_times sum, int64_t count)
{
    if (count == 0)
        return sum;
    return (struct sl_overlap_times){sum.clock / count, sum.compute / count,
                                     sum.communication / count, sum.hidden / count,
                                     sum.between / count};
}

/* Ranks stop together: rank 0 is told, and tells the others when an epoch ends. */
static void pass_on_stop(struct sl_trainer *trainer)
{
    if (trainer->rt->rank == 0 || trainer->stop_passed_on ||
        !sl_records_stop_asked(&trainer->records))
        return;
    sl_runtime_ask_stop(trainer->rt);
    trainer->stop_passed_on = true;
}

/* As sl_submit_keep_best does on rank 0. */
static void note_best(struct sl_trainer *trainer, const struct sl_record *record, int64_t epoch)
{
    const struct sl_metric *metric = trainer->whole.graph.objective.metric;
    const double seen = record->values[metric->index + SL_SPLIT_VAL];
    const double value = metric->falls ? -seen : seen;
    if (!sl_is_better(value, trainer->best_value, trainer->best_epoch))
        return;
    trainer->best_value = value;
    trainer->best_epoch = epoch;
}

/* Takes the record of the next epoch, waiting for it if it has not ended. */
static void read_epoch(struct sl_trainer *trainer, struct sl_report *report,
                       struct progress *progress)
{
    const struct sl_config *config = trainer->config;
    const int64_t epoch = ++progress->read;
    pass_on_stop(trainer);
    const bool evaluated = is_evaluated(config, epoch);
    const double models = (double)sl_submodels_work(config);
    const struct sl_record *record = sl_records_wait(&trainer->records, epoch, true, evaluated);
    const struct sl_overlap_times times =
        sl_overlap_since(&record->trained_at, &progress->previous);
    struct sl_epoch_report line = {
        .epoch = epoch,
        .epochs = sl_config_epochs(config),
        .loss = mean_of(trainer, record->train_loss / models, SL_SPLIT_TRAIN),
        .train_accuracy = accuracy(trainer, record->train_correct / models, SL_SPLIT_TRAIN),
        .val_accuracy = evaluated ? accuracy_of(trainer, record, SL_SPLIT_VAL) : NAN,
        .test_accuracy = evaluated ? accuracy_of(trainer, record, SL_SPLIT_TEST) : NAN,
        .metric = trainer->whole.graph.objective.metric,
        .score = evaluated ? scores_of(trainer, record) : unmeasured,
        .seconds = sl_overlap_seconds(times.clock),
        .eval_seconds =
            evaluated ? sl_overlap_seconds(record->evaluated_at.clock - record->trained_at.clock)
                      : NAN,
        .times = times,
    };
    progress->seconds[epoch - trainer->first_epoch] = line.seconds;
    progress->sum = add_times(progress->sum, times);
    progress->previous = evaluated ? record->evaluated_at : record->trained_at;
    const bool patient = config->patience > 0;
    if (patient ? is_candidate(config, epoch) : evaluated)
        note_best(trainer, record, epoch);
    if (trainer->rt->rank == 0)
        sl_report_epoch(report, &line);
    if (record->broken && !progress->broken) {
        progress->broken = true;
        progress->last = epoch;
    }
    if (record->stop && !progress->stopped) {
        progress->stopped = true; /* what is submitted already leaves the parameters alone */
        progress->last = epoch;
    }
    if (patient && is_candidate(config, epoch) && epoch - trainer->best_epoch >= config->patience &&
        epoch < progress->last) {
        progress->last = epoch;
        progress->early = true;
    }
}

/* Reads the records of all epochs up to that one, unless the run ends before it. */
static void read_until(struct sl_trainer *trainer, struct sl_report *report,
                       struct progress *progress, int64_t epoch)
{
    while (progress->read < progress->last && progress->read < epoch)
        read_epoch(trainer, report, progress);
}

/* Of any group. */
static int64_t most_models(const struct sl_trainer *trainer)
{
    const int64_t groups = trainer->batches.groups.count;
    return sl_submodels_there(trainer->config) ? (trainer->submodels.count + groups - 1) / groups
                                               : 1;
}

/* Return the same number on every rank: all must submit the same epochs, also when a run ends
 * early. The number follows from the tiles, and from the seconds of the last read epoch, as rank 0
 * measured them. When a run ends early, the submitted epochs are still computed, in vain. */
static int64_t epochs_ahead(const struct sl_trainer *trainer, const struct progress *progress)
{
    const int64_t tiles = trainer->whole.operands.partition->tiles;
    const int64_t per_layer = 2 * tiles + 8 * tiles / trainer->rt->ranks + 1;
    int64_t ahead = PENDING_TASKS / (per_layer * trainer->whole.network.layers *
                                     trainer->batches.steps * most_models(trainer));
    if (trainer->config->checkpoint && sl_late_messages(&trainer->whole.network))
        return 0; /* epochs in vain would replace the messages of the last one */
    ahead = ahead < LEAST_AHEAD ? LEAST_AHEAD : ahead > MOST_AHEAD ? MOST_AHEAD : ahead;
    if (progress->read < trainer->first_epoch) {
        ahead = 1; /* nobody knows yet how long one takes */
    } else {
        const double seconds = sl_records_of(&trainer->records, progress->read)->seconds;
        while (ahead > 0 && (double)ahead * seconds > MOST_SECONDS_AHEAD)
            ahead--;
    }
    return ahead;
}

static int compare_seconds(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int64_t count)
{
    if (count == 0)
        return NAN;
    qsort(values, (size_t)count, sizeof *values, compare_seconds);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

void sl_trainer_evaluate(struct sl_trainer *trainer, struct sl_outcome *outcome)
{
    if (!sl_config_evaluates(trainer->config))
        return;
    sl_records_of(&trainer->records, 0)->evaluated = false;
    sl_records_of(&trainer->records, 0)->broken = SL_SOUND;
    trainer->whole.network.epoch = 0;
    evaluate(trainer);
    sl_network_record(&trainer->whole.network, sl_records_evaluate, &trainer->records);
    const struct sl_record *record = sl_records_wait(&trainer->records, 0, false, true);
    outcome->train_accuracy = accuracy_of(trainer, record, SL_SPLIT_TRAIN);
    outcome->val_accuracy = accuracy_of(trainer, record, SL_SPLIT_VAL);
    outcome->test_accuracy = accuracy_of(trainer, record, SL_SPLIT_TEST);
    outcome->metric = trainer->whole.graph.objective.metric;
    outcome->score = scores_of(trainer, record);
    const bool classes = trainer->whole.graph.objective.loss->form == SL_TARGET_CLASS;
    outcome->largest_class =
        classes ? accuracy(trainer, (double)trainer->whole.operands.largest_class, SL_SPLIT_TRAIN)
                : NAN;
}

bool sl_outcome_underfits(const struct sl_outcome *outcome)
{
    static const double LEARNT = 0.1; /* of what the largest class leaves over */
    const double rest = 1.0 - outcome->largest_class;
    return outcome->metric == &sl_metric_accuracy &&
           outcome->train_accuracy < outcome->largest_class + LEARNT * rest;
}

struct sl_scores sl_outcome_accuracies(const struct sl_outcome *outcome)
{
    return (struct sl_scores){{[SL_SPLIT_NONE] = NAN,
                               [SL_SPLIT_TRAIN] = outcome->train_accuracy,
                               [SL_SPLIT_VAL] = outcome->val_accuracy,
                               [SL_SPLIT_TEST] = outcome->test_accuracy}};
}

void sl_trainer_use_best(struct sl_trainer *trainer)
{
    if (trainer->config->patience > 0 && trainer->best_epoch)
        sl_model_restore_best(&trainer->model);
}

/* The first epoch that a profile covers: those before touch memory and models for the first time.
 */
static int64_t first_profiled(const struct sl_trainer *trainer)
{
    enum { WARM_UP = 2 };
    const int64_t first = trainer->first_epoch;
    return sl_config_epochs(trainer->config) >= first + 2 * WARM_UP ? first + WARM_UP : first;
}

static json_t *end_profile(struct sl_trainer *trainer)
{
    sl_runtime_wait(trainer->rt);
    json_t *profile = sl_profile_end();
    json_object_set_new(profile, "epochs",
                        json_integer(trainer->epoch - first_profiled(trainer) + 1));
    return profile;
}

/* ---- Checkpoints of a run ---- */

/* Saves the epoch submitted last, if it is one to be saved and the run goes on after it. The
 * records of all epochs in it were read, and their lines in the log outlive a crash before the
 * checkpoint does: who resumes from it misses none. */
static int save_on_the_way(struct sl_trainer *trainer, struct sl_report *report,
                           struct progress *progress)
{
    const int64_t epoch = trainer->epoch;
    if (!is_saved(trainer->config, epoch) || epoch >= progress->last)
        return 0;
    read_until(trainer, report, progress, epoch);
    if (epoch >= progress->last)
        return 0;
    sl_report_sync(report);
    const int code = sl_trainer_save(trainer, trainer->config->checkpoint);
    if (code)
        sl_note("%s; training goes on", sl_error_message());
    return code;
}

/* As save_on_the_way does, but rank 0 looks for another place if need be. */
static int save_last(struct sl_trainer *trainer, struct sl_report *report)
{
    struct sl_checkpoint checkpoint = {0};
    sl_report_sync(report);
    int code = sl_state_collect(trainer, &checkpoint);
    if (!code && trainer->rt->rank == 0)
        code = sl_checkpoint_write_somewhere(&checkpoint, trainer->config->checkpoint);
    sl_checkpoint_free(&checkpoint);
    return code;
}

/* An epoch in which the run was asked to stop need not have been evaluated. */
static bool is_broken(struct sl_trainer *trainer, const struct progress *progress)
{
    struct sl_outcome outcome;
    if (progress->broken || !sl_config_evaluates(trainer->config) ||
        is_evaluated(trainer->config, progress->last))
        return progress->broken;
    sl_trainer_evaluate(trainer, &outcome);
    sl_records_of(&trainer->records, progress->last)->broken =
        sl_records_of(&trainer->records, 0)->broken;
    return sl_records_of(&trainer->records, 0)->broken != SL_SOUND;
}

/* ---- The epochs ---- */

/* Submit an epoch; draw the first one, if that is asked for. */
static void submit_drawn(struct sl_trainer *trainer, int64_t epoch, int *failure)
{
    const char *path =
        trainer->rt->rank == 0 && epoch == trainer->first_epoch ? trainer->config->dag : NULL;
    if (path)
        sl_dag_begin();
    submit_epoch(trainer, epoch);
    if (path)
        *failure = sl_dag_end(path);
    if (*failure && path)
        sl_note("%s; training goes on", sl_error_message());
}

/* Submits and reads them all. Returns 0, or why a file on the way could not be written. */
static int run_epochs(struct sl_trainer *trainer, struct sl_report *report,
                      struct progress *progress)
{
    int failure = 0;
    for (int64_t epoch = trainer->first_epoch; epoch <= progress->last; epoch++) {
        if (trainer->config->profile && epoch == first_profiled(trainer)) {
            sl_runtime_wait(trainer->rt);
            sl_profile_begin();
        }
        submit_drawn(trainer, epoch, &failure);
        const int code = save_on_the_way(trainer, report, progress);
        failure = failure ? failure : code;
        while (progress->read < progress->last &&
               progress->read < epoch - epochs_ahead(trainer, progress))
            read_epoch(trainer, report, progress);
    }
    read_until(trainer, report, progress, progress->last);
    if (trainer->rt->rank == 0)
        sl_report_finish_bar(report);
    return failure;
}

/* With which the run ends if nothing ends it before. */
static int64_t last_epoch(const struct sl_trainer *trainer)
{
    const struct sl_config *config = trainer->config;
    const int64_t epochs = sl_config_epochs(config), left = epochs - trainer->first_epoch + 1;
    return config->stop_after > 0 && config->stop_after < left
               ? trainer->first_epoch + config->stop_after - 1
               : epochs;
}

/* Of the steps up to an epoch. */
static void end_submodels(struct sl_trainer *trainer, int64_t epoch)
{
    if (sl_submodels_there(trainer->config) && epoch >= trainer->first_epoch)
        sl_submodels_end(&trainer->submodels, epoch,
                         sl_records_of(&trainer->records, epoch)->updates);
}

int sl_trainer_run(struct sl_trainer *trainer, struct sl_report *report, struct sl_outcome *outcome)
{
    const struct sl_config *config = trainer->config;
    const int64_t first = trainer->first_epoch;
    struct progress progress = {.read = first - 1, .last = last_epoch(trainer)};
    progress.seconds = calloc((size_t)(sl_config_epochs(config) + 1), sizeof *progress.seconds);
    if (!progress.seconds)
        sl_fatal("no memory for the times of %lld epochs", (long long)sl_config_epochs(config));
    sl_runtime_wait(trainer->rt); /* set-up is not part of the first epoch */
    progress.previous = sl_overlap_now();
    trainer->started_at = trainer->records.last_trained_at =
        sl_overlap_seconds(progress.previous.clock);

    int failure = run_epochs(trainer, report, &progress);
    end_submodels(trainer, progress.last);
    sl_runtime_settle_stops(trainer->rt, trainer->stop_passed_on);
    json_t *profile = config->profile ? end_profile(trainer) : NULL;
    *outcome = (struct sl_outcome){
        .epochs = progress.last,
        .best_epoch = trainer->best_epoch,
        .stopped = progress.stopped,
        .early = progress.early,
        .profile = profile,
        .train_accuracy = NAN,
        .val_accuracy = NAN,
        .test_accuracy = NAN,
        .metric = trainer->whole.graph.objective.metric,
        .score = unmeasured,
        .largest_class = NAN,
    };
    if (is_broken(trainer, &progress)) {
        failure = sl_breakdown_refuse(trainer, progress.last, outcome);
    } else {
        const int code = config->checkpoint ? save_last(trainer, report) : 0;
        failure = code ? code : failure;
        sl_trainer_use_best(trainer);
        sl_trainer_evaluate(trainer, outcome);
    }
    outcome->seconds = sl_runtime_seconds() - trainer->started_at;
    outcome->loss =
        progress.last >= first
            ? sl_records_of(&trainer->records, progress.last)->train_loss /
                  (double)(trainer->whole.network.graph->train_count * sl_submodels_work(config))
            : NAN;
    outcome->epoch_seconds_median = median(progress.seconds, progress.last - first + 1);
    outcome->epoch_times = mean_times(progress.sum, progress.last - first + 1);
    free(progress.seconds);
    return failure;
}
