/* Records of epochs, which tasks write and the epoch loop reads. */
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

/* The record of one epoch. */
struct sl_record {
    double train_loss, train_correct; /* sums over the training vertices */
    double values[SL_METRICS];        /* metrics of the evaluation, if evaluated */
    struct sl_overlap_times trained_at, evaluated_at;
    double seconds;  /* seconds since the epoch before, on rank 0's clock */
    int steps;       /* steps that have not reported yet */
    int reports;     /* steps that have reported */
    int64_t updates; /* steps of the optimizer from epoch 1 to here */
    double end; /* epochs to the run's end, with a fraction (codelets/optimizer.h); 0: no end yet */
    int end_report; /* the number of the report of step `end`, from 1 */
    bool trained, evaluated, stop;
    enum sl_breakdown broken;
    int broken_layer; /* from 1; 0: unknown */
};

struct sl_records {
    struct sl_runtime *rt;
    const volatile sig_atomic_t *stop_requested; /* NULL: nobody can ask */
    struct sl_record *record; // [0]: the final evaluation; [1 + (e - 1) % places]: epoch e
    pthread_mutex_t lock;
    pthread_cond_t recorded;
    double last_trained_at;
};

/* Make the records of a run. Return 0, or SL_ERR_SYSTEM without memory. */
int sl_records_create(struct sl_records *records, struct sl_runtime *rt);
void sl_records_destroy(struct sl_records *records);

/* Whether this process was asked to stop. */
bool sl_records_stop_asked(const struct sl_records *records);

/* Return the record of an epoch; 0: of the final evaluation. A later epoch reuses the record once
 * it was read. */
struct sl_record *sl_records_of(const struct sl_records *records, int64_t epoch);

/* Clear and return the record of an epoch of `steps` training steps, before they are submitted.
 * `updates`: earlier steps of the optimizer. */
struct sl_record *sl_records_open(struct sl_records *records, int64_t epoch, int steps,
                                  int64_t updates);

/* Reduce the reports that an epoch waits for by `steps` steps that are left out. */
void sl_records_skip(struct sl_records *records, int64_t epoch, int steps);

/* Wait for `reports` reports of an epoch's steps. Return whether the run ends with one of them, the
 * same on all ranks. */
bool sl_records_end(struct sl_records *records, int64_t epoch, int reports);

/* Whether the run ends within the epoch, before its last step. */
bool sl_record_is_unfinished(const struct sl_record *record, int64_t epoch);

/* Note the metrics of a training step or an evaluation: callbacks of sl_network_record, whose
 * context is the records. Return whether the run ends with this step. */
bool sl_records_train(void *records, double now, double *values);
bool sl_records_evaluate(void *records, double now, double *values);

/* Wait until an epoch is trained (if `trained`) and evaluated (if `evaluated`). Return its record.
 */
const struct sl_record *sl_records_wait(struct sl_records *records, int64_t epoch, bool trained,
                                        bool evaluated);

#endif
