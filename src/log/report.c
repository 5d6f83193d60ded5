#include "log/report.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"
#include "core/log.h"
#include "core/progress.h"
#include "core/runtime.h"
#include "graphs/metric.h"
#include "log/epoch_table.h"

static const double REDRAW_SECONDS = 0.1;

int sl_report_open(struct sl_report *report, const char *log_path, bool append, bool quiet)
{
    struct stat status;
    const bool bar = sl_progress_can_draw();
    /* Launchers of MPI may give a rank a terminal as stdout, and a pipe as stderr. */
    *report = (struct sl_report){.log_path = log_path,
                                 .json_failures = sl_json_failures(),
                                 .bar = !quiet && bar,
                                 .lines = !quiet && !(bar && isatty(STDOUT_FILENO)),
                                 .score = {{NAN, NAN, NAN, NAN}},
                                 .shown_score = {{NAN, NAN, NAN, NAN}}};
    if (!log_path)
        return 0;
    /* A pipe or a terminal passes the log on to its reader. A disk device or a socket would not. */
    if (stat(log_path, &status) == 0 && (S_ISBLK(status.st_mode) || S_ISSOCK(status.st_mode)))
        return sl_error(SL_ERR_USAGE, "--log %s: is no regular file (expected one, or a new name)",
                        log_path);
    const bool goes_on =
        append && stat(log_path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    report->table = sl_epoch_table_is(log_path);
    if (report->table && goes_on && sl_epoch_table_check(log_path))
        return SL_ERR_DATA;
    report->log = sl_file_append(log_path, append);
    if (!report->log && errno == ENXIO)
        return sl_error(SL_ERR_SYSTEM, "--log %s: nobody reads this pipe (expected a reader)",
                        log_path);
    if (!report->log)
        return sl_error(SL_ERR_SYSTEM, "--log %s: %s (expected a file that can be written)",
                        log_path, strerror(errno));
    if (report->table && !goes_on)
        sl_epoch_table_begin(report->log);
    return 0;
}

int sl_report_go_on(struct sl_report *report, int64_t epochs)
{
    struct stat status;
    const bool table = report->table && report->log && fstat(fileno(report->log), &status) == 0 &&
                       S_ISREG(status.st_mode) && fflush(report->log) == 0;
    if (!table || sl_epoch_table_cut(report->log, report->log_path, epochs) == 0)
        return 0;
    return sl_error(SL_ERR_SYSTEM, "--log %s: %s", report->log_path, strerror(errno));
}

/* Tell of a lost log line at once: a reader of the log may be waiting for it. */
static void tell_failure(struct sl_report *report)
{
    const int reason = errno;
    if (report->failed)
        return;
    report->failed = true;
    sl_report_finish_bar(report);
    sl_warn("--log %s: %s; training goes on", report->log_path, strerror(reason));
}

void sl_report_event(struct sl_report *report, const char *name, json_t *object)
{
    json_t *line = json_pack("{s:s}", "event", name);
    json_object_update(line, object);
    json_decref(object);
    /* Flush each line: whatever ends the run, the log has whole lines up to the last epoch. */
    if (report->log && !report->table &&
        (!sl_json_put(line, JSON_COMPACT, report->log) || fflush(report->log)))
        tell_failure(report);
    errno = ENOMEM;
    if (report->log && !report->table && sl_json_failures() != report->json_failures)
        tell_failure(report); /* a line may lack members */
    json_decref(line);
}

static void set_number(json_t *object, const char *key, double value)
{
    if (isfinite(value))
        json_object_set_new(object, key, json_real(value));
    else if (!isnan(value))
        json_object_set_new(object, key, json_null());
}

const char *sl_report_key(char key[64], const char *split, const char *name)
{
    snprintf(key, 64, "%s_%s", split, name);
    for (char *c = key; *c; c++)
        *c = *c == '-' ? '_' : *c;
    return key;
}

/* Print an epoch for the bar and for the lines. Each training step counts correct classes. Other
 * metrics come from evaluations alone. */
static void print_epoch(FILE *file, const struct sl_report *report, const struct sl_epoch_report *e)
{
    const bool accuracy = e->metric == &sl_metric_accuracy;
    const double training = accuracy ? e->train_accuracy : report->score.of[SL_SPLIT_TRAIN];
    const char *name = accuracy ? "" : e->metric->name, *space = accuracy ? "" : " ";
    fprintf(file, "epoch %lld/%lld  loss %.4f", (long long)e->epoch, (long long)e->epochs, e->loss);
    if (!isnan(training))
        fprintf(file, "  training %s%s%.3f", name, space, training);
    if (!isnan(report->score.of[SL_SPLIT_VAL]))
        fprintf(file, "  validation %s%s%.3f", name, space, report->score.of[SL_SPLIT_VAL]);
}

/* Print the scores of the metric that is shown beside. */
static void print_shown(FILE *file, const struct sl_report *report, const struct sl_epoch_report *e)
{
    if (!e->shown)
        return;
    if (!isnan(report->shown_score.of[SL_SPLIT_TRAIN]))
        fprintf(file, "  training %s %.3f", e->shown->name, report->shown_score.of[SL_SPLIT_TRAIN]);
    if (!isnan(report->shown_score.of[SL_SPLIT_VAL]))
        fprintf(file, "  validation %s %.3f", e->shown->name, report->shown_score.of[SL_SPLIT_VAL]);
}

/* Print how long the epochs left take, if they last as long as this run's epochs so far. */
static void print_time_left(FILE *file, const struct sl_report *report,
                            const struct sl_epoch_report *e, double now)
{
    const double done = (double)(e->epoch - report->first_epoch);
    char time[24];
    if (done >= 1.0)
        fprintf(file, "  %s left",
                sl_progress_time((now - report->first_at) / done * (double)(e->epochs - e->epoch),
                                 time));
}

static void draw_bar(struct sl_report *report, const struct sl_epoch_report *e)
{
    char text[256];
    const double now = sl_runtime_seconds();
    if (report->first_at == 0.0) {
        report->first_at = now;
        report->first_epoch = e->epoch;
    }
    if (e->epoch < e->epochs && now - report->last_drawn < REDRAW_SECONDS)
        return;
    report->last_drawn = now;
    FILE *out = fmemopen(text, sizeof text, "w");
    if (!out)
        return;
    print_epoch(out, report, e);
    print_time_left(out, report, e, now);
    print_shown(out, report, e);
    fclose(out);
    sl_progress_draw((double)e->epoch / (double)e->epochs, text);
}

static void print_line(struct sl_report *report, const struct sl_epoch_report *e)
{
    sl_report_finish_bar(report);
    print_epoch(stdout, report, e);
    print_shown(stdout, report, e);
    putchar('\n');
    fflush(stdout);
}

static void set_scores(json_t *object, const struct sl_metric *metric,
                       const struct sl_scores *scores)
{
    static const char *const splits[] = {
        [SL_SPLIT_TRAIN] = "train", [SL_SPLIT_VAL] = "val", [SL_SPLIT_TEST] = "test"};
    char key[64];
    for (int s = SL_SPLIT_TRAIN; s < SL_SPLITS; s++)
        set_number(object, sl_report_key(key, splits[s], metric->name), scores->of[s]);
}

json_t *sl_report_epoch_members(const struct sl_epoch_report *e)
{
    json_t *object = json_pack("{s:I}", "epoch", (json_int_t)e->epoch);
    /* A reader must not miss a loss that is not a number. */
    if (isfinite(e->loss))
        json_object_set_new(object, "loss", json_real(e->loss));
    else
        json_object_set_new(object, "loss", json_null());
    set_number(object, "train_accuracy", e->train_accuracy);
    set_number(object, "val_accuracy", e->val_accuracy);
    set_number(object, "test_accuracy", e->test_accuracy);
    if (e->metric != &sl_metric_accuracy)
        set_scores(object, e->metric, &e->score);
    if (e->shown)
        set_scores(object, e->shown, &e->shown_score);
    return object;
}

static void log_epoch(struct sl_report *report, const struct sl_epoch_report *e)
{
    json_t *object = sl_report_epoch_members(e);
    set_number(object, "seconds", e->seconds);
    set_number(object, "eval_seconds", e->eval_seconds);
    set_number(object, "compute_seconds", sl_overlap_seconds(e->times.compute));
    set_number(object, "communication_seconds", sl_overlap_seconds(e->times.communication));
    set_number(object, "hidden_seconds", sl_overlap_seconds(e->times.hidden));
    sl_report_event(report, "epoch", object);
}

void sl_report_epoch(struct sl_report *report, const struct sl_epoch_report *e)
{
    if (report->log && !report->table)
        log_epoch(report, e);
    if (report->log && report->table && sl_epoch_table_row(report->log, e))
        tell_failure(report);
    const bool evaluated = !isnan(e->eval_seconds);
    if (evaluated) {
        report->score = e->score;
        report->shown_score = e->shown_score;
    }
    if (report->lines && evaluated)
        print_line(report, e);
    if (report->bar)
        draw_bar(report, e);
    if (report->listener)
        report->listener(report->context, e);
}

void sl_report_sync(struct sl_report *report)
{
    /* A pipe or a terminal keeps nothing, so fsync fails with EINVAL or EROFS. */
    if (report->log && fsync(fileno(report->log)) && errno != EINVAL && errno != EROFS)
        tell_failure(report);
}

void sl_report_finish_bar(struct sl_report *report)
{
    if (report->bar)
        sl_progress_clear();
}

int sl_report_close(struct sl_report *report)
{
    if (!report->log)
        return 0;
    if (fclose(report->log))
        tell_failure(report);
    report->log = NULL;
    return report->failed ? sl_error(SL_ERR_SYSTEM, "--log %s: lines are missing", report->log_path)
                          : 0;
}
