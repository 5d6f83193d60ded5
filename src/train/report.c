#include "train/report.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/runtime.h"

enum { BAR_WIDTH = 30 };
static const double REDRAW_SECONDS = 0.1;

int sl_report_open(struct sl_report *report, const char *log_path, bool append, bool quiet)
{
    *report = (struct sl_report){.log_path = log_path, .bar = !quiet && isatty(STDERR_FILENO)};
    if (!log_path)
        return 0;
    report->log = fopen(log_path, append ? "a" : "w");
    if (!report->log)
        return sl_error(SL_ERR_USAGE, "--log %s: %s (expected a file that can be written)",
                        log_path, strerror(errno));
    return 0;
}

void sl_report_event(struct sl_report *report, const char *name, json_t *object)
{
    json_t *line = json_pack("{s:s}", "event", name);
    json_object_update(line, object);
    json_decref(object);
    /* One flush per line: whatever ends the run, the log is whole lines up to the last epoch. */
    if (report->log && (json_dumpf(line, report->log, JSON_COMPACT) ||
                        fputc('\n', report->log) == EOF || fflush(report->log)))
        report->failed = true;
    json_decref(line);
}

static void set_number(json_t *object, const char *key, double value)
{
    if (isfinite(value))
        json_object_set_new(object, key, json_real(value));
    else if (!isnan(value))
        json_object_set_new(object, key, json_null());
}

static void draw_bar(struct sl_report *report, const struct sl_epoch_report *e)
{
    const double now = sl_runtime_seconds();
    if (e->epoch < e->epochs && now - report->last_drawn < REDRAW_SECONDS)
        return;
    report->last_drawn = now;
    const int full = (int)(BAR_WIDTH * e->epoch / e->epochs);
    fprintf(stderr, "\r[");
    for (int c = 0; c < BAR_WIDTH; c++)
        fputc(c < full ? '#' : '.', stderr);
    fprintf(stderr, "] epoch %lld/%lld  loss %.4f  train %.3f", (long long)e->epoch,
            (long long)e->epochs, e->loss, e->train_accuracy);
    fflush(stderr);
}

void sl_report_epoch(struct sl_report *report, const struct sl_epoch_report *e)
{
    if (report->log) {
        json_t *object = json_pack("{s:I}", "epoch", (json_int_t)e->epoch);
        /* A loss that is not a number is the one thing a reader must not miss. */
        if (isfinite(e->loss))
            json_object_set_new(object, "loss", json_real(e->loss));
        else
            json_object_set_new(object, "loss", json_null());
        set_number(object, "train_accuracy", e->train_accuracy);
        set_number(object, "val_accuracy", e->val_accuracy);
        set_number(object, "test_accuracy", e->test_accuracy);
        set_number(object, "seconds", e->seconds);
        set_number(object, "eval_seconds", e->eval_seconds);
        set_number(object, "compute_seconds", sl_overlap_seconds(e->times.compute));
        set_number(object, "communication_seconds", sl_overlap_seconds(e->times.communication));
        set_number(object, "hidden_seconds", sl_overlap_seconds(e->times.hidden));
        sl_report_event(report, "epoch", object);
    }
    if (report->bar)
        draw_bar(report, e);
}

void sl_report_finish_bar(struct sl_report *report)
{
    if (report->bar)
        fputs("\r\033[K", stderr);
}

int sl_report_close(struct sl_report *report)
{
    if (!report->log)
        return 0;
    if (fclose(report->log))
        report->failed = true;
    report->log = NULL;
    return report->failed ? sl_error(SL_ERR_SYSTEM, "--log %s: the disk refused part of the log",
                                     report->log_path)
                          : 0;
}
