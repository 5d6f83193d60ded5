/* Options that some models have, and others lack. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "graphs/network.h"
#include "recipe/config.h"

enum { MODELS_OF_OPTION = 9 };

static const char OUT_HEADS[] = "out-heads", BLOCK_NORM[] = "block-norm",
                  NORM_LAYERS[] = "norm-layers", BLOCK_AGGREGATOR[] = "block-aggregator";

static const struct {
    const char *option;
    const struct sl_model_kind *model[MODELS_OF_OPTION]; /* NULL: none */
} of_models[] = {
    {"aggregator", {&sl_model_sage}},
    {"hops", {&sl_model_sgc, &sl_model_appnp}},
    {"bases", {&sl_model_rgcn}},
    {"teleport", {&sl_model_appnp}},
    {BLOCK_NORM, {&sl_model_resgcn}},
    {BLOCK_AGGREGATOR, {&sl_model_resgcn}},
    {"edge-features", {&sl_model_gat, &sl_model_gatv2, &sl_model_transformer, &sl_model_gine}},
    {"encoder",
     {&sl_model_gcn, &sl_model_sage, &sl_model_gat, &sl_model_gatv2, &sl_model_transformer,
      &sl_model_gin, &sl_model_gine, &sl_model_jknet, &sl_model_rgcn}},
    {"activation",
     {&sl_model_gcn, &sl_model_sage, &sl_model_gat, &sl_model_gatv2, &sl_model_transformer,
      &sl_model_gin, &sl_model_gine, &sl_model_jknet, &sl_model_rgcn}},
    {NORM_LAYERS,
     {&sl_model_gcn, &sl_model_sage, &sl_model_gat, &sl_model_gatv2, &sl_model_transformer,
      &sl_model_gin, &sl_model_gine, &sl_model_jknet, &sl_model_rgcn}},
    {"residual",
     {&sl_model_gcn, &sl_model_sage, &sl_model_gat, &sl_model_gatv2, &sl_model_transformer,
      &sl_model_jknet, &sl_model_rgcn}},
    {"jump",
     {&sl_model_gcn, &sl_model_sage, &sl_model_gat, &sl_model_gatv2, &sl_model_transformer,
      &sl_model_rgcn}},
    {"classifier",
     {&sl_model_gcn, &sl_model_sage, &sl_model_gat, &sl_model_gatv2, &sl_model_transformer,
      &sl_model_rgcn}},
    {"heads", {&sl_model_gat, &sl_model_gatv2, &sl_model_transformer}},
    {OUT_HEADS, {&sl_model_gat, &sl_model_gatv2, &sl_model_transformer}},
    {"attention-dropout", {&sl_model_gat, &sl_model_gatv2, &sl_model_transformer}},
};

/* Whether the model has the option of row k. */
static bool has_row(const struct sl_config *config, size_t k)
{
    bool has = false;
    for (int m = 0; m < MODELS_OF_OPTION; m++)
        has = has || config->network.model == of_models[k].model[m];
    return has;
}

bool sl_config_has(const struct sl_config *config, const char *option)
{
    for (size_t k = 0; k < sizeof of_models / sizeof *of_models; k++)
        if (strcmp(of_models[k].option, option) == 0)
            return has_row(config, k);
    return true;
}

bool sl_config_encodes(const struct sl_config *config)
{
    return sl_config_has(config, "encoder") && config->network.encoder == SL_ENCODER_LINEAR;
}

enum sl_residual sl_config_residual(const struct sl_config *config)
{
    return sl_config_has(config, "residual") ? config->network.residual : SL_RESIDUAL_NONE;
}

enum sl_jump sl_config_jump(const struct sl_config *config)
{
    return sl_config_has(config, "jump") ? config->network.jump : SL_JUMP_NONE;
}

const struct sl_layer_kind *sl_config_decoder_layer(const struct sl_config *config)
{
    return !sl_config_links(config)                       ? NULL
           : config->links.decoder == SL_DECODER_DISTMULT ? &sl_layer_distmult
           : config->links.decoder == SL_DECODER_MLP      ? &sl_layer_link_mlp
                                                          : NULL;
}

bool sl_config_classifies(const struct sl_config *config)
{
    return (sl_config_has(config, "classifier") &&
            (config->network.classifier == SL_CLASSIFIER_LINEAR ||
             (sl_config_links(config) && config->links.decoder == SL_DECODER_MLP))) ||
           sl_config_jump(config);
}

