/* One run of starling train, and its events in the log. */
#ifndef SL_CLI_TRAIN_H
#define SL_CLI_TRAIN_H

#include "cli/train_choice.h"
#include "predict/plan.h"
#include "predict/tile_counts.h"
#include "train/checkpoint.h"
#include "train/defaults.h"
#include "train/report.h"
#include "train/trainer.h"

/* What all steps of one run share. */
struct sl_train_run {
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
    double replication;             /* clones of a vertex on average, of a vertex-cut; else 0 */
    struct sl_plan plan;
    char chosen[SL_CHOSEN]; /* options that follow from the dataset */
    struct sl_train_choice choice;
};

/* Log what the run is, before the first epoch, and what came of it, after the last one. All ranks
 * call them. */
void sl_train_report_start(struct sl_train_run *run);
void sl_train_report_end(struct sl_train_run *run);

#endif
