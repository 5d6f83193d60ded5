#include "run/checkpoint_program.h"

#include "checkpoint/meaning.h"
#include "core/error.h"
#include "core/json_file.h"

static const char KEY[] = "forward";

/* Return why training stored no program; NULL: it stored one, or says nothing. */
static const char *refusal(const struct sl_checkpoint *checkpoint)
{
    return json_string_value(
        json_object_get(json_object_get(checkpoint->description, KEY), "refused"));
}

int sl_checkpoint_configuration(const struct sl_checkpoint *checkpoint, const char *name,
                                struct sl_config *config)
{
    bool skip[SL_MOST_OPTIONS];
    for (int o = 0; sl_config_options[o].name; o++)
        skip[o] = sl_config_is_execution(&sl_config_options[o]);
    int code = sl_config_defaults(config);
    if (!code)
        code = sl_options_from_json(sl_config_options, config,
                                    json_object_get(checkpoint->description, "configuration"), skip,
                                    name);
    return code;
}

/* Set *config to the checkpoint's configuration, with what the model reads of edges. */
static int configure(const struct sl_checkpoint *checkpoint, const char *name,
                     struct sl_config *config)
{
    const json_t *dataset = json_object_get(checkpoint->description, "dataset");
    const int code = sl_checkpoint_configuration(checkpoint, name, config);
    config->edge_features = sl_meaning_edges(dataset);
    config->relations = sl_meaning_relations(dataset);
    return code;
}

/* Make the program from the configuration. */
static int make(const struct sl_checkpoint *checkpoint, const char *name,
                struct sl_program *program)
{
    const struct sl_forward_data data =
        sl_meaning_forward(json_object_get(checkpoint->description, "dataset"));
    struct sl_config config = {0};
    int code = configure(checkpoint, name, &config);
    if (!code && (data.features < 1 || data.classes < 1))
        code =
            sl_error(SL_ERR_DATA, "%s: the checkpoint does not say its features and classes", name);
    if (!code)
        code = sl_config_forward(&config, &data, program);
    sl_options_free(sl_config_options, &config);
    return code;
}

int sl_checkpoint_program(const struct sl_checkpoint *checkpoint, const char *name,
                          struct sl_program *program)
{
    const json_t *forward = json_object_get(checkpoint->description, KEY);
    const char *refused = refusal(checkpoint);
    *program = (struct sl_program){0};
    if (forward && !refused)
        return sl_program_from_json(forward, name, program);
    const int code = make(checkpoint, name, program);
    return code && code != SL_ERR_SYSTEM && refused
               ? sl_error(SL_ERR_USAGE, "%s: %s", name, refused)
               : code;
}

json_t *sl_checkpoint_describe_program(const struct sl_checkpoint *checkpoint, const char *name)
{
    const struct sl_forward_data data =
        sl_meaning_forward(json_object_get(checkpoint->description, "dataset"));
    const long failures = sl_json_failures();
    struct sl_config config = {0};
    if (json_object_get(checkpoint->description, KEY) && !refusal(checkpoint))
        return json_incref(checkpoint->description);
    const int code = configure(checkpoint, name, &config);
    json_t *forward = code ? NULL : sl_config_describe_forward(&config, &data),
           *copy = forward ? json_copy(checkpoint->description) : NULL;
    sl_options_free(sl_config_options, &config);
    if (code)
        return json_incref(checkpoint->description);
    if (json_object_set_new(copy, KEY, forward) == 0 && sl_json_failures() == failures)
        return copy;
    json_decref(copy);
    sl_error(SL_ERR_SYSTEM, "%s: no memory for its description", name);
    return NULL;
}