/* Write the models of row k, as "gcn, sage or gat". */
static void describe_models(size_t k, char *to, size_t size)
{
    size_t length = 0;
    to[0] = '\0';
    for (int m = 0; m < MODELS_OF_OPTION && of_models[k].model[m] && length < size; m++) {
        const bool last = m == MODELS_OF_OPTION - 1 || !of_models[k].model[m + 1];
        length += (size_t)snprintf(to + length, size - length, "%s%s",
                                   m == 0 ? ""
                                   : last ? " or "
                                          : ", ",
                                   of_models[k].model[m]->name);
    }
}

/* Options with two names: one for resgcn's blocks, one for the layers of other models. */
static const struct {
    const char *block, *layers;
} pairs[] = {{BLOCK_NORM, NORM_LAYERS}, {BLOCK_AGGREGATOR, "aggregator"}};

/* Return the other name of an option; NULL: it has one name. */
static const char *other_name(const char *option)
{
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
        if (strcmp(option, pairs[k].block) == 0 || strcmp(option, pairs[k].layers) == 0)
            return strcmp(option, pairs[k].block) == 0 ? pairs[k].layers : pairs[k].block;
    return NULL;
}

/* Return the values that an option takes, "a|b|…". */
static const char *values_of(const char *option)
{
    int o = 0;
    while (strcmp(sl_config_options[o].name, option) != 0)
        o++;
    return sl_config_options[o].choices;
}

bool sl_config_is_given_either(const bool *given, const char *option)
{
    const char *other = other_name(option);
    return sl_config_is_given(given, option) || (other && sl_config_is_given(given, other));
}

int sl_config_pair_names(struct sl_config *config, const bool *given)
{
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        const bool blocks = sl_config_is_given(given, pairs[k].block),
                   layers = sl_config_is_given(given, pairs[k].layers);
        const char *name = blocks ? pairs[k].block : pairs[k].layers, *other = other_name(name);
        const struct sl_word value = sl_config_word(config, name),
                             second = sl_config_word(config, other);
        if (blocks && layers && strcmp(value.text, second.text) != 0)
            return sl_error(SL_ERR_USAGE,
                            "--%s %s: --%s is %s, and both name one option (expected one of them)",
                            name, value.text, other, second.text);
        if (blocks != layers)
            (void)sl_options_set(sl_config_options, config, other, value.text);
    }
    return 0;
}

/* Return whether the option of row k and its other name have one value. */
static bool has_pair(const struct sl_config *config, const char *other, size_t k)
{
    return strcmp(sl_config_word(config, other).text,
                  sl_config_word(config, of_models[k].option).text) == 0;
}

int sl_config_check_given(const struct sl_config *config, const bool *given)
{
    char models[64];
    if (sl_config_classifies(config) && sl_config_is_given(given, OUT_HEADS))
        return sl_error(SL_ERR_USAGE,
                        "--out-heads: with --classifier or --jump the last layer has no heads "
                        "(expected one of both)");
    for (size_t k = 0; k < sizeof of_models / sizeof *of_models; k++) {
        const char *other = other_name(of_models[k].option);
        if (!sl_config_is_given(given, of_models[k].option) || has_row(config, k))
            continue;
        if (other && sl_config_has(config, other)) {
            if (has_pair(config, other, k))
                continue;
            return sl_error(SL_ERR_USAGE, "--%s %s: --model %s does not have it (expected %s)",
                            of_models[k].option, sl_config_word(config, of_models[k].option).text,
                            config->network.model->name, values_of(other));
        }
        describe_models(k, models, sizeof models);
        return sl_error(SL_ERR_USAGE, "--%s: --model %s does not have it (expected --model %s)",
                        of_models[k].option, config->network.model->name, models);
    }
    return 0;
}

void sl_config_forget_others(const struct sl_config *config, bool *given)
{
    for (size_t k = 0; k < sizeof of_models / sizeof *of_models; k++) {
        const bool headless =
            strcmp(of_models[k].option, OUT_HEADS) == 0 && sl_config_classifies(config);
        for (int o = 0; sl_config_options[o].name; o++)
            if (strcmp(sl_config_options[o].name, of_models[k].option) == 0 &&
                (headless || !has_row(config, k)))
                given[o] = false;
    }
}
