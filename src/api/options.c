/* Options, by their names in the table. */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "core/error.h"

static int make_defaults(struct sl_config *config)
{
    const int code = sl_config_defaults(config);
    config->files.quiet = true;
    return code;
}

int starling_options_create(starling_options **options)
{
    *options = calloc(1, sizeof **options);
    if (!*options)
        return sl_error(SL_ERR_SYSTEM, "no memory for options");
    const int code = make_defaults(&(*options)->config);
    if (code) {
        starling_options_free(*options);
        *options = NULL;
    }
    return code;
}

static int refuse(const char *name)
{
    return sl_error(SL_ERR_USAGE, "--%s: is an option of the program, not of the library", name);
}

/* Refuse an option that prints a table or a picture, or that looks at the first run of a process.
 */
static int check_library(const char *name)
{
    static const char *const others[] = {"plan",         "profile", "dag",   "trace",
                                         "trace-epochs", "report",  "verify"};
    for (size_t o = 0; o < sizeof others / sizeof *others; o++)
        if (strcmp(name, others[o]) == 0)
            return refuse(name);
    return 0;
}

int sl_api_check(const struct sl_config *config)
{
    const char *name = config->files.plan      ? "plan"
                       : config->files.profile ? "profile"
                       : config->files.dag     ? "dag"
                       : config->files.trace   ? "trace"
                       : config->files.report  ? "report"
                       : config->files.verify  ? "verify"
                                               : NULL;
    return name ? refuse(name) : 0;
}

int starling_options_set(starling_options *options, const char *name, const char *value)
{
    if (!name || !value)
        return sl_error(SL_ERR_USAGE, "an option: name or value is NULL");
    int code = check_library(name);
    if (!code)
        code = sl_options_set(sl_config_options, &options->config, name, value);
    for (int o = 0; !code && sl_config_options[o].name; o++)
        if (strcmp(sl_config_options[o].name, name) == 0)
            code = sl_config_set_text(&options->text[o], value);
    return code;
}

void starling_options_free(starling_options *options)
{
    if (!options)
        return;
    for (int o = 0; o < SL_MOST_OPTIONS; o++)
        free(options->text[o]);
    sl_options_free(sl_config_options, &options->config);
    free(options);
}

int sl_api_configure(const struct starling_options *options, struct sl_config *config, bool *given)
{
    int code = make_defaults(config);
    for (int o = 0; sl_config_options[o].name; o++) {
        given[o] = options && options->text[o];
        if (!code && given[o])
            code = sl_options_set(sl_config_options, config, sl_config_options[o].name,
                                  options->text[o]);
    }
    return code;
}

bool sl_api_silent(const struct sl_config *config, const bool *given)
{
    for (int o = 0; sl_config_options[o].name; o++)
        if (given[o] && strcmp(sl_config_options[o].name, "quiet") == 0)
            return config->files.quiet;
    return false;
}
