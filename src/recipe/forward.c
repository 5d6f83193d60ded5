#include "recipe/forward.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "graphs/forward.h"
#include "graphs/loss.h"
#include "recipe/link_options.h"

static enum sl_step_norm norm_of(const struct sl_config *config)
{
    static const enum sl_step_norm norms[] = {[SL_NORM_SYM] = SL_STEP_NORM_SYM,
                                              [SL_NORM_ROW] = SL_STEP_NORM_ROW,
                                              [SL_NORM_COUNT] = SL_STEP_NORM_COUNT,
                                              [SL_NORM_NONE] = SL_STEP_NORM_NONE};
    return norms[sl_config_norm(config)];
}

static enum sl_program_output output_of(const struct sl_config *config)
{
    const struct sl_loss *loss = sl_config_objective(config).loss;
    return sl_config_links(config)         ? SL_OUTPUT_EMBEDDINGS
           : loss->form == SL_TARGET_CLASS ? SL_OUTPUT_CLASSES
           : loss->classes                 ? SL_OUTPUT_LABELS
                                           : SL_OUTPUT_NUMBERS;
}

/* Refuse models that are not one network on the stored features. */
static int check(const struct sl_config *config)
{
    if (sl_config_is_ensemble(config))
        return sl_error(SL_ERR_USAGE, "--share none: the checkpoint has an ensemble (expected one "
                                      "model)");
    if (config->features.project_features > 0)
        return sl_error(SL_ERR_USAGE,
                        "--project-features %lld: the model reads features that Starling projects "
                        "(expected a model of the features themselves)",
                        (long long)config->features.project_features);
    return 0;
}

/* Append what the model does to features before its first layer. Return the value. */
static int prepare(const struct sl_config *config, struct sl_program *program)
{
    const enum sl_row_norm rows = sl_config_row_norm(config);
    int value = 0;
    if (sl_config_standardizes(config))
        value = sl_program_add(program, &(struct sl_step){.kind = SL_STEP_STANDARDIZE});
    if (rows != SL_ROW_NORM_NONE && !program->identity)
        value = sl_program_add(program, &(struct sl_step){.kind = SL_STEP_UNIT_ROWS,
                                                          .of = {value},
                                                          .unit = rows == SL_ROW_NORM_L1 ? 1 : 2});
    return value;
}

int sl_config_forward(const struct sl_config *config, const struct sl_forward_data *data,
                      struct sl_program *program)
{
    const struct sl_model_shape shape = sl_config_shape(config, data->features, data->classes);
    struct sl_layer_list list = {0};
    *program = (struct sl_program){.features = data->features,
                                   .outputs = data->classes,
                                   .output = output_of(config),
                                   .identity = data->identity,
                                   .edge_features = config->edge_features,
                                   .relations = config->relations};
    snprintf(program->model, sizeof program->model, "%s", config->network.model->name);
    int code = check(config);
    if (code)
        return code;
    sl_model_list(&shape, &list);
    if (list.failed)
        code = sl_error(SL_ERR_SYSTEM, "no memory for a list of layers");
    else
        code = sl_forward_layers(program, norm_of(config), prepare(config, program), &list);
    free(list.layer);
    return code;
}

json_t *sl_config_describe_forward(const struct sl_config *config,
                                   const struct sl_forward_data *data)
{
    struct sl_program program;
    const int code = sl_config_forward(config, data, &program);
    json_t *forward = code == 0              ? sl_program_to_json(&program)
                      : code == SL_ERR_USAGE ? json_pack("{s:s}", "refused", sl_error_message())
                                             : NULL;
    sl_program_free(&program);
    return forward;
}
