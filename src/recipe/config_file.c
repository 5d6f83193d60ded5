/* --config: options out of a file, in TOML if its name ends in .toml. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/error.h"
#include "core/json_file.h"
#include "core/toml.h"
#include "recipe/config.h"
#include "recipe/defaults.h"

static const char expected_json[] = "expected a JSON object of options, or a log";
static const char expected_toml[] = "expected options in TOML";

static bool is_toml(const char *path)
{
    const size_t length = strlen(path);
    return length > 5 && strcasecmp(path + length - 5, ".toml") == 0;
}

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
static json_t *read_json(const char *path, FILE *file)
{
    json_error_t error;
    json_t *object = sl_json_read(file, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
    const bool whole = is_log(object) || ends_here(file);
    if (json_is_object(object) && whole)
        return object;
    if (object)
        sl_error(SL_ERR_DATA, "--config %s: %s (%s)", path,
                 whole ? "another JSON value" : "more after the object", expected_json);
    else if (json_error_code(&error) == json_error_out_of_memory)
        sl_error(SL_ERR_SYSTEM, "--config %s: %s", path, error.text);
    else
        sl_error(SL_ERR_DATA, "--config %s, line %d: %s (%s)", path, error.line, error.text,
                 expected_json);
    json_decref(object);
    return NULL;
}

/* Return the options of a file in TOML, and their lines; NULL on an error. */
static json_t *read_toml(const char *path, FILE *file, json_t **lines)
{
    char *text = NULL, source[PATH_MAX + 16];
    size_t room = 0;
    json_t *object = NULL;
    snprintf(source, sizeof source, "--config %s", path);
    /* Up to the end: text has no zero byte. */
    const ssize_t length = getdelim(&text, &room, '\0', file);
    if (length < 0 && ferror(file))
        sl_error(SL_ERR_DATA, "%s: %s (%s)", source, strerror(errno), expected_toml);
    else
        object = sl_toml_read(text, length < 0 ? 0 : (size_t)length, source, lines);
    free(text);
    return object;
}

/* Return the options of a file, and for TOML the lines that they are on; NULL on an error. */
static json_t *read_object(const char *path, json_t **lines)
{
    const bool toml = is_toml(path);
    FILE *file = fopen(path, "r");
    *lines = NULL;
    if (!file) {
        sl_error(SL_ERR_DATA, "--config %s: %s (%s)", path, strerror(errno),
                 toml ? expected_toml : expected_json);
        return NULL;
    }
    json_t *object = toml ? read_toml(path, file, lines) : read_json(path, file);
    fclose(file);
    return object;
}

/* Sets options one by one, so that an error names the line. */
static int set_by_lines(struct sl_config *config, const json_t *options, const json_t *lines,
                        const bool *skip)
{
    const char *name;
    json_t *value;
    int code = 0;
    json_object_foreach((json_t *)options, name, value)
    {
        char source[PATH_MAX + 32];
        json_t *option = json_pack("{sO}", name, value);
        snprintf(source, sizeof source, "%s, line %" JSON_INTEGER_FORMAT, config->files.config,
                 json_integer_value(json_object_get(lines, name)));
        code = sl_options_from_json(sl_config_options, config, option, skip, source);
        json_decref(option);
        if (code)
            break;
    }
    return code;
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
    return strcmp(option, "preset") == 0 || (preset && sl_defaults_sets(config, option)) ||
           (rounds && strcmp(option, "epochs") == 0) || (epochs && strcmp(option, "rounds") == 0);
}

/* Exact last epochs of a run that has no others, since its distribution turned out exact. */
static void drop_exact_epochs(struct sl_config *config, const bool *typed, bool *given)
{
    if (config->ranks.allow_inexact || config->ranks.delay != SL_DELAY_EXACT ||
        sl_config_is_given(typed, "exact-epochs"))
        return;
    for (int o = 0; sl_config_options[o].name; o++)
        given[o] = given[o] && strcmp(sl_config_options[o].name, "exact-epochs") != 0;
    config->ranks.exact_epochs = -1;
}

/* Programs without the option computed all rows. An option of the command line may be for all
 * rows. */
static void settle_rows(struct sl_config *config, const bool *typed, const json_t *log)
{
    const bool all = !json_object_get(log, "rows") ||
                     (config->steps.rows == SL_ROWS_NEEDED && sl_config_check_batches(config));
    if (all && !sl_config_is_given(typed, "rows"))
        config->steps.rows = SL_ROWS_ALL;
}

static int take_options(struct sl_config *config, const json_t *file, const json_t *log,
                        const json_t *lines, bool *given)
{
    bool skip[SL_MOST_OPTIONS], typed[SL_MOST_OPTIONS] = {false};
    const json_t *options = log ? log : file;
    if (!log && json_object_get(file, "config"))
        return sl_error(SL_ERR_DATA,
                        "--config %s: config is of the command line alone (expected "
                        "other options)",
                        config->files.config);
    for (int o = 0; sl_config_options[o].name; o++) {
        const struct sl_option *option = &sl_config_options[o];
        typed[o] = given[o];
        skip[o] = sl_config_is_given_either(given, option->name) ||
                  strcmp(option->name, "config") == 0 || (log && sl_config_is_file(option));
    }
    for (int o = 0; log && sl_config_options[o].name; o++)
        skip[o] = skip[o] || follows(config, typed, sl_config_options[o].name, log);
    if (lines
            ? set_by_lines(config, options, lines, skip)
            : sl_options_from_json(sl_config_options, config, options, skip, config->files.config))
        return SL_ERR_DATA;
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
    if (log)
        settle_rows(config, typed, log);
    return 0;
}

int sl_config_read_file(struct sl_config *config, bool *given)
{
    int code = sl_config_pair_names(config, given);
    if (code || !config->files.config)
        return code;
    json_t *lines, *file = read_object(config->files.config, &lines);
    if (!file)
        return SL_ERR_DATA;
    const json_t *log = is_log(file) ? json_object_get(file, "configuration") : NULL;
    code = take_options(config, file, log, lines, given);
    if (!code && !log) /* a log has the values of both names */
        code = sl_config_pair_names(config, given);
    json_decref(file);
    json_decref(lines);
    return code;
}
