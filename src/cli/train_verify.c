#include "cli/train_verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/words.h"
#include "log/environment.h"
#include "run/run.h"

/* Return the next event of the log; NULL: there is none. A kill may have left half a line. */
static json_t *next_event(struct sl_verify *v)
{
    const ssize_t length = getline(&v->line, &v->room, v->log);
    return length > 0 ? json_loadb(v->line, (size_t)length, 0, NULL) : NULL;
}

static bool is_event(const json_t *event, const char *name)
{
    const char *own = json_string_value(json_object_get(event, "event"));
    return own && strcmp(own, name) == 0;
}

/* Return the next event of an epoch; NULL: there is none. */
static json_t *next_epoch(struct sl_verify *v)
{
    json_t *event = next_event(v);
    while (event && !is_event(event, "epoch")) {
        json_decref(event);
        event = next_event(v);
    }
    return event;
}

char *sl_verify_dataset(const char *path)
{
    struct sl_verify v = {.log = path ? fopen(path, "r") : NULL};
    json_t *start = v.log ? next_event(&v) : NULL;
    const char *dataset = json_string_value(json_object_get(start, "dataset"));
    char *copy = is_event(start, "start") && dataset ? strdup(dataset) : NULL;
    json_decref(start);
    sl_verify_close(&v);
    return copy;
}

/* Read the log once, from its first event to its last. */
static int read_log(struct sl_verify *v, const char *path)
{
    v->start = next_event(v);
    if (!is_event(v->start, "start"))
        return sl_error(SL_ERR_DATA, "--verify: %s is no log (expected one of --log FILE.jsonl)",
                        path);
    for (json_t *event = next_event(v); event; event = next_event(v)) {
        v->epochs += is_event(event, "epoch");
        if (is_event(event, "end"))
            v->end = json_incref(event);
        json_decref(event);
    }
    if (json_integer_value(json_object_get(v->start, "first_epoch")) != 1)
        return sl_error(SL_ERR_DATA,
                        "--verify: the run of %s goes on after another one (expected a log that "
                        "begins with epoch 1)",
                        path);
    if (v->epochs == 0)
        return sl_error(SL_ERR_DATA, "--verify: %s has no epoch", path);
    rewind(v->log);
    return 0;
}

int sl_verify_open(struct sl_verify *v, struct sl_train_run *run)
{
    const char *path = run->config.files.config;
    if (!run->config.files.verify)
        return 0;
    if (!path)
        return sl_error(SL_ERR_USAGE, "--verify: expected --config LOG with it");
    if (run->config.files.resume)
        return sl_error(SL_ERR_USAGE, "--verify: expected no --resume with it");
    v->log = fopen(path, "r");
    if (!v->log)
        return sl_error(SL_ERR_DATA, "--config %s: %s", path, strerror(errno));
    const int code = read_log(v, path);
    if (!code && !json_is_false(json_object_get(v->end, "stopped")))
        run->config.files.stop_after = v->epochs;
    return code;
}

/* ---- Compare ---- */

/* Note a difference, unless there was one before. */
static void note(struct sl_verify *v, const char *where, const char *what, const json_t *logged,
                 const json_t *own)
{
    char *before = json_dumps(logged, JSON_ENCODE_ANY), *now = json_dumps(own, JSON_ENCODE_ANY);
    if (!v->difference[0])
        snprintf(v->difference, sizeof v->difference, "%s: %s %.40s, in the log %.40s", where, what,
                 now ? now : "none", before ? before : "none");
    free(before);
    free(now);
}

/* Compare the members of `own` with the log's. */
static void compare(struct sl_verify *v, const char *where, const json_t *logged, json_t *own)
{
    const char *name;
    json_t *value;
    json_object_foreach(own, name, value)
    {
        const json_t *before = json_object_get(logged, name);
        if (!before || !json_equal(before, value))
            note(v, where, name, before, value);
    }
}

