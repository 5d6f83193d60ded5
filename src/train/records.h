/* What the tasks of epochs report, and the loop over epochs reads. */
#ifndef SL_TRAIN_RECORDS_H
#define SL_TRAIN_RECORDS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "codelets/metrics.h"
#include "core/overlap.h"
#include "core/runtime.h"
#include "train/breakdown.h"

/* Of one epoch. */
struct sl_record {
    double train_loss, train_correct; /* sums over the training vertices */
    double values[SL_METRICS];        /* of the evaluation, when evaluated */
    struct sl_overlap_times trained_at, evaluated_at;
    double seconds;  /* since the epoch before, as rank 0 measured it */
    int steps;       /* of the epoch that have not reported yet */
    int reports;     /* of steps that have */
    int64_t updates; /* steps of the optimizer from epoch 1 to here */
    double end;      /* the run ends in this epoch, after this step (codelets/optimizer.h); or 0 */
    int end_report;  /* the number of this step's report, from 1 */
    bool trained, evaluated, stop;
    enum sl_breakdown broken;
    int broken_layer; /* from 1; 0: not known yet */
};

struct sl_records {
    struct sl_runtime *rt;
    const volatile sig_atomic_t *stop_requested; /* NULL: nobody can ask */
    struct sl_record *record;                    // [0]: the final evaluation; [e]: epoch e
    pthread_mutex_t lock;
    pthread_cond_t recorded;
    double last_trained_at;
};

/* SL_ERR_SYSTEM without memory. */
int sl_records_create(struct sl_records *records, struct sl_runtime *rt);
void sl_records_destroy(struct sl_records *records);

/* Whether this process was asked to stop. */
bool sl_records_stop_asked(const struct sl_records *records);

/* The record of an epoch; 0: of the final evaluation. An epoch that was read gives its place to a
 * later one. */
struct sl_record *sl_records_of(const struct sl_records *records, int64_t epoch);

/* Make room for the record of an epoch of so many training steps, before they are submitted. There
 * were `updates` steps of the optimizer before. Return it. */
struct sl_record *sl_records_open(struct sl_records *records, int64_t epoch, int steps,
                                  int64_t updates);

/* So many of these steps are left out. */
void sl_records_skip(struct sl_records *records, int64_t epoch, int steps);

/* Wait for so many reports of an epoch's steps. Return whether the run ends with one of these: the
 * same on all ranks. */
bool sl_records_end(struct sl_records *records, int64_t epoch, int reports);

/* Whether the run ends within the epoch, so that later steps of the epoch change nothing. */
bool sl_record_is_unfinished(const struct sl_record *record, int64_t epoch);

/* For sl_network_record, with the records as context: take the metrics of a training step, of an
 * evaluation. They return whether the run ends with this step. */
bool sl_records_train(void *records, double now, double *values);
bool sl_records_evaluate(void *records, double now, double *values);

/* The record of an epoch, once it is trained and evaluated, as far as asked. */
const struct sl_record *sl_records_wait(struct sl_records *records, int64_t epoch, bool trained,
                                        bool evaluated);

#endif
