/* Output of a run: JSON lines or a table in a log, a progress bar, a closing table. Rank 0 only. */
#ifndef SL_LOG_REPORT_H
#define SL_LOG_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "core/overlap.h"
#include "core/split.h"

struct sl_metric;
struct sl_epoch_report;

/* A callback that receives each epoch, on rank 0. */
typedef void sl_report_listener(void *context, const struct sl_epoch_report *epoch);

/* A measure of each split (core/split.h); NaN where it was not measured. */
struct sl_scores {
    double of[SL_SPLITS];
};

struct sl_report {
    FILE *log;            /* NULL: none */
    const char *log_path; /* borrowed */
    bool table;           /* the log has a row for each epoch (log/epoch_table.h), no events */
    bool failed;          /* a line could not be written */
    long json_failures;   /* of sl_json_failures when the report was opened */
    bool bar;             /* stderr is a terminal and the run is not quiet */
    bool lines; /* not quiet, and stdout is not the bar's terminal: a line per evaluation */
    struct sl_scores score, shown_score; /* of the last evaluation; NaN: none */
    double last_drawn;
    double first_at; /* when the run's first epoch was told, and its number; 0: none yet */
    int64_t first_epoch;
    sl_report_listener *listener; /* set after sl_report_open; NULL: none */
    void *context;
};

/* The report of one epoch; accuracies are NaN if they were not measured. */
struct sl_epoch_report {
    int64_t epoch, epochs;
    double loss, train_accuracy, val_accuracy, test_accuracy;
    const struct sl_metric *metric;
    const struct sl_metric *shown; /* the metric shown beside; NULL: none */
    struct sl_scores score, shown_score;
    double seconds, eval_seconds;
    struct sl_overlap_times times; /* times of rank 0, without the evaluation */
};

/* Return "SPLIT_NAME" in `key`, with _ for each - of the name. */
const char *sl_report_key(char key[64], const char *split, const char *name);

/* Open the log (NULL: none). Truncate it unless `append`. FILE.csv is a table. Return 0,
 * SL_ERR_SYSTEM if the log cannot be written, or SL_ERR_DATA if a .csv file is no table. */
int sl_report_open(struct sl_report *report, const char *log_path, bool append, bool quiet);

/* Continue the log after the first `epochs` epochs, which a checkpoint has: cut later rows off a
 * table. The sentence of SL_ERR_SYSTEM names the log. */
int sl_report_go_on(struct sl_report *report, int64_t epochs);

/* Write {"event": name, …members of object} as one line. `object` may be NULL and is released. Tell
 * of the first lost line at once, on stderr. */
void sl_report_event(struct sl_report *report, const char *name, json_t *object);

/* Return the members of an "epoch" line that a repeated run has alike: the number, the loss and the
 * scores. */
json_t *sl_report_epoch_members(const struct sl_epoch_report *epoch);

/* Write an "epoch" line, move the progress bar, and print a line on stdout if lines are wanted. */
void sl_report_epoch(struct sl_report *report, const struct sl_epoch_report *epoch);

/* Sync the log, so that its lines so far survive a crash. */
void sl_report_sync(struct sl_report *report);

/* Remove the progress bar. */
void sl_report_finish_bar(struct sl_report *report);

/* Close the log. Return 0, or SL_ERR_SYSTEM if any line was lost. */
int sl_report_close(struct sl_report *report);

#endif
