/* --config: options out of a file. */
#include <string.h>

#include <jansson.h>

#include "core/error.h"
#include "train/config.h"

/* An object; or the first line of a log, in front of others. */
static json_t *read_object(const char *path)
{
    json_error_t error;
    json_t *object = json_load_file(path, JSON_DISABLE_EOF_CHECK, &error);
    const char *event = json_string_value(json_object_get(object, "event"));
    if (object && !(event && strcmp(event, "start") == 0)) {
        json_decref(object);
        object = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    }
    if (json_is_object(object))
        return object;
    if (object || error.line < 0)
        sl_error(SL_ERR_USAGE, "--config %s: %s (expected a JSON object of options, or a log)",
                 path, object ? "another JSON value" : error.text);
    else
        sl_error(SL_ERR_USAGE,
                 "--config %s, line %d: %s (expected a JSON object of options, or a log)", path,
                 error.line, error.text);
    json_decref(object);
    return NULL;
}

int sl_config_read_file(struct sl_config *config, bool *given)
{
    bool skip[SL_MOST_OPTIONS];
    if (!config->config)
        return 0;
    json_t *file = read_object(config->config);
    if (!file)
        return SL_ERR_USAGE;
    json_t *configuration =
        json_object_get(file, "event") ? json_object_get(file, "configuration") : NULL;
    const json_t *options = configuration ? configuration : file;
    for (int o = 0; sl_config_options[o].name; o++) {
        const struct sl_option *option = &sl_config_options[o];
        skip[o] = given[o] || strcmp(option->name, "config") == 0 ||
                  (configuration && sl_config_is_file(option));
    }
    const int code = sl_options_from_json(sl_config_options, config, options, skip, config->config);
    for (int o = 0; !code && sl_config_options[o].name; o++) {
        const json_t *value = json_object_get(options, sl_config_options[o].name);
        given[o] = given[o] || (!skip[o] && value && !json_is_null(value));
    }
    if (!code && configuration)
        sl_config_forget_others(config, given);
    json_decref(file);
    return code ? SL_ERR_USAGE : 0;
}
