#include "train/records.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/split.h"
#include "graphs/network.h"

/* Records of read epochs give their places to later epochs, so a run's number of epochs takes no
 * memory. */
enum { RECORDS = 1024 };
_Static_assert(RECORDS > 2 * SL_EPOCHS_IN_FLIGHT, "a record is wanted until its epoch is read");

int sl_records_create(struct sl_records *records, struct sl_runtime *rt)
{
    *records = (struct sl_records){.rt = rt};
    pthread_mutex_init(&records->lock, NULL);
    pthread_cond_init(&records->recorded, NULL);
    records->record = calloc(RECORDS + 1, sizeof *records->record);
    return records->record
               ? 0
               : sl_error(SL_ERR_SYSTEM, "no memory for the records of %d epochs", RECORDS);
}

void sl_records_destroy(struct sl_records *records)
{
    free(records->record);
    pthread_mutex_destroy(&records->lock);
    pthread_cond_destroy(&records->recorded);
    *records = (struct sl_records){0};
}

bool sl_records_stop_asked(const struct sl_records *records)
{
    return records->stop_requested && *records->stop_requested;
}

struct sl_record *sl_records_of(const struct sl_records *records, int64_t epoch)
{
    return &records->record[epoch > 0 ? 1 + (epoch - 1) % RECORDS : 0];
}

/* Note a breakdown. The loss is not finite if and only if a logit is not. */
static void find_breakdown(struct sl_record *record, const double *values, bool training)
{
    bool finite = true;
    for (int s = 0; s < SL_SPLITS; s++)
        finite = finite && isfinite(values[SL_METRIC_LOSS + s]);
    if (record->broken)
        return;
    if (!finite)
        record->broken = training ? SL_BROKEN_OUTPUT : SL_BROKEN_EVALUATION;
    else if (values[SL_METRIC_BAD_GRADIENT] > 0.0)
        record->broken = SL_BROKEN_GRADIENT;
    else if (values[SL_METRIC_BAD_UPDATE] > 0.0)
        record->broken = SL_BROKEN_UPDATE;
    if (record->broken == SL_BROKEN_GRADIENT || record->broken == SL_BROKEN_UPDATE)
        record->broken_layer =
            (int)values[record->broken == SL_BROKEN_GRADIENT ? SL_METRIC_BAD_GRADIENT
                                                             : SL_METRIC_BAD_UPDATE];
}

struct sl_record *sl_records_open(struct sl_records *records, int64_t epoch, int steps,
                                  int64_t updates)
{
    struct sl_record *record = sl_records_of(records, epoch);
    *record = (struct sl_record){.steps = steps, .updates = updates};
    return record;
}

void sl_records_skip(struct sl_records *records, int64_t epoch, int steps)
{
    struct sl_record *record = sl_records_of(records, epoch);
    pthread_mutex_lock(&records->lock);
    record->steps -= steps;
    record->trained = record->steps == 0;
    if (record->trained && record->reports == 0)
        record->trained_at = sl_overlap_now();
    pthread_cond_signal(&records->recorded);
    pthread_mutex_unlock(&records->lock);
}

bool sl_records_end(struct sl_records *records, int64_t epoch, int reports)
{
    const struct sl_record *record = sl_records_of(records, epoch);
    pthread_mutex_lock(&records->lock);
    while (record->reports < reports)
        pthread_cond_wait(&records->recorded, &records->lock);
    const bool ends = record->end > 0.0 && record->end_report <= reports;
    pthread_mutex_unlock(&records->lock);
    sl_guard_check();
    return ends;
}

bool sl_record_is_unfinished(const struct sl_record *record, int64_t epoch)
{
    return record->end > 0.0 && record->end < (double)epoch;
}

/* Add the metrics of a step that ends no later than the run. */
static void count_step(struct sl_record *record, double now, const double *values)
{
    record->updates++;
    record->train_loss += values[SL_METRIC_LOSS + SL_SPLIT_TRAIN];
    record->train_correct += values[SL_METRIC_CORRECT + SL_SPLIT_TRAIN];
    record->stop = record->stop || values[SL_METRIC_STOP] > 0.0;
    find_breakdown(record, values, true);
    if (record->end == 0.0 && (record->stop || record->broken)) {
        record->end = now;
        record->end_report = record->reports;
    }
}

bool sl_records_train(void *context, double now, double *values)
{
    struct sl_records *records = context;
    struct sl_record *record = sl_records_of(records, (int64_t)ceil(now));
    const struct sl_overlap_times times = sl_overlap_now();
    const double seconds = sl_overlap_seconds(times.clock);
    if (records->rt->rank == 0) { /* rank 0's values reach other ranks with the metrics */
        values[SL_METRIC_STOP] =
            sl_records_stop_asked(records) || sl_runtime_stop_asked(records->rt);
        values[SL_METRIC_SECONDS] = seconds - records->last_trained_at;
        records->last_trained_at = seconds;
    }
    pthread_mutex_lock(&records->lock);
    record->reports++;
    if (record->end == 0.0 || now <= record->end)
        count_step(record, now, values);
    record->seconds += values[SL_METRIC_SECONDS];
    record->trained_at = times;
    record->trained = --record->steps == 0;
    const bool ends = record->end > 0.0;
    pthread_cond_signal(&records->recorded);
    pthread_mutex_unlock(&records->lock);
    return ends;
}

bool sl_records_evaluate(void *context, double now, double *values)
{
    struct sl_records *records = context;
    struct sl_record *record = sl_records_of(records, (int64_t)ceil(now));
    pthread_mutex_lock(&records->lock);
    memcpy(record->values, values, sizeof record->values);
    record->evaluated_at = sl_overlap_now();
    record->evaluated = true;
    find_breakdown(record, values, false);
    const bool ends = record->broken;
    pthread_cond_signal(&records->recorded);
    pthread_mutex_unlock(&records->lock);
    return ends;
}

const struct sl_record *sl_records_wait(struct sl_records *records, int64_t epoch, bool trained,
                                        bool evaluated)
{
    const struct sl_record *record = sl_records_of(records, epoch);
    pthread_mutex_lock(&records->lock);
    while ((trained && !record->trained) || (evaluated && !record->evaluated))
        pthread_cond_wait(&records->recorded, &records->lock);
    pthread_mutex_unlock(&records->lock);
    sl_guard_check();
    return record;
}
