/* A training run: a network on a dataset, the epoch loop, and its results. */
#ifndef SL_TRAIN_TRAINER_H
#define SL_TRAIN_TRAINER_H

#include "batches/batches.h"
#include "checkpoint/checkpoint.h"
#include "core/overlap.h"
#include "core/rates.h"
#include "log/report.h"
#include "submodels/blocked_evaluation.h"
#include "submodels/ensemble.h"
#include "submodels/submodels.h"
#include "train/more_scores.h"
#include "train/records.h"

/* An epoch that ended before its last step. */
struct sl_unfinished {
    int steps, of;        /* steps that are done, steps of the epoch */
    double loss, correct; /* sums over the training vertices of the done steps */
};

/* The traffic of this rank in epochs of one kind. With --delay cd-R, R epochs in a row are a cycle:
 * each of them exchanges other rows. Otherwise an epoch is a cycle. */
struct sl_epoch_traffic {
    int64_t epochs, sum_epochs; /* epochs of the current cycle; epochs in the sums: the last whole
                                   cycle, or all epochs before one is whole */
    bool warming_up; /* the sums have epochs that do not receive clones yet, since no earlier epoch
                        has sent them */
    struct sl_traffic under_way[2]; /* current cycle: among all ranks, inside this rank's group */
    struct sl_traffic sum[2];       /* sums: among all ranks, inside this rank's group */
};

/* The state that a run begins with. */
struct sl_start {
    int64_t first_epoch; /* first epoch of this run: 1, or the one after the checkpoint's */
    struct sl_unfinished unfinished; /* steps of first_epoch that the checkpoint has */
    int64_t first_updates;           /* steps of the optimizer before first_epoch */
    int64_t trained_vertices;        /* vertices of the checkpoint's graph; 0: no checkpoint */
};

/* The best epoch, and the epoch whose weights are kept. */
struct sl_kept_epoch {
    int64_t best_epoch;       /* best epoch on validation among read epochs; 0: none */
    double best_value;        /* the best metric, or its negative if it falls */
    int64_t best_updates;     /* steps up to best_epoch, if this run trained it */
    double best_loss;         /* training loss of best_epoch; NaN: unknown */
    int64_t shown_best_epoch; /* for reports: best_epoch, or the last epoch if the run ends with a
                                 better one */
    int64_t kept_epoch;       /* the epoch whose weights are kept: best or last */
};

struct sl_trainer {
    struct sl_runtime *rt;
    const struct sl_config *config;
    const struct sl_source *source; /* only its sizes, name and path are there */
    json_t *dataset;                /* see sl_meaning_describe; NULL while the run is planned */
    struct sl_model model;
    struct sl_store store;         /* parameters and optimizer state */
    struct sl_pass whole;          /* the whole graph, for evaluations */
    struct sl_batches batches;     /* graphs of training steps */
    struct sl_submodels submodels; /* train instead of the model, or none */
    struct sl_blocked blocked;     /* evaluates the model, if it is too wide; else nothing */
    struct sl_ensemble ensemble;   /* evaluates sub-models that never meet; else nothing */
    struct sl_rates core;          /* rates of a core of rank 0 */
    bool stop_passed_on;           /* rank 0 knows that this rank was asked to stop */

    struct sl_start start;
    struct sl_kept_epoch kept;
    int64_t epoch;           /* the last submitted epoch */
    int64_t updates;         /* submitted steps of the optimizer, since epoch 1 */
    int64_t saved_epoch;     /* the last epoch that this run saved; 0: none */
    double step_seconds;     /* seconds of a step in the last read epoch; 0: none was read */
    int64_t tasks_per_epoch; /* this rank's tasks of the last epoch, without evaluation */
    struct sl_epoch_traffic traffic;       /* training epochs, without evaluations */
    struct sl_epoch_traffic exact_traffic; /* epochs that --exact-epochs makes exact */
    struct sl_records records;
    double started_at;
    struct sl_checkpoint *taken; /* receives the state after the last epoch; NULL: not wanted */
};

