#include "train/trainer.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "checkpoint/late_messages.h"
#include "core/dag.h"
#include "core/error.h"
#include "core/log.h"
#include "core/message.h"
#include "core/profile.h"
#include "core/task.h"
#include "core/trace.h"
#include "train/confusion.h"
#include "train/outcome.h"
#include "train/scores.h"
#include "train/state.h"
#include "train/steps.h"

/* Epochs that may be submitted ahead of the last epoch with known metrics. They are enough that
 * workers never wait for the submitting thread. They are few enough that pending tasks stay within
 * some tens of megabytes. */
enum { MOST_AHEAD = 8, LEAST_AHEAD = 2 };
_Static_assert(MOST_AHEAD + 2 < SL_EPOCHS_IN_FLIGHT, "tags come round too early");
static const double MOST_SECONDS_AHEAD = 0.5;

/* ---- Save ---- */

int sl_trainer_save(struct sl_trainer *trainer, const char *path)
{
    int64_t epoch;
    const int code = sl_state_write(trainer, path, false, &epoch);
    if (!code)
        trainer->saved_epoch = epoch;
    return code;
}

/* ---- Run ---- */

/* Results of the epochs whose records the epoch loop has read. */
struct progress {
    int64_t read;                     /* records up to this epoch were read */
    int64_t last;                     /* the run ends with this epoch */
    struct sl_overlap_times previous; /* end of the epoch before */
    struct sl_overlap_times sum;      /* sums of the read epochs, without evaluations */
    double *seconds;                  // (epochs): seconds of each read epoch
    struct sl_unfinished unfinished;  /* the epoch after `last`; steps 0: none */
    bool stopped, early;              /* stopped on request; stopped by --patience */
    bool broken;                      /* a number of the last epoch is not finite */
};

/* Whether the weights after an epoch may be the best ones. The answer does not depend on how often
 * a run is resumed. The last epoch's weights may be kept, too, until the run goes on. */
static bool is_candidate(const struct sl_config *config, int64_t epoch)
{
    return epoch % sl_config_eval_every(config) == 0;
}

static bool has_validation(const struct sl_trainer *trainer)
{
    return trainer->whole.operands.split_count[SL_SPLIT_VAL] > 0;
}

/* Whether the run compares epochs by their validation vertices as it goes on. */
static bool compares(const struct sl_trainer *trainer)
{
    return has_validation(trainer) &&
           (trainer->config->training.patience > 0 || sl_config_keeps_best(trainer->config));
}

static bool is_saved(const struct sl_config *config, int64_t epoch)
{
    return config->files.checkpoint_every && epoch % config->files.checkpoint_every == 0;
}

/* Whether an epoch is evaluated. Saved epochs are evaluated first, since finite weights may have
 * logits that are not. */
static bool is_evaluated(const struct sl_config *config, int64_t epoch)
{
    if (!sl_config_evaluates(config))
        return false;
    return is_candidate(config, epoch) || epoch == sl_config_epochs(config) ||
           is_saved(config, epoch);
}

/* Measure the validation vertices after an epoch, with the network for them or with the whole
 * graph's. Return the network. */
static struct sl_network *validate(struct sl_trainer *trainer)
{
    struct sl_network *net = sl_batches_validation(&trainer->batches);
    if (net)
        sl_network_evaluate(net);
    else
        sl_trainer_evaluate_whole(trainer);
    return net ? net : &trainer->whole.network;
}

/* Copy the sub-models' parameters after an epoch into the model, if there are sub-models. */
static void put_submodels(struct sl_trainer *trainer, int64_t epoch)
{
    if (sl_config_has_submodels(trainer->config))
        sl_submodels_put(&trainer->submodels, epoch);
}

