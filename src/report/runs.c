#include "report/runs.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"

static json_int_t epoch_of(const json_t *event)
{
    return json_integer_value(json_object_get(event, "epoch"));
}

/* Drop epochs that a resumed run has done again. */
static void drop_epochs(json_t *epochs, const json_t *next)
{
    size_t count = json_array_size(epochs);
    while (count > 0 && epoch_of(json_array_get(epochs, count - 1)) >= epoch_of(next))
        json_array_remove(epochs, --count);
}

/* Read a line of the log. A line that is no event is refused, unless it is the last one, which a
 * killed program may have cut. */
static int take_line(struct sl_logged_run *run, const char *text, int64_t number, bool last)
{
    json_error_t error;
    json_t *event = sl_json_parse(text, strlen(text), 0, &error);
    const char *name = json_string_value(json_object_get(event, "event"));
    int code = 0;
    if (!event && json_error_code(&error) == json_error_out_of_memory)
        return sl_error(SL_ERR_SYSTEM, "%s, line %lld: %s", run->path, (long long)number,
                        error.text);
    if (!event && last && run->start)
        return 0;
    if (!name)
        code = sl_error(SL_ERR_DATA, "%s, line %lld: expected an event of starling train --log",
                        run->path, (long long)number);
    else if (strcmp(name, "start") == 0) {
        json_decref(run->start);
        json_decref(run->end);
        run->start = json_incref(event);
        run->end = NULL;
    } else if (strcmp(name, "epoch") == 0) {
        drop_epochs(run->epochs, event);
        json_array_append(run->epochs, event);
    } else if (strcmp(name, "end") == 0) {
        json_decref(run->end);
        run->end = json_incref(event);
    }
    json_decref(event);
    return code;
}

static int take_lines(struct sl_logged_run *run, FILE *file)
{
    char *line = NULL, *next = NULL;
    size_t room = 0, next_room = 0;
    int64_t number = 0;
    int code = 0;
    ssize_t length = getline(&line, &room, file);
    while (!code && length >= 0) {
        length = getline(&next, &next_room, file);
        code = take_line(run, line, ++number, length < 0);
        char *done = line;
        const size_t done_room = room;
        line = next;
        room = next_room;
        next = done;
        next_room = done_room;
    }
    free(line);
    free(next);
    if (!code && !run->start)
        code = sl_error(SL_ERR_DATA, "%s: no event \"start\" (expected a log of starling train)",
                        run->path);
    return code;
}

/* Read a trace. A missing file is an error if the user asked for it, but not if only the log names
 * it. */
static int read_trace(struct sl_logged_run *run, const char *asked)
{
    json_error_t error;
    const json_t *configuration = json_object_get(run->start, "configuration");
    const char *path = asked ? asked : json_string_value(json_object_get(configuration, "trace"));
    struct stat status;
    if (!path || (!asked && (stat(path, &status) || !S_ISREG(status.st_mode))))
        return 0;
    run->trace = sl_json_read_file(path, &error);
    if (asked && !json_is_array(json_object_get(run->trace, "traceEvents")))
        return sl_error(SL_ERR_DATA, "--trace %s: %s (expected a file of starling train --trace)",
                        path, run->trace ? "no list \"traceEvents\"" : error.text);
    return 0;
}

int sl_logged_run_read(const char *path, const char *trace, struct sl_logged_run *run)
{
    *run = (struct sl_logged_run){.path = path, .epochs = json_array()};
    const char *why;
    FILE *file = sl_file_stream(path, &why);
    if (!file)
        return sl_error(SL_ERR_DATA, "%s: %s (expected a log of starling train --log)", path, why);
    int code = take_lines(run, file);
    fclose(file);
    return code ? code : read_trace(run, trace);
}

void sl_logged_run_free(struct sl_logged_run *run)
{
    json_decref(run->start);
    json_decref(run->end);
    json_decref(run->epochs);
    json_decref(run->trace);
    *run = (struct sl_logged_run){0};
}

static const json_t *follow(const json_t *object, const char *const *keys)
{
    for (; *keys; keys++)
        object = json_object_get(object, *keys);
    return object;
}

double sl_logged_number(const json_t *object, const char *const *keys)
{
    const json_t *value = follow(object, keys);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

double sl_logged_sum(const json_t *object, const char *const *keys)
{
    const json_t *list = follow(object, keys);
    double sum = json_array_size(list) > 0 ? 0.0 : NAN;
    for (size_t i = 0; i < json_array_size(list); i++)
        sum += json_number_value(json_array_get(list, i));
    return sum;
}

double sl_logged_mean(const json_t *object, const char *const *keys)
{
    return sl_logged_sum(object, keys) / (double)json_array_size(follow(object, keys));
}

double sl_logged_run_kept(const struct sl_logged_run *run)
{
    const double kept = sl_logged_number(run->end, (const char *const[]){"kept_epoch", NULL}),
                 best = sl_logged_number(run->end, (const char *const[]){"best_epoch", NULL}),
                 last = sl_logged_number(run->end, (const char *const[]){"epochs", NULL}),
                 patience = sl_logged_number(
                     run->start, (const char *const[]){"configuration", "patience", NULL});
    if (!isnan(kept))
        return kept;
    return patience > 0.0 && best > 0.0 ? best : last;
}

double sl_logged_run_loss(const struct sl_logged_run *run)
{
    const double kept = sl_logged_run_kept(run);
    size_t i;
    json_t *event;
    if (json_is_null(json_object_get(run->end, "loss")))
        return NAN; /* no epoch has the weights */
    json_array_foreach(run->epochs, i, event)
    {
        if ((double)epoch_of(event) == kept)
            return sl_logged_number(event, (const char *const[]){"loss", NULL});
    }
    return sl_logged_number(run->end, (const char *const[]){"loss", NULL});
}
