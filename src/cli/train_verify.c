#include "cli/train_verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/file.h"
#include "core/json_file.h"
#include "core/words.h"
#include "log/environment.h"
#include "run/run.h"

/* ---- Read ---- */

static bool is_event(const json_t *event, const char *name)
{
    const char *own = json_string_value(json_object_get(event, "event"));
    return own && strcmp(own, name) == 0;
}

/* Set *event to the next event of the log; NULL: there is none. A kill may have left half a line at
 * the end. */
static int next_event(struct sl_verify *v, json_t **event)
{
    json_error_t error;
    const ssize_t length = getline(&v->line, &v->room, v->log);
    *event = NULL;
    if (length < 0)
        return feof(v->log) ? 0 : sl_error(SL_ERR_SYSTEM, "%s: %s", v->path, strerror(errno));
    v->number++;
    *event = sl_json_parse(v->line, (size_t)length, 0, &error);
    if (json_is_object(*event) || (!*event && v->line[length - 1] != '\n'))
        return 0;
    json_decref(*event);
    *event = NULL;
    if (json_error_code(&error) == json_error_out_of_memory)
        return sl_error(SL_ERR_SYSTEM, "%s: no memory for line %" PRId64, v->path, v->number);
    return sl_error(SL_ERR_DATA, "%s: line %" PRId64 " is damaged (expected an event of a log)",
                    v->path, v->number);
}

/* Set *event to the next event of an epoch; NULL: there is none. */
static int next_epoch(struct sl_verify *v, json_t **event)
{
    int code = next_event(v, event);
    while (!code && *event && !is_event(*event, "epoch")) {
        json_decref(*event);
        code = next_event(v, event);
    }
    return code;
}

char *sl_verify_dataset(const char *path)
{
    const char *why;
    struct sl_verify v = {.path = path, .log = path ? sl_file_stream(path, &why) : NULL};
    json_t *start = NULL;
    if (v.log)
        next_event(&v, &start);
    const char *dataset = json_string_value(json_object_get(start, "dataset"));
    char *copy = is_event(start, "start") && dataset ? strdup(dataset) : NULL;
    json_decref(start);
    sl_verify_close(&v);
    return copy;
}

int sl_verify_check(const struct sl_config *config, const bool *given)
{
    struct stat status;
    if (!config->files.verify)
        return 0;
    if (!config->files.config)
        return sl_error(SL_ERR_USAGE, "--verify: expected --config LOG with it");
    if (stat(config->files.config, &status) == 0 && !S_ISREG(status.st_mode))
        return sl_error(SL_ERR_USAGE,
                        "--config %s: is no regular file (expected one with --verify)",
                        config->files.config);
    if (config->files.resume || config->files.plan)
        return sl_error(SL_ERR_USAGE, "--verify: expected no --%s with it",
                        config->files.plan ? "plan" : "resume");
    for (int o = 0; sl_config_options[o].name; o++)
        if (given[o] && (!sl_config_is_execution(&sl_config_options[o]) ||
                         strcmp(sl_config_options[o].name, "checkpoint-every") == 0))
            return sl_error(SL_ERR_USAGE,
                            "--%s: the log says it (expected no option with --verify "
                            "that changes the run)",
                            sl_config_options[o].name);
    return 0;
}

/* Read the log once, from its first event to its last. */
static int read_events(struct sl_verify *v)
{
    json_t *event;
    int code = next_event(v, &v->start);
    if (!code && !is_event(v->start, "start"))
        code = sl_error(SL_ERR_DATA, "--verify: %s is no log (expected one of --log FILE.jsonl)",
                        v->path);
    for (bool more = !code; more; json_decref(event)) {
        code = next_event(v, &event);
        v->epochs += is_event(event, "epoch");
        if (is_event(event, "end") && !v->end)
            v->end = json_incref(event);
        if (!code && is_event(event, "start"))
            code = sl_error(SL_ERR_DATA,
                            "--verify: line %" PRId64 " of %s begins another run (expected a log "
                            "of one run, without --resume)",
                            v->number, v->path);
        more = event && !code;
    }
    if (!code && (json_integer_value(json_object_get(v->start, "first_epoch")) != 1 ||
                  json_object_get(v->start, "first_step")))
        code = sl_error(SL_ERR_DATA,
                        "--verify: the run of %s goes on after another one (expected a log that "
                        "begins with epoch 1)",
                        v->path);
    if (!code && v->epochs == 0)
        code = sl_error(SL_ERR_DATA, "--verify: %s has no epoch", v->path);
    rewind(v->log);
    v->number = 0;
    return code;
}