/* The outcome of a run; accuracies are NaN for splits without labelled vertices. */
struct sl_outcome {
    int64_t epochs, best_epoch; /* last trained epoch; best on validation, 0: never evaluated */
    int64_t kept_epoch;         /* the epoch of the weights, accuracies and loss */
    struct sl_unfinished unfinished; /* the epoch after the last one, or none */
    double loss;                     /* NaN: the weights are an unfinished epoch's */
    double train_accuracy, val_accuracy, test_accuracy;
    const struct sl_metric *metric;
    struct sl_scores score;     /* the metric's scores */
    struct sl_more_scores more; /* for several labels and numbers */
    double largest_class;       /* share of the training vertices */
    uint64_t weights;           /* a hash of the kept weights; 0: the run broke down */
    double epoch_seconds_median, seconds;
    struct sl_overlap_times epoch_times; /* this rank's mean over the epochs */
    bool stopped, early;                 /* stopped on request; stopped by --patience */
    enum sl_breakdown broken; /* breakdown of the last epoch; nothing was evaluated then */
    int broken_layer;
    json_t *confusion; /* see sl_confusion_describe; NULL: none */
    json_t *members;   /* an ensemble's members at their best, for the log; NULL: none */
    json_t *profile;   /* see sl_profile_end, plus "epochs" that it covers; NULL: none */
};

/* Free the JSON of an outcome. */
void sl_outcome_free(struct sl_outcome *outcome);

/* Whether the training accuracy is hardly above the share of the largest class. */
bool sl_outcome_underfits(const struct sl_outcome *outcome);

/* Return the accuracy of each split; NaN for a split without labels. */
struct sl_scores sl_outcome_accuracies(const struct sl_outcome *outcome);

/* Return 0 if a dataset can be trained on, or SL_ERR_DATA or SL_ERR_USAGE with the reason.
 * sl_trainer_check judges the files of a source, sl_trainer_check_labels the labels of a trainer.
 */
int sl_trainer_check(const struct sl_source *source);
int sl_trainer_check_labels(const struct sl_trainer *trainer);

/* Read this rank's part of `source` and make the network. With `checkpoint` (or NULL), load
 * parameters, optimizer state and epoch from it. All arguments are borrowed; arrays of the source
 * are read now and never again (sl_source_release). Return 0, SL_ERR_DATA (the dataset is wrong, or
 * the checkpoint has other shapes) or another code. */
int sl_trainer_create(struct sl_trainer *trainer, struct sl_runtime *rt,
                      const struct sl_source *source, const struct sl_config *config,
                      const struct sl_checkpoint *checkpoint);
void sl_trainer_destroy(struct sl_trainer *trainer);

/* Make a trainer for sl_trainer_evaluate alone, with a checkpoint's model: no batches, no
 * gradients, no state of an optimizer. Errors as of sl_trainer_create. */
int sl_trainer_open(struct sl_trainer *trainer, struct sl_runtime *rt,
                    const struct sl_source *source, const struct sl_config *config,
                    const struct sl_checkpoint *checkpoint);

/* Train up to config->training.epochs, log to `report`, and write config->checkpoint. With --keep
 * best, make the best parameters the current ones; then evaluate. Return 0, or the error of a
 * checkpoint that could not be written; training still goes on to the end. If the last checkpoint
 * fails, the sentence says where the model is instead. A number that is not finite ends the run
 * with an error that says where it was. The best weights of such a run are written, if it has any.
 */
int sl_trainer_run(struct sl_trainer *trainer, struct sl_report *report,
                   struct sl_outcome *outcome);

/* Make the parameters of trainer->kept.kept_epoch the current ones. */
void sl_trainer_use_best(struct sl_trainer *trainer);

/* Evaluate the current parameters, and write the metrics to `outcome`. */
void sl_trainer_evaluate(struct sl_trainer *trainer, struct sl_outcome *outcome);

/* Write the state after the last epoch to `path`, on rank 0. Collective. Return as sl_state_write.
 */
int sl_trainer_save(struct sl_trainer *trainer, const char *path);

#endif
