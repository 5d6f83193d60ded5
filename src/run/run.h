/* One run of training, of the program or the library: from options to a model, and its events in
 * the log. */
#ifndef SL_RUN_RUN_H
#define SL_RUN_RUN_H

#include "checkpoint/checkpoint.h"
#include "core/file.h"
#include "log/report.h"
#include "predict/plan.h"
#include "predict/tile_counts.h"
#include "recipe/defaults.h"
#include "run/run_choice.h"
#include "train/trainer.h"

/* The log has the names of so many classes at most. */
enum { SL_NAMED_CLASSES = 1000 };

/* Sums over the batches in memory of one group. All members are int64_t. */
struct sl_train_group {
    int64_t ranks, batches;
    int64_t inner, outer;       /* vertices */
    int64_t entries, redundant; /* entries of the adjacency; entries in rows of outer vertices */
};

/* The groups of a run that trains on other graphs than the whole one. */
struct sl_train_groups {
    int count;                    /* 0: the run trains on the whole graph */
    struct sl_train_group *group; // (count)
    int64_t sum[2][4];            /* training epochs, and exact ones: bytes and messages between
                                     groups, then inside, on all ranks */
};

/* A run: its options, its dataset, its choices and its trainer. */
struct sl_train_run {
    struct sl_config config;
    const char *path;              /* the dataset's, also for errors */
    const struct sl_source *graph; /* the dataset; NULL: it is to be opened */
    struct sl_runtime rt;
    struct sl_source source;
    struct sl_checkpoint resumed;
    struct sl_trainer trainer;
    struct sl_report report;
    struct sl_file_lock locks[2]; /* the log's and the checkpoint's, on rank 0 */
    struct sl_outcome outcome;
    double opened_at, load_seconds; /* from the dataset to the tiles */
    struct sl_stage_balance stages; /* 1D on several ranks; other runs: 0 */
    double replication;             /* clones of a vertex on average, of a vertex-cut; else 0 */
    struct sl_plan plan;
    bool fits;              /* needed rows were planned, and fit into memory */
    char chosen[SL_CHOSEN]; /* options that follow from the dataset */
    struct sl_train_choice choice;
    struct sl_train_groups groups;
    json_t *class_names; /* a list of at most SL_NAMED_CLASSES; NULL: classes have numbers */
    json_t *hashes;      /* hashes of the dataset, on rank 0 with a log or --verify; else NULL */
    json_t *start;       /* the event, on rank 0 with a log or --verbose; else NULL */
    json_t *end;         /* the event, on rank 0; NULL: the run has not ended */
};

/* The steps of a run, in this order. All ranks call them, and all get the same code.
 *
 * Start StarPU and MPI as run->config says (`given`: as of sl_options_parse); `silent`: without a
 * note of too few workers. SL_ERR_USAGE, SL_ERR_SYSTEM. */
int sl_train_start(struct sl_train_run *run, const bool *given, bool silent);

/* Open the dataset, check the options (`given`: as above), and settle what is left open.
 * SL_ERR_USAGE, SL_ERR_DATA, SL_ERR_SYSTEM. */
int sl_train_open(struct sl_train_run *run, const bool *given);

/* Make the trainer. Afterwards the dataset is in tiles, and nowhere else, unless batches read it.
 * Errors as of sl_trainer_create. */
int sl_train_load(struct sl_train_run *run);

/* Set run->plan, stages, replication and groups. */
void sl_train_measure(struct sl_train_run *run);

/* Destroy the trainer and stop what sl_train_start has started. Then, in any case, free the rest;
 * return SL_ERR_SYSTEM if lines of the log are missing. */
void sl_train_stop(struct sl_train_run *run);
int sl_train_free(struct sl_train_run *run);

/* Log what the run is, before the first epoch, and what came of it, after the last one. All ranks
 * call them. */
void sl_train_report_start(struct sl_train_run *run);
void sl_train_report_end(struct sl_train_run *run);

/* Return a list of the ranks' values, or of their times (core/overlap.h) in seconds. Collective. */
json_t *sl_train_gather(struct sl_runtime *rt, int64_t value);
json_t *sl_train_gather_seconds(struct sl_runtime *rt, int64_t time);

/* Find, sum, print and log groups and batches (run_groups.c). Finding, summing and logging traffic
 * are collective. All do nothing in a run without groups and batches. */
void sl_train_find_groups(struct sl_train_run *run);
void sl_train_sum_traffic(struct sl_train_run *run);
void sl_train_log_groups(const struct sl_train_run *run, json_t *event);
void sl_train_log_traffic(struct sl_train_run *run, json_t *event);
void sl_train_print_groups(const struct sl_train_run *run);
void sl_train_print_traffic(const struct sl_train_run *run);

#endif
