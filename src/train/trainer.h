/* A training run: a network on a dataset, the epoch loop, what is kept of it. */
#ifndef SL_TRAIN_TRAINER_H
#define SL_TRAIN_TRAINER_H

#include "batches/batches.h"
#include "checkpoint/checkpoint.h"
#include "core/overlap.h"
#include "core/rates.h"
#include "log/report.h"
#include "submodels/ensemble.h"
#include "submodels/submodels.h"
#include "submodels/wide.h"
#include "train/more_scores.h"
#include "train/records.h"

/* An epoch that ended before its last step. */
struct sl_unfinished {
    int steps, of;        /* steps that are done, of so many */
    double loss, correct; /* sums over their training vertices */
};

/* The traffic of this rank in epochs of one kind. With --delay cd-R, R epochs in a row are a cycle:
 * each of them exchanges other rows. Otherwise an epoch is a cycle. */
struct sl_epoch_traffic {
    int64_t epochs, sum_epochs; /* of the cycle under way; in the sums: of the last whole cycle,
                                   or of all epochs before one is whole */
    bool warming_up; /* the sums have epochs in which clones that no epoch before has sent are not
                        received */
    struct sl_traffic under_way[2]; /* among all ranks, and inside this rank's group */
    struct sl_traffic sum[2];       /* likewise */
};

struct sl_trainer {
    struct sl_runtime *rt;
    const struct sl_config *config;
    const struct sl_source *source; /* of which only the sizes, name and path are there */
    json_t *dataset;                /* as of sl_meaning_describe; NULL while it is planned */
    struct sl_model model;
    struct sl_store store;         /* of the model's parameters and state */
    struct sl_pass whole;          /* the whole graph, which evaluations take */
    struct sl_batches batches;     /* what training steps take */
    struct sl_submodels submodels; /* that train instead of the model, or none */
    struct sl_wide wide;           /* evaluates the model, if it is too wide; else nothing */
    struct sl_ensemble ensemble;   /* evaluates sub-models that never meet; else nothing */
    struct sl_rates core;          /* of rank 0's machine */
    bool stop_passed_on;           /* rank 0 was told that this rank was asked */

    int64_t first_epoch;             /* of this run: 1, or the one after the checkpoint's */
    struct sl_unfinished unfinished; /* the part of first_epoch that the checkpoint has */
    int64_t epoch;                   /* submitted last */
    int64_t updates;                 /* steps of the optimizer that were submitted, since epoch 1 */
    int64_t first_updates;           /* before first_epoch */
    int64_t best_epoch;   /* on validation, of the epochs whose records were read; 0: none */
    double best_value;    /* of the metric, or its negative if it falls */
    int64_t best_updates; /* steps up to that epoch, if it is of this run */
    double best_loss;     /* of training in that epoch, NaN: not known */
    int64_t
        shown_best_epoch; /* best_epoch, or the last one, if it is better and the run ends here */
    int64_t kept_epoch;   /* whose weights are for use: the best or the last one */
    int64_t saved_epoch;  /* the last checkpoint of this run; 0: none */
    double step_seconds;  /* of the last epoch whose record was read; 0: of none */
    int64_t tasks_per_epoch;         /* of the last epoch, on this rank, without its evaluation */
    struct sl_epoch_traffic traffic; /* of training epochs, without evaluations */
    struct sl_epoch_traffic exact_traffic; /* of the epochs that --exact-epochs makes exact */
    struct sl_records records;
    double started_at;
    struct sl_checkpoint *taken; /* receives the state after the last epoch; NULL: none is wanted */
    int64_t trained_vertices; /* of the graph that the checkpoint was made on; 0: no checkpoint */
};

/* The outcome of a run; accuracies are NaN for splits without labelled vertices. */
struct sl_outcome {
    int64_t epochs, best_epoch;      /* last one trained; best on validation (0: never evaluated) */
    int64_t kept_epoch;              /* whose weights, accuracies and loss these are */
    struct sl_unfinished unfinished; /* the epoch after the last one, or none */
    double loss; /* NaN: the weights are the last ones, and of an unfinished epoch */
    double train_accuracy, val_accuracy, test_accuracy;
    const struct sl_metric *metric;
    struct sl_scores score;     /* of the metric */
    struct sl_more_scores more; /* of several labels, and of numbers */
    double largest_class;       /* share of the training vertices */
    double epoch_seconds_median, seconds;
    struct sl_overlap_times epoch_times; /* of this rank, mean over the epochs */
    bool stopped, early;                 /* by request; because of --patience */
    enum sl_breakdown broken;            /* the last epoch was; nothing was evaluated then */
    int broken_layer;
    json_t *confusion; /* as of sl_confusion_describe; NULL: none */
    json_t *members;   /* of an ensemble, at their best: for the log; NULL: none */
    json_t *profile;   /* as of sl_profile_end, and "epochs" that it covers; NULL: none */
};

/* Free what a run has said in JSON. */
void sl_outcome_free(struct sl_outcome *outcome);

/* Whether the network knows little more of the training vertices than their largest class. */
bool sl_outcome_underfits(const struct sl_outcome *outcome);

/* The accuracy of each split. */
struct sl_scores sl_outcome_accuracies(const struct sl_outcome *outcome);

/* Whether a dataset can be trained on: SL_ERR_DATA or SL_ERR_USAGE with the reason if not. First
 * what its files tell, then, of a trainer that was made, what the labels do. */
int sl_trainer_check(const struct sl_source *source);
int sl_trainer_check_labels(const struct sl_trainer *trainer);

/* Reads this rank's part of `source` and makes the network; with `checkpoint` (or NULL) takes
 * parameters, optimizer state and epoch from it. SL_ERR_DATA: a dataset that is wrong, a checkpoint
 * of other shapes. All arguments are borrowed; the source's arrays are read now and never again
 * (sl_source_release). */
int sl_trainer_create(struct sl_trainer *trainer, struct sl_runtime *rt,
                      const struct sl_source *source, const struct sl_config *config,
                      const struct sl_checkpoint *checkpoint);
void sl_trainer_destroy(struct sl_trainer *trainer);

/* Train up to config->epochs, logging to `report`, and write config->checkpoint. With --keep best,
 * make the best parameters the current ones; then evaluate. Return 0, or the error of a checkpoint
 * that could not be written; training still goes on to the end. Where the last checkpoint fails,
 * the sentence says where the model is instead. A number that is not finite ends the run with an
 * error that says where it was. The best weights of such a run are written, if it has any. */
int sl_trainer_run(struct sl_trainer *trainer, struct sl_report *report,
                   struct sl_outcome *outcome);

/* Makes the parameters of trainer->kept_epoch the current ones. */
void sl_trainer_use_best(struct sl_trainer *trainer);

/* Evaluates the current parameters. */
void sl_trainer_evaluate(struct sl_trainer *trainer, struct sl_outcome *outcome);

/* Writes the state after the last epoch to `path`, on rank 0; all ranks call it. */
int sl_trainer_save(struct sl_trainer *trainer, const char *path);

#endif