int sl_verify_read(struct sl_verify *v, const char *path)
{
    const char *why;
    *v = (struct sl_verify){.path = path, .log = sl_file_stream(path, &why)};
    return v->log ? read_events(v) : sl_error(SL_ERR_DATA, "--config %s: %s", path, why);
}

int sl_verify_open(struct sl_verify *v, struct sl_train_run *run)
{
    int64_t numbers[2] = {0}; /* the last epoch; epochs between checkpoints */
    int code = 0;
    if (!run->config.files.verify)
        return 0;
    if (run->rt.rank == 0) {
        code = sl_verify_read(v, run->config.files.config);
        if (!code && !json_is_false(json_object_get(v->end, "stopped")))
            numbers[0] = v->epochs;
        numbers[1] = json_integer_value(
            json_object_get(json_object_get(v->start, "configuration"), "checkpoint-every"));
    }
    code = sl_runtime_agree(&run->rt, code);
    if (code)
        return code;
    sl_runtime_sum(&run->rt, numbers, 2);
    if (numbers[0] > 0)
        run->config.files.stop_after = numbers[0];
    run->config.files.checkpoint_every = numbers[1] > 0 ? numbers[1] : 0;
    return 0;
}

/* ---- Compare ---- */

/* Note a difference, unless there was one before. */
static void note(struct sl_verify *v, const char *where, const char *what, const json_t *logged,
                 const json_t *own)
{
    char *before = sl_json_print(logged, JSON_ENCODE_ANY),
         *now = sl_json_print(own, JSON_ENCODE_ANY);
    if (!v->difference[0])
        snprintf(v->difference, sizeof v->difference, "%s: %s %.40s, in the log %.40s", where, what,
                 now ? now : "none", before ? before : "none");
    free(before);
    free(now);
}

/* Whether a repeated run has the same value of that name: a loss, a score, an epoch, the weights.
 */
static bool repeats(const char *name)
{
    static const char *const names[] = {"loss",   "weights",    "metric",     "epoch",
                                        "epochs", "best_epoch", "kept_epoch", "at_best"};
    bool found = strncmp(name, "train_", 6) == 0 || strncmp(name, "val_", 4) == 0 ||
                 strncmp(name, "test_", 5) == 0;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        found = found || strcmp(name, names[n]) == 0;
    return found;
}

/* Compare what repeats in one object with the other one. */
static void compare_members(struct sl_verify *v, const char *where, const json_t *logged,
                            const json_t *own, const json_t *names)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)names, name, value)
    {
        const json_t *before = json_object_get(logged, name), *now = json_object_get(own, name);
        if (repeats(name) && before != now && !json_equal(before, now))
            note(v, where, name, before, now);
    }
}

/* Compare what repeats, in either of two events. */
static void compare(struct sl_verify *v, const char *where, const json_t *logged, const json_t *own)
{
    compare_members(v, where, logged, own, own);
    compare_members(v, where, logged, own, logged);
}

static void compare_epoch(void *context, const struct sl_epoch_report *epoch)
{
    struct sl_verify *v = context;
    char where[40];
    json_t *logged, *own = sl_report_epoch_members(epoch);
    snprintf(where, sizeof where, "epoch %" PRId64, epoch->epoch);
    if (next_epoch(v, &logged) && !v->difference[0])
        snprintf(v->difference, sizeof v->difference, "%s: the log cannot be read", where);
    compare(v, where, logged, own);
    v->equal += !v->difference[0];
    json_decref(logged);
    json_decref(own);
}