static void compare_epoch(void *context, const struct sl_epoch_report *epoch)
{
    struct sl_verify *v = context;
    char where[40];
    json_t *logged = next_epoch(v), *own = sl_report_epoch_members(epoch);
    snprintf(where, sizeof where, "epoch %" PRId64, epoch->epoch);
    compare(v, where, logged, own);
    v->equal += !v->difference[0];
    json_decref(logged);
    json_decref(own);
}

int sl_verify_begin(struct sl_verify *v, struct sl_train_run *run)
{
    const char *name;
    json_t *value;
    const json_t *logged = json_object_get(json_object_get(v->start, "graph"), "hashes");
    if (!v->log || run->rt.rank != 0)
        return 0;
    json_object_foreach((json_t *)logged, name, value)
    {
        if (!json_equal(value, json_object_get(run->hashes, name)))
            return sl_error(SL_ERR_DATA, "%s: the %s are not those of the run of %s", run->path,
                            name, run->config.files.config);
    }
    run->report.listener = compare_epoch;
    run->report.context = v;
    return 0;
}

/* Append "NAME here, NAME in the log" of a fact of the machine or the program that differs. */
static void append_other(char text[256], const char *name, const json_t *logged, const json_t *own)
{
    if (!logged || json_equal(logged, own))
        return;
    char *before = json_dumps(logged, JSON_ENCODE_ANY), *now = json_dumps(own, JSON_ENCODE_ANY);
    const size_t length = strlen(text);
    snprintf(text + length, 256 - length, "%s%s %s, in the log %s", length ? "; " : "", name,
             now ? now : "none", before ? before : "none");
    free(before);
    free(now);
}

/* Say which of the things that results may depend on are not as logged. */
static void describe_others(const struct sl_verify *v, const struct sl_train_run *run,
                            char text[256])
{
    static const char *const facts[] = {"ranks", "gpus_per_rank", "processor"};
    json_t *versions = sl_environment_versions(), *machine = sl_environment_machine(&run->rt);
    const json_t *before = json_object_get(v->start, "versions");
    const char *name;
    json_t *value;
    text[0] = '\0';
    for (size_t f = 0; f < sizeof facts / sizeof *facts; f++)
        append_other(text, facts[f],
                     json_object_get(json_object_get(v->start, "machine"), facts[f]),
                     json_object_get(machine, facts[f]));
    json_object_foreach(versions, name, value)
    {
        append_other(text, name, json_object_get(before, name), value);
    }
    json_decref(versions);
    json_decref(machine);
}

int sl_verify_end(struct sl_verify *v, const struct sl_train_run *run)
{
    const char *path = run->config.files.config;
    char others[256], weights[20];
    if (!v->log || run->rt.rank != 0)
        return 0;
    json_t *more = v->difference[0] ? NULL : next_epoch(v);
    if (more)
        snprintf(v->difference, sizeof v->difference, "the run ends after epoch %" PRId64,
                 v->equal);
    json_decref(more);
    snprintf(weights, sizeof weights, "%016" PRIx64, run->outcome.weights);
    /* Steps of an unfinished epoch have changed the logged weights. */
    const json_t *logged =
        json_object_get(v->end, "unfinished") ? NULL : json_object_get(v->end, "weights");
    json_t *own = json_string(weights);
    if (logged && !json_equal(logged, own))
        note(v, "after the last epoch", "weights", logged, own);
    json_decref(own);
    if (!v->difference[0] && run->config.files.quiet)
        return 0;
    if (!v->difference[0]) {
        printf("verified: %" PRId64 " epoch%s%s as in %s, bit for bit\n", v->equal, sl_s(v->equal),
               logged ? " and the weights" : "", path);
        return 0;
    }
    describe_others(v, run, others);
    return sl_error(SL_ERR_DATA, "--verify: other than in %s, %s%s%s%s", path, v->difference,
                    others[0] ? " (" : "", others, others[0] ? ")" : "");
}

void sl_verify_close(struct sl_verify *v)
{
    if (v->log)
        fclose(v->log);
    free(v->line);
    json_decref(v->start);
    json_decref(v->end);
    *v = (struct sl_verify){0};
}
