/* --config: options out of a file. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "core/error.h"
#include "train/config.h"
#include "train/defaults.h"

static bool is_log(const json_t *object)
{
    const char *event = json_string_value(json_object_get(object, "event"));
    return event && strcmp(event, "start") == 0;
}

/* Whether nothing but white space follows. */
static bool ends_here(FILE *file)
{
    int c = fgetc(file);
    while (isspace(c))
        c = fgetc(file);
    return c == EOF;
}

/* An object; or the first line of a log, in front of others. The file is read once: it may be a
 * pipe. */
static json_t *read_object(const char *path)
{
    static const char expected[] = "expected a JSON object of options, or a log";
    json_error_t error;
    FILE *file = fopen(path, "r");
    if (!file) {
        sl_error(SL_ERR_USAGE, "--config %s: %s (%s)", path, strerror(errno), expected);
        return NULL;
    }
    json_t *object = json_loadf(file, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
    const bool whole = is_log(object) || ends_here(file);
    fclose(file);
    if (json_is_object(object) && whole)
        return object;
    if (object)
        sl_error(SL_ERR_USAGE, "--config %s: %s (%s)", path,
                 whole ? "another JSON value" : "more after the object", expected);
    else
        sl_error(SL_ERR_USAGE, "--config %s, line %d: %s (%s)", path, error.line, error.text,
                 expected);
    json_decref(object);
    return NULL;
}

/* A log has every option. Those that follow from others of the command line are not taken: what a
 * preset sets, epochs of a number of rounds, and rounds of a number of epochs. */
static bool follows(const struct sl_config *config, const bool *typed, const char *option,
                    const json_t *log)
{
    const bool preset = sl_config_is_given(typed, "preset"),
               epochs = sl_config_is_given(typed, "epochs"),
               rounds = sl_config_is_given(typed, "rounds") ||
                        (!epochs && json_integer_value(json_object_get(log, "rounds")) > 0);
    return strcmp(option, "preset") == 0 || (preset && sl_defaults_sets(config->preset, option)) ||
           (rounds && strcmp(option, "epochs") == 0) || (epochs && strcmp(option, "rounds") == 0);
}

/* Exact last epochs of a run that has no others, since its distribution turned out exact. */
static void drop_exact_epochs(struct sl_config *config, const bool *typed, bool *given)
{
    if (config->allow_inexact || sl_config_delay(config) != SL_DELAY_EXACT ||
        sl_config_is_given(typed, "exact-epochs"))
        return;
    for (int o = 0; sl_config_options[o].name; o++)
        given[o] = given[o] && strcmp(sl_config_options[o].name, "exact-epochs") != 0;
    config->exact_epochs = -1;
}

static int take_options(struct sl_config *config, const json_t *file, const json_t *log,
                        bool *given)
{
    bool skip[SL_MOST_OPTIONS], typed[SL_MOST_OPTIONS] = {false};
    const json_t *options = log ? log : file;
    if (!log && json_object_get(file, "config"))
        return sl_error(SL_ERR_USAGE,
                        "--config %s: config is of the command line alone (expected "
                        "other options)",
                        config->config);
    for (int o = 0; sl_config_options[o].name; o++) {
        const struct sl_option *option = &sl_config_options[o];
        typed[o] = given[o];
        skip[o] =
            typed[o] || strcmp(option->name, "config") == 0 || (log && sl_config_is_file(option));
    }
    for (int o = 0; log && sl_config_options[o].name; o++)
        skip[o] = skip[o] || follows(config, typed, sl_config_options[o].name, log);
    if (sl_options_from_json(sl_config_options, config, options, skip, config->config))
        return SL_ERR_USAGE;
    for (int o = 0; sl_config_options[o].name; o++) {
        const json_t *value = json_object_get(options, sl_config_options[o].name);
        given[o] = !skip[o] && value && !json_is_null(value);
    }
    if (log) {
        sl_config_forget_others(config, given);
        drop_exact_epochs(config, typed, given);
    }
    for (int o = 0; sl_config_options[o].name; o++)
        given[o] = given[o] || typed[o];
    return 0;
}

int sl_config_read_file(struct sl_config *config, bool *given)
{
    if (!config->config)
        return 0;
    json_t *file = read_object(config->config);
    if (!file)
        return SL_ERR_USAGE;
    const int code = take_options(
        config, file, is_log(file) ? json_object_get(file, "configuration") : NULL, given);
    json_decref(file);
    return code;
}