static int compare_data(const struct sl_verify *v, const struct sl_train_run *run)
{
    const char *name;
    json_t *value;
    const json_t *logged = json_object_get(json_object_get(v->start, "graph"), "hashes");
    if (!run->hashes)
        return sl_error(SL_ERR_SYSTEM, "%s: no memory for hashes of the data", run->path);
    json_object_foreach((json_t *)logged, name, value)
    {
        if (!json_equal(value, json_object_get(run->hashes, name)))
            return sl_error(SL_ERR_DATA, "%s: the %s are not those of the run of %s", run->path,
                            name, v->path);
    }
    return 0;
}

int sl_verify_begin(struct sl_verify *v, struct sl_train_run *run)
{
    if (!run->config.files.verify)
        return 0;
    if (run->rt.rank == 0) {
        run->report.listener = compare_epoch;
        run->report.context = v;
    }
    return sl_runtime_agree(&run->rt, run->rt.rank == 0 ? compare_data(v, run) : 0);
}

/* ---- End ---- */

/* Append "NAME here, NAME in the log" of a fact of the machine or the program that differs. */
static void append_other(char text[256], const char *name, const json_t *logged, const json_t *own)
{
    if (!logged || json_equal(logged, own))
        return;
    char *before = sl_json_print(logged, JSON_ENCODE_ANY),
         *now = sl_json_print(own, JSON_ENCODE_ANY);
    const size_t length = strlen(text);
    snprintf(text + length, 256 - length, "%s%s %s, in the log %s", length ? "; " : "", name,
             now ? now : "none", before ? before : "none");
    free(before);
    free(now);
}

/* Append the options of the machine that are not as logged, but for files. */
static void append_options(const struct sl_verify *v, const struct sl_train_run *run,
                           char text[256])
{
    const json_t *logged = json_object_get(v->start, "configuration");
    json_t *own = sl_options_to_json(sl_config_options, &run->config);
    for (const struct sl_option *o = sl_config_options; o->name; o++)
        if (!sl_config_is_file(o) && strcmp(o->name, "stop-after") != 0)
            append_other(text, o->name, json_object_get(logged, o->name),
                         json_object_get(own, o->name));
    json_decref(own);
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
    append_options(v, run, text);
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

/* Compare the ends, unless the logged run has none, or was stopped in the middle of an epoch. */
static void compare_end(struct sl_verify *v, const struct sl_train_run *run)
{
    json_t *more;
    if (next_epoch(v, &more) || more)
        snprintf(v->difference, sizeof v->difference, "the run ends after epoch %" PRId64,
                 v->equal);
    json_decref(more);
    if (v->end && !json_object_get(v->end, "unfinished"))
        compare(v, "the end", v->end, run->end);
}

static int end_of(struct sl_verify *v, const struct sl_train_run *run)
{
    const bool hashes = json_object_get(json_object_get(v->start, "graph"), "hashes"),
               weights = v->end && json_object_get(v->end, "weights") &&
                         !json_object_get(v->end, "unfinished");
    char others[256];
    if (!v->difference[0])
        compare_end(v, run);
    if (v->difference[0]) {
        describe_others(v, run, others);
        return sl_error(SL_ERR_DATA, "--verify: other than in %s, %s%s%s%s", v->path, v->difference,
                        others[0] ? " (" : "", others, others[0] ? ")" : "");
    }
    if (!run->config.files.quiet)
        printf("verified: %" PRId64 " epoch%s%s as in %s, bit for bit%s%s\n", v->equal,
               sl_s(v->equal), weights ? " and the weights" : "", v->path,
               hashes ? "" : "; the log has no hashes of the data",
               weights ? "" : "; the log has no weights");
    return 0;
}

int sl_verify_end(struct sl_verify *v, struct sl_train_run *run)
{
    return sl_runtime_agree(&run->rt, run->rt.rank == 0 ? end_of(v, run) : 0);
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