static void submit_epoch(struct sl_trainer *trainer, int64_t epoch)
{
    const struct sl_config *config = trainer->config;
    sl_trace_epoch(epoch);
    trainer->epoch = epoch;
    if (!sl_trainer_submit_steps(trainer, epoch))
        return;
    trainer->whole.network.step.epoch = (uint32_t)epoch;
    if (is_evaluated(config, epoch) || is_saved(config, epoch))
        put_submodels(trainer, epoch);
    if (is_evaluated(config, epoch)) {
        struct sl_network *net = validate(trainer);
        net->step.epoch = (uint32_t)epoch;
        if (compares(trainer) && is_candidate(config, epoch)) {
            sl_network_keep_best(net, config->training.patience > 0 ? (int)config->training.patience
                                                                    : INT_MAX);
            sl_store_keep_best(&trainer->store, (int)epoch);
        }
        sl_network_record(net, sl_records_evaluate, &trainer->records);
    }
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

/* Note a new best epoch, by the same rule as sl_submit_keep_best. */
static void note_best(struct sl_trainer *trainer, const struct sl_record *record, int64_t epoch)
{
    const double value = sl_value_of(trainer, record);
    if (!has_validation(trainer) ||
        !sl_is_better(value, trainer->kept.best_value, trainer->kept.best_epoch))
        return;
    trainer->kept.best_value = value;
    trainer->kept.best_epoch = epoch;
    trainer->kept.best_loss = sl_loss_of(trainer, record);
    trainer->kept.best_updates = record->updates;
}

/* Settle whose weights are kept if the run ends with this epoch, and its best epoch. `whole`: no
 * step of a later epoch changed the weights. */
static void settle_kept(struct sl_trainer *trainer, int64_t epoch, bool whole)
{
    const bool keeps = sl_config_keeps_best(trainer->config) && has_validation(trainer),
               measured = whole && epoch >= trainer->start.first_epoch &&
                          is_evaluated(trainer->config, epoch);
    const bool last = keeps && measured &&
                      sl_is_better(sl_value_of(trainer, sl_records_of(&trainer->records, epoch)),
                                   trainer->kept.best_value, trainer->kept.best_epoch);
    trainer->kept.kept_epoch =
        keeps && trainer->kept.best_epoch > 0 && !last ? trainer->kept.best_epoch : epoch;
    trainer->kept.shown_best_epoch = last ? epoch : trainer->kept.best_epoch;
}

/* Note that the run was stopped between two steps of an epoch. The run ends with the epoch before.
 */
static void note_unfinished(struct sl_trainer *trainer, const struct sl_record *record,
                            int64_t epoch, struct progress *progress)
{
    const int steps = trainer->batches.steps;
    progress->stopped = true;
    progress->last = epoch - 1;
    progress->unfinished = (struct sl_unfinished){
        .steps = (int)lround((record->end - (double)(epoch - 1)) * steps),
        .of = steps,
        .loss = record->train_loss,
        .correct = record->train_correct,
    };
}

/* Return how many steps of the epoch the checkpoint has. */
static int first_step_of(const struct sl_trainer *trainer, int64_t epoch)
{
    return epoch == trainer->start.first_epoch ? trainer->start.unfinished.steps : 0;
}

/* Read the record of the next epoch. Wait until the epoch has ended. */
static void read_epoch(struct sl_trainer *trainer, struct sl_report *report,
                       struct progress *progress)
{
    const struct sl_config *config = trainer->config;
    const int64_t epoch = ++progress->read;
    sl_trainer_pass_on_stop(trainer);
    const double models = (double)sl_config_work(config);
    const struct sl_record *record = sl_records_wait(&trainer->records, epoch, true, false);
    const bool unfinished = sl_record_is_unfinished(record, epoch);
    /* Some ranks may still be evaluating the epoch. Their breakdown is read later. */
    const bool broke = record->broken && record->broken != SL_BROKEN_EVALUATION;
    if (unfinished && !broke) {
        note_unfinished(trainer, record, epoch, progress);
        return;
    }
    const bool evaluated = !unfinished && is_evaluated(config, epoch);
    const bool tested = evaluated && !sl_batches_validation(&trainer->batches);
    sl_records_wait(&trainer->records, epoch, true, evaluated);
    trainer->step_seconds =
        record->seconds / (trainer->batches.steps - first_step_of(trainer, epoch));
    const struct sl_overlap_times times =
        sl_overlap_since(&record->trained_at, &progress->previous);
    const struct sl_objective *objective = &trainer->whole.graph.objective;
    struct sl_epoch_report line = {
        .epoch = epoch,
        .epochs = sl_config_epochs(config),
        .loss = sl_loss_of(trainer, record),
        .train_accuracy = sl_accuracy(trainer, record->train_correct / models, SL_SPLIT_TRAIN),
        .val_accuracy = evaluated ? sl_accuracy_of(trainer, record, SL_SPLIT_VAL) : NAN,
        .test_accuracy = tested ? sl_accuracy_of(trainer, record, SL_SPLIT_TEST) : NAN,
        .metric = objective->metric,
        .shown = objective->shown,
        .score = sl_scores_between(trainer, evaluated ? record : NULL, objective->metric),
        .shown_score = sl_scores_between(trainer, evaluated ? record : NULL, objective->shown),
        .seconds = sl_overlap_seconds(times.clock),
        .eval_seconds =
            evaluated ? sl_overlap_seconds(record->evaluated_at.clock - record->trained_at.clock)
                      : NAN,
        .times = times,
    };
    progress->seconds[epoch - trainer->start.first_epoch] = line.seconds;
    progress->sum = add_times(progress->sum, times);
    progress->previous = evaluated ? record->evaluated_at : record->trained_at;
    if (compares(trainer) ? is_candidate(config, epoch) : evaluated)
        note_best(trainer, record, epoch);
    if (trainer->rt->rank == 0)
        sl_report_epoch(report, &line);
    if (record->broken && !progress->broken) {
        progress->broken = true;
        progress->last = epoch;
    }
    if (record->stop && !progress->stopped) {
        progress->stopped = true; /* tasks submitted already leave the parameters alone */
        progress->last = epoch;
    }
    if (config->training.patience > 0 && is_candidate(config, epoch) &&
        epoch - trainer->kept.best_epoch >= config->training.patience && epoch < progress->last) {
        progress->last = epoch;
        progress->early = true;
    }
}

/* Read the records of epochs up to `epoch`, or up to the last one if the run ends before. */
static void read_until(struct sl_trainer *trainer, struct sl_report *report,
                       struct progress *progress, int64_t epoch)
{
    while (progress->read < progress->last && progress->read < epoch)
        read_epoch(trainer, report, progress);
}

/* Return the most models that a group trains. */
static int64_t most_models(const struct sl_trainer *trainer)
{
    const int64_t groups = trainer->batches.groups.count;
    return sl_config_has_submodels(trainer->config)
               ? (trainer->submodels.count + groups - 1) / groups
               : 1;
}

/* Return how many epochs may be submitted ahead, the same number on every rank. All ranks must
 * submit the same epochs, also when a run ends early. The number follows from the tiles, and from
 * rank 0's seconds of the last read epoch. After a run's end, submitted epochs are still computed
 * in vain. */
static int64_t epochs_ahead(const struct sl_trainer *trainer, const struct progress *progress)
{
    const int64_t tiles = trainer->whole.operands.partition->tiles;
    const int64_t per_layer = 2 * tiles + 8 * tiles / trainer->rt->ranks + 1;
    const struct sl_links *links = trainer->whole.graph.links;
    const int64_t of_links = links ? sl_links_tasks(links) / trainer->rt->ranks : 0;
    int64_t ahead = SL_PENDING_TASKS / ((per_layer * trainer->whole.network.layers + of_links) *
                                        trainer->batches.steps * most_models(trainer));
    if ((trainer->config->files.checkpoint || trainer->taken) &&
        sl_late_messages(&trainer->whole.network))
        return 0; /* epochs in vain would replace the last epoch's messages */
    ahead = ahead < LEAST_AHEAD ? LEAST_AHEAD : ahead > MOST_AHEAD ? MOST_AHEAD : ahead;
    if (progress->read < trainer->start.first_epoch) {
        ahead = 1; /* nobody knows yet how long an epoch takes */
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

void sl_trainer_use_best(struct sl_trainer *trainer)
{
    if (sl_config_keeps_best(trainer->config) && trainer->kept.best_epoch > 0 &&
        trainer->kept.kept_epoch == trainer->kept.best_epoch)
        sl_store_restore_best(&trainer->store);
}

/* Return the first epoch that a profile covers. The first epochs of a run touch memory and models
 * for the first time. */
static int64_t first_profiled(const struct sl_trainer *trainer)
{
    enum { WARM_UP = 2 };
    const int64_t first = trainer->start.first_epoch;
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

static void open_trace(const struct sl_trainer *trainer)
{
    enum { EPOCHS = 3 };
    const int64_t first = first_profiled(trainer), last = first + EPOCHS - 1;
    const struct sl_epoch_range *asked = &trainer->config->files.trace_epochs;
    if (asked->first > 0)
        sl_trace_open(asked->first, asked->last);
    else
        sl_trace_open(first, last);
}

static int close_trace(struct sl_trainer *trainer)
{
    sl_runtime_wait(trainer->rt);
    const int code = sl_trace_close(trainer->rt, trainer->config->files.trace);
    if (code && trainer->rt->rank == 0)
        sl_note("%s", sl_error_message());
    return code;
}

/* Warn of a lost file while the run goes on. Only one rank has the sentence. */
static void warn_of_loss(void)
{
    if (sl_error_message()[0])
        sl_warn("%s; training goes on", sl_error_message());
}

/* ---- Checkpoints of a run ---- */

/* Save the last submitted epoch, if it is to be saved and the run goes on. All its records are
 * read, and their log lines synced, before the checkpoint. So a run that resumes from it misses no
 * line. */
static int save_on_the_way(struct sl_trainer *trainer, struct sl_report *report,
                           struct progress *progress)
{
    const int64_t epoch = trainer->epoch;
    if (!trainer->config->files.checkpoint || !is_saved(trainer->config, epoch) ||
        epoch >= progress->last)
        return 0;
    read_until(trainer, report, progress, epoch);
    if (epoch >= progress->last)
        return 0;
    sl_report_sync(report);
    settle_kept(trainer, epoch, true);
    const int code = sl_trainer_save(trainer, trainer->config->files.checkpoint);
    if (!code)
        return 0;
    warn_of_loss();
    return sl_error_message()[0]
               ? sl_error(code, "%s: the checkpoint of epoch %lld was not written",
                          trainer->config->files.checkpoint, (long long)epoch)
               : code;
}

/* Save the end of the run. If the checkpoint cannot be written, rank 0 looks for another place. */
static int save_last(struct sl_trainer *trainer, struct sl_report *report)
{
    int64_t epoch;
    sl_report_sync(report);
    return sl_state_write(trainer, trainer->config->files.checkpoint, true, &epoch);
}

static int64_t last_touched(const struct progress *progress)
{
    return progress->last + (progress->unfinished.steps > 0);
}

/* Whether the last epoch's numbers broke down. An epoch that was stopped on request may not have
 * been evaluated, so evaluate it now. */
static bool is_broken(struct sl_trainer *trainer, const struct progress *progress)
{
    struct sl_outcome outcome;
    if (progress->broken || !sl_config_evaluates(trainer->config) ||
        (progress->unfinished.steps == 0 && is_evaluated(trainer->config, progress->last)))
        return progress->broken;
    sl_trainer_evaluate(trainer, &outcome);
    sl_records_of(&trainer->records, last_touched(progress))->broken =
        sl_records_of(&trainer->records, 0)->broken;
    return sl_records_of(&trainer->records, 0)->broken != SL_SOUND;
}

/* ---- The epochs ---- */

/* Submit an epoch. Draw its tasks if it is the first and --dag asks for it. */
static void submit_drawn(struct sl_trainer *trainer, int64_t epoch, int *failure)
{
    const char *path = trainer->rt->rank == 0 && epoch == trainer->start.first_epoch
                           ? trainer->config->files.dag
                           : NULL;
    if (path)
        sl_dag_begin();
    submit_epoch(trainer, epoch);
    if (!path)
        return;
    sl_dag_end();
    if (!sl_dag_is_drawn(path))
        *failure = sl_dag_write(path);
    if (*failure)
        warn_of_loss();
}

/* Submit and read all epochs. Return 0, or why a file could not be written on the way. */
static int run_epochs(struct sl_trainer *trainer, struct sl_report *report,
                      struct progress *progress)
{
    int failure = 0;
    for (int64_t epoch = trainer->start.first_epoch; epoch <= progress->last; epoch++) {
        if (trainer->config->files.profile && epoch == first_profiled(trainer)) {
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

/* Return the epoch that the run ends with, unless something ends it earlier. */
static int64_t last_epoch(const struct sl_trainer *trainer)
{
    const struct sl_config *config = trainer->config;
    const int64_t epochs = sl_config_epochs(config), left = epochs - trainer->start.first_epoch + 1;
    return config->files.stop_after > 0 && config->files.stop_after < left
               ? trainer->start.first_epoch + config->files.stop_after - 1
               : epochs;
}

/* Copy the sub-models' parameters after the last epoch into the model. */
static void end_submodels(struct sl_trainer *trainer, int64_t epoch)
{
    if (sl_config_has_submodels(trainer->config) && epoch >= trainer->start.first_epoch)
        sl_submodels_end(&trainer->submodels, epoch,
                         sl_records_of(&trainer->records, epoch)->updates);
}

/* Return the loss of the kept epoch, or of the last epoch if the run broke down. NaN: steps of an
 * unfinished epoch have changed the weights. */
static double loss_shown(const struct sl_trainer *trainer, const struct progress *progress,
                         const struct sl_outcome *outcome)
{
    const bool between = progress->unfinished.steps > 0,
               best = trainer->kept.kept_epoch == trainer->kept.best_epoch &&
                      (!between || sl_config_keeps_best(trainer->config));
    if (!outcome->broken && (best || between))
        return best ? trainer->kept.best_loss : NAN;
    return progress->last >= trainer->start.first_epoch
               ? sl_loss_of(trainer, sl_records_of(&trainer->records, progress->last))
               : NAN;
}

int sl_trainer_run(struct sl_trainer *trainer, struct sl_report *report, struct sl_outcome *outcome)
{
    const struct sl_config *config = trainer->config;
    const int64_t first = trainer->start.first_epoch;
    struct progress progress = {.read = first - 1, .last = last_epoch(trainer)};
    progress.seconds = calloc((size_t)(sl_config_epochs(config) + 1), sizeof *progress.seconds);
    if (!progress.seconds)
        sl_fatal("no memory for the times of %lld epochs", (long long)sl_config_epochs(config));
    sl_runtime_wait(trainer->rt); /* set-up is not part of the first epoch */
    progress.previous = sl_overlap_now();
    trainer->started_at = trainer->records.last_trained_at =
        sl_overlap_seconds(progress.previous.clock);

    if (config->files.trace)
        open_trace(trainer);
    int failure = run_epochs(trainer, report, &progress);
    end_submodels(trainer, progress.last);
    sl_runtime_settle_stops(trainer->rt, trainer->stop_passed_on);
    json_t *profile = config->files.profile ? end_profile(trainer) : NULL;
    if (config->files.trace) {
        const int code = close_trace(trainer);
        failure = failure ? failure : code;
    }
    settle_kept(trainer, progress.last, progress.unfinished.steps == 0);
    *outcome = (struct sl_outcome){
        .epochs = progress.last,
        .best_epoch = trainer->kept.shown_best_epoch,
        .kept_epoch = trainer->kept.kept_epoch,
        .unfinished = progress.unfinished,
        .stopped = progress.stopped,
        .early = progress.early,
        .profile = profile,
        .train_accuracy = NAN,
        .val_accuracy = NAN,
        .test_accuracy = NAN,
        .metric = trainer->whole.graph.objective.metric,
        .score = sl_unmeasured,
        .largest_class = NAN,
    };
    if (is_broken(trainer, &progress)) {
        failure = sl_breakdown_refuse(trainer, last_touched(&progress), outcome);
    } else {
        const int code = config->files.checkpoint ? save_last(trainer, report) : 0;
        failure = code ? code : failure;
        if (trainer->taken) {
            const int lost = sl_state_take(trainer, trainer->taken);
            failure = lost ? lost : failure;
        }
        sl_trainer_use_best(trainer);
        sl_trainer_evaluate(trainer, outcome);
        outcome->weights = sl_state_hash(trainer);
        const int uncounted =
            sl_confusion_describe(trainer, SL_CONFUSION_CLASSES, &outcome->confusion);
        failure = uncounted ? uncounted : failure;
        outcome->members = sl_members_describe(trainer);
    }
    outcome->seconds = sl_runtime_seconds() - trainer->started_at;
    outcome->loss = loss_shown(trainer, &progress, outcome);
    outcome->epoch_seconds_median = median(progress.seconds, progress.last - first + 1);
    outcome->epoch_times = mean_times(progress.sum, progress.last - first + 1);
    free(progress.seconds);
    return failure;
}
