#include "recipe/defaults.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "assembly/operands.h"
#include "codelets/attention.h"
#include "core/error.h"
#include "core/log.h"
#include "core/rates.h"
#include "data/aggregated.h"
#include "data/columns.h"
#include "data/feature_form.h"
#include "graphs/cost.h"
#include "recipe/batches_options.h"
#include "recipe/link_options.h"

static const char PATIENCE[] = "50", MOST_EPOCHS[] = "500", LONG_PATIENCE[] = "100",
                  LONG_MOST_EPOCHS[] = "1000";
enum { LEAST_VALIDATION = 100 }; /* vertices: with fewer, accuracy is too coarse to stop by */

/* Options that a preset sets, for one model or, with NULL, for all that it takes. kipf: Kipf &
 * Welling, Semi-Supervised Classification with Graph Convolutional Networks, ICLR 2017,
 * section 5.2, with biases. strong: Luo, Shi & Wu, Classic GNNs are Strong Baselines, NeurIPS 2024:
 * what the commands of its program have in common; most of them set layers, widths and rates for a
 * dataset. */
static const struct {
    enum sl_preset preset;
    const struct sl_model_kind *model;
    const char *option, *value;
} of_preset[] = {
    {SL_PRESET_KIPF, NULL, "layers", "2"},
    {SL_PRESET_KIPF, NULL, "hidden", "16"},
    {SL_PRESET_KIPF, NULL, "bias", "yes"},
    {SL_PRESET_KIPF, NULL, "norm", "sym"},
    {SL_PRESET_KIPF, NULL, "optimizer", "adam"},
    {SL_PRESET_KIPF, NULL, "lr", "0.01"},
    {SL_PRESET_KIPF, NULL, "dropout", "0.5"},
    {SL_PRESET_KIPF, NULL, "input-dropout", "-1"},
    {SL_PRESET_KIPF, NULL, "weight-decay", "5e-4"},
    {SL_PRESET_KIPF, NULL, "weight-decay-all", "no"},
    {SL_PRESET_KIPF, NULL, "epochs", "200"},
    {SL_PRESET_KIPF, NULL, "patience", "0"},
    {SL_PRESET_STRONG, NULL, "layers", "3"},
    {SL_PRESET_STRONG, NULL, "hidden", "256"},
    {SL_PRESET_STRONG, NULL, "bias", "yes"},
    {SL_PRESET_STRONG, NULL, "norm-layers", "row"},
    {SL_PRESET_STRONG, NULL, "classifier", "linear"},
    {SL_PRESET_STRONG, NULL, "activation", "relu"},
    {SL_PRESET_STRONG, NULL, "linear-init", "pytorch"},
    {SL_PRESET_STRONG, NULL, "optimizer", "adam"},
    {SL_PRESET_STRONG, NULL, "lr", "0.001"},
    {SL_PRESET_STRONG, NULL, "dropout", "0.5"},
    {SL_PRESET_STRONG, NULL, "input-dropout", "0"},
    {SL_PRESET_STRONG, NULL, "weight-decay", "5e-4"},
    {SL_PRESET_STRONG, NULL, "weight-decay-all", "yes"},
    {SL_PRESET_STRONG, NULL, "epochs", "1000"},
    {SL_PRESET_STRONG, NULL, "patience", "0"},
    {SL_PRESET_STRONG, &sl_model_gcn, "norm", "sym"},
    {SL_PRESET_STRONG, &sl_model_gcn, "residual", "linear"},
    {SL_PRESET_STRONG, &sl_model_gat, "residual", "linear"},
    {SL_PRESET_STRONG, &sl_model_gat, "heads", "1"},
    {SL_PRESET_STRONG, &sl_model_gat, "attention-dropout", "0"},
};

/* Models that a preset takes. */
static const struct {
    enum sl_preset preset;
    const struct sl_model_kind *model[3];
    const char *names;
} preset_models[] = {
    {SL_PRESET_KIPF, {&sl_model_gcn, &sl_model_sage}, "gcn or sage"},
    {SL_PRESET_STRONG, {&sl_model_gcn, &sl_model_sage, &sl_model_gat}, "gcn, sage or gat"},
};

/* Options that a model sets. gat: Velickovic et al., Graph Attention Networks, ICLR 2018, section
 * 3.3, transductive learning. There, training stops 100 epochs after the best, too, and rows of
 * features have a sum of 1. sgc, appnp: as published but for sgc's decay (docs/DEFAULTS.md). */
static const struct {
    const struct sl_model_kind *model;
    const char *option, *value;
} of_model[] = {
    {&sl_model_gat, "hidden", "8"},
    {&sl_model_gat, "dropout", "0.6"},
    {&sl_model_gat, "attention-dropout", "-1"},
    {&sl_model_gat, "lr", "0.005"},
    {&sl_model_gat, "weight-decay", "5e-4"},
    {&sl_model_gat, "weight-decay-all", "yes"},
    {&sl_model_gatv2, "hidden", "8"},
    {&sl_model_gatv2, "dropout", "0.6"},
    {&sl_model_gatv2, "attention-dropout", "-1"},
    {&sl_model_gatv2, "lr", "0.005"},
    {&sl_model_gatv2, "weight-decay", "5e-4"},
    {&sl_model_gatv2, "weight-decay-all", "yes"},
    {&sl_model_transformer, "hidden", "8"},
    {&sl_model_transformer, "dropout", "0.6"},
    {&sl_model_transformer, "attention-dropout", "-1"},
    {&sl_model_transformer, "lr", "0.005"},
    {&sl_model_transformer, "weight-decay", "5e-4"},
    {&sl_model_transformer, "weight-decay-all", "yes"},
    {&sl_model_transformer, "residual", "linear"},
    {&sl_model_resgcn, "layers", "4"},
    {&sl_model_resgcn, "dropout", "0.2"},
    {&sl_model_resgcn, "lr", "0.003"},
    {&sl_model_gine, "encoder", "linear"},
    {&sl_model_sgc, "dropout", "0"},
    {&sl_model_sgc, "lr", "0.2"},
    {&sl_model_appnp, "hops", "10"},
    {&sl_model_appnp, "weight-decay", "5e-3"},
};

/* Options that the task of links sets, whatever the model: no dropout and no decay, as in
 * PyG's example link_pred.py. */
static const struct {
    const char *option, *value;
} of_links[] = {{"dropout", "0"}, {"weight-decay", "0"}};

/* Whether a preset has published settings, which take the place of choices from the data. */
static bool is_published(const struct sl_config *config)
{
    return config->network.preset != SL_PRESET_DEFAULT;
}

static bool has_heads(const struct sl_config *config)
{
    return config->network.model->attention;
}

/* Losses of these models rest for long before they fall. */
static bool is_patient(const struct sl_config *config)
{
    return has_heads(config) || config->network.model == &sl_model_resgcn;
}

/* Rows of counts say which words there are, and not how many: long texts are no larger. The form of
 * the features, which the rates of a machine choose, has no say. */
static enum sl_feature_norm feature_norm(const struct sl_config *config,
                                         const struct sl_source *source)
{
    if (config->features.normalize_features != SL_FEATURE_NORM_AUTO)
        return config->features.normalize_features;
    if (source->features_dense.data && !source->columns.bag_of_words && !is_published(config) &&
        sl_columns_are_uneven(&source->change.scales))
        return SL_FEATURE_NORM_STANDARD;
    if (!source->columns.bag_of_words)
        return SL_FEATURE_NORM_NONE;
    return is_published(config) || has_heads(config) ? SL_FEATURE_NORM_L1 : SL_FEATURE_NORM_L2;
}

/* Whether row k of the presets is for this run. */
static bool is_set(const struct sl_config *config, size_t k)
{
    return config->network.preset == of_preset[k].preset &&
           (!of_preset[k].model || config->network.model == of_preset[k].model);
}

bool sl_defaults_sets(const struct sl_config *config, const char *option)
{
    for (size_t k = 0; k < sizeof of_preset / sizeof *of_preset; k++)
        if (is_set(config, k) && strcmp(of_preset[k].option, option) == 0)
            return true;
    return false;
}

/* Refuse a model that the preset does not take. */
static int check_preset(const struct sl_config *config)
{
    for (size_t p = 0; p < sizeof preset_models / sizeof *preset_models; p++) {
        bool takes = config->network.preset != preset_models[p].preset;
        for (int m = 0; m < 3; m++)
            takes = takes || config->network.model == preset_models[p].model[m];
        if (!takes)
            return sl_error(SL_ERR_USAGE, "--preset %s: expected --model %s with it",
                            sl_config_word(config, "preset").text, preset_models[p].names);
    }
    return 0;
}

int sl_defaults_preset(struct sl_config *config, const bool *given)
{
    if (config->files.resume && sl_config_is_given(given, "preset"))
        return sl_error(SL_ERR_USAGE,
                        "--preset %s: --resume takes all values from its checkpoint (expected one "
                        "of both)",
                        sl_config_word(config, "preset").text);
    int code = check_preset(config);
    for (size_t k = 0; !code && k < sizeof of_preset / sizeof *of_preset; k++)
        if (is_set(config, k) && !sl_config_is_given(given, of_preset[k].option))
            code =
                sl_options_set(sl_config_options, config, of_preset[k].option, of_preset[k].value);
    for (size_t k = 0; !config->files.resume && !code && k < sizeof of_model / sizeof *of_model;
         k++)
        if (config->network.model == of_model[k].model &&
            !sl_config_is_given(given, of_model[k].option) &&
            !sl_defaults_sets(config, of_model[k].option))
            code = sl_options_set(sl_config_options, config, of_model[k].option, of_model[k].value);
    for (size_t k = 0; k < sizeof of_links / sizeof *of_links; k++)
        if (sl_config_links(config) && !config->files.resume && !code &&
            !sl_config_is_given(given, of_links[k].option) &&
            !sl_defaults_sets(config, of_links[k].option))
            code = sl_options_set(sl_config_options, config, of_links[k].option, of_links[k].value);
    return code;
}

void sl_defaults_say(char *chosen, const char *option, const char *value)
{
    const size_t length = chosen ? strlen(chosen) : SL_CHOSEN;
    if (length < SL_CHOSEN)
        snprintf(chosen + length, SL_CHOSEN - length, " --%s%s%s", option, *value ? " " : "",
                 value);
}

static int choose(struct sl_config *config, const char *option, const char *value, char *chosen)
{
    sl_defaults_say(chosen, option, value);
    return sl_options_set(sl_config_options, config, option, value);
}

/* Â·X is made before the first epoch, and is denser than X: it must save this part of the first
 * layer's time. Rates differ that much between machines, too. */
static const double MOST_CACHED = 0.7;

/* The work of the first layer with sparse features, or with the identity. */
static struct sl_layer_work first_layer(const struct sl_config *config,
                                        const struct sl_source *source,
                                        const struct sl_rates *rates)
{
    const double n = (double)source->vertices, in = (double)source->features;
    const double nnz = (double)source->adjacency.indices.count + n;
    const double entries =
        source->feature_form == SL_FEATURES_CSR ? (double)source->features_csr.indices.count : n;
    const double aggregated = n * sl_aggregated_entries(source, NULL, source->vertices);
    const double bytes = (double)sl_type_size(sl_config_type(config));
    return (struct sl_layer_work){
        .rates = rates,
        .n = n,
        .nnz = nnz,
        .entries = entries,
        .aggregated =
            sl_operands_stay_sparse((int64_t)aggregated, source->vertices, source->features)
                ? aggregated
                : 0.0,
        .in = in,
        .out = (double)(config->network.layers > 1 || sl_config_classifies(config) ||
                                sl_config_encodes(config)
                            ? sl_config_hidden(config)
                            : source->classes),
        .weights = sl_config_encodes(config) ? 1.0 : sl_config_layer(config)->weights.count,
        .kept = 1.0,
        .bytes = bytes,
        .back = {bytes, bytes},
        .first = true,
    };
}

/* Whether Â·X of sparse features, made once, takes less of an epoch than an aggregation in each: by
 * usual rates, so that all ranks agree. */
static bool cache_pays(const struct sl_config *config, const struct sl_source *source)
{
    const struct sl_layer_work work = first_layer(config, source, &sl_rates_usual);
    const double seconds = sl_cost_layer(&work, SL_AGGREGATED);
    return seconds <= MOST_CACHED * sl_cost_layer(&work, SL_GEMM_FIRST) &&
           seconds <= MOST_CACHED * sl_cost_layer(&work, SL_SPMM_FIRST);
}

/* ---- The form of the features ---- */

/* The seconds of the first layer in an epoch, with its best order of products; Â·X may be made once
 * with `cached`. */
static double form_seconds(const struct sl_config *config, const struct sl_layer_work *work,
                           double (*seconds)(const struct sl_layer_work *, enum sl_product_order),
                           bool cached)
{
    const int wanted = sl_config_product_order(config);
    const double gemm = seconds(work, SL_GEMM_FIRST), spmm = seconds(work, SL_SPMM_FIRST);
    double least = wanted == SL_GEMM_FIRST   ? gemm
                   : wanted == SL_SPMM_FIRST ? spmm
                                             : fmin(gemm, spmm);
    if (sl_config_begins_alone(config))
        return gemm - sl_rates_spmm_seconds(work->rates, work->nnz, work->n,
                                            work->bytes * work->out, work->n);
    return cached ? fmin(least, seconds(work, SL_AGGREGATED) / MOST_CACHED) : least;
}

/* Dense features take more memory, and must save this part of the time. Rates of machines that were
 * not measured differ as much. */
static const double MOST_DENSE = 0.9;

static enum sl_feature_form choose_form(const struct sl_config *config,
                                        const struct sl_source *source,
                                        const struct sl_rates *rates)
{
    struct sl_layer_work work = first_layer(config, source, rates);
    const bool cached = sl_config_aggregates(config);
    work.kept = 1.0 - sl_config_input_dropout(config);
    return form_seconds(config, &work, sl_cost_dense_layer, cached) <
                   MOST_DENSE * form_seconds(config, &work, sl_cost_layer,
                                             cached && cache_pays(config, source))
               ? SL_FEATURES_DENSE
               : SL_FEATURES_CSR;
}

int sl_defaults_form(struct sl_runtime *rt, struct sl_source *source, const struct sl_rates *core,
                     struct sl_config *config)
{
    struct sl_rates rates = *core;
    const bool standard = feature_norm(config, source) == SL_FEATURE_NORM_STANDARD;
    if (source->feature_form == SL_FEATURES_IDENTITY)
        return 0;
    if (standard && config->features.feature_form == SL_FORM_CSR)
        return sl_error(
            SL_ERR_USAGE,
            "--feature-form csr: columns of %s have scales over tenfold apart, and lose "
            "their zeros as they are standardised (expected --feature-form dense, or "
            "--normalize-features none)",
            source->path);
    if (standard && source->change.projection.columns > 0)
        return sl_error(SL_ERR_USAGE,
                        "--project-features: columns of %s have scales over tenfold apart, and are "
                        "mixed before they could be standardised (expected --normalize-features "
                        "none, l1 or l2)",
                        source->path);
    sl_runtime_broadcast(rt, 0, &rates, sizeof rates);
    if (config->features.feature_form == SL_FORM_AUTO) {
        const bool dense = source->feature_form == SL_FEATURES_DENSE || standard ||
                           choose_form(config, source, &rates) == SL_FEATURES_DENSE;
        config->features.feature_form = dense ? SL_FORM_DENSE : SL_FORM_CSR;
    }
    return sl_features_set_form(rt, source,
                                config->features.feature_form == SL_FORM_DENSE ? SL_FEATURES_DENSE
                                                                               : SL_FEATURES_CSR);
}

static const struct sl_loss *loss_of(const struct sl_source *source)
{
    return source->targets.label_kind == SL_LABELS_SEVERAL   ? &sl_loss_sigmoid
           : source->targets.label_kind == SL_LABELS_NUMBERS ? &sl_loss_mse
                                                             : &sl_loss_softmax;
}

/* Cross-entropy is not worth telling. */
static void settle_loss(struct sl_config *config, const struct sl_source *source, char *chosen)
{
    if (config->training.loss)
        return;
    if (sl_config_links(config)) {
        config->training.loss = sl_config_objective(config).loss;
        return;
    }
    sl_labels_note_numbers(source->targets.labels.name, &source->targets.whole_numbers);
    config->training.loss = loss_of(source);
    if (config->training.loss != &sl_loss_softmax)
        sl_defaults_say(chosen, "loss", config->training.loss->name);
}

/* Epochs of work in --rounds rounds. */
static int settle_rounds(struct sl_config *config, bool epochs, char *chosen)
{
    char text[32];
    if (epochs)
        return sl_error(SL_ERR_USAGE, "--rounds %lld: expected no --epochs with it",
                        (long long)config->units.rounds);
    const struct sl_batches_options options = sl_config_batches(config);
    const int64_t steps = sl_batches_options_steps(&options);
    const int64_t local = (config->units.rounds * config->units.local_steps + steps - 1) / steps;
    snprintf(text, sizeof text, "%lld", (long long)(local * config->units.submodels));
    return choose(config, "epochs", text, chosen);
}

/* Whether the last epochs are others than those before, so that a run must not end early. */
static bool ends_exactly(const struct sl_config *config)
{
    return config->ranks.allow_inexact || sl_config_exact_epochs(config) > 0;
}

static int settle_keep(struct sl_config *config, const struct sl_source *source)
{
    const bool split = sl_links_split_size(config, source, SL_SPLIT_VAL) > 0,
               best = split && sl_config_evaluates(config) && !sl_config_is_ensemble(config);
    if (config->training.keep == SL_KEEP_BEST && !split)
        return sl_error(
            SL_ERR_USAGE, "--keep best: %s has no validation split (expected --keep last, or %s)",
            source->path, sl_config_links(config) ? "--split-edges 85/5/10" : "--split 60/20/20");
    if (config->training.keep != SL_KEEP_AUTO)
        return 0;
    if (config->files.resume && !best && !sl_config_is_ensemble(config))
        sl_note("--resume %s: %s, so the last weights are kept", config->files.resume,
                split ? "--eval-every -1 measures none" : "there is no validation split");
    config->training.keep = best ? SL_KEEP_BEST : SL_KEEP_LAST;
    return 0;
}

bool sl_defaults_may_cache(const struct sl_config *config, const bool *given)
{
    return !config->files.resume && !config->features.cache_aggregate &&
           !sl_config_is_given(given, "cache-aggregate");
}

int sl_defaults_settle(struct sl_config *config, const struct sl_source *source, const bool *given,
                       char *chosen)
{
    const bool epochs = sl_config_is_given(given, "epochs");
    if (sl_config_out_heads(config) * source->classes > SL_ATTENTION_COLUMNS)
        return sl_error(
            SL_ERR_USAGE, "--out-heads %lld of %lld classes: expected at most %d columns together",
            (long long)config->network.out_heads, (long long)source->classes, SL_ATTENTION_COLUMNS);
    if (chosen)
        chosen[0] = '\0';
    settle_loss(config, source, chosen);
    int code = settle_keep(config, source);
    if (config->files.resume)
        return code;
    if (!code && config->units.rounds > 0)
        code = settle_rounds(config, epochs, chosen);
    if (config->training.patience < 0 &&
        (epochs || ends_exactly(config) || sl_config_is_ensemble(config) ||
         sl_links_split_size(config, source, SL_SPLIT_VAL) < LEAST_VALIDATION))
        config->training.patience = 0;
    if (!code && config->training.patience < 0)
        code = choose(config, "patience", is_patient(config) ? LONG_PATIENCE : PATIENCE, chosen);
    if (!code && config->training.patience > 0 && !epochs && !is_published(config) &&
        config->units.rounds == 0)
        code =
            choose(config, "epochs", is_patient(config) ? LONG_MOST_EPOCHS : MOST_EPOCHS, chosen);
    if (!code && source->feature_form == SL_FEATURES_IDENTITY && !is_published(config) &&
        !sl_config_is_given(given, "bias")) {
        sl_defaults_say(chosen, "no-bias", "");
        config->network.bias = false;
    }
    if (!code && source->targets.label_kind == SL_LABELS_SEVERAL && !is_published(config) &&
        !sl_config_is_given(given, "weight-decay"))
        code = choose(config, "weight-decay", "0", chosen); /* gradients are means over labels */
    if (!code && config->features.normalize_features == SL_FEATURE_NORM_AUTO) {
        config->features.normalize_features = feature_norm(config, source);
        sl_defaults_say(chosen, "normalize-features",
                        sl_config_word(config, "normalize-features").text);
    }
    if (!code && !sl_config_is_given(given, "cache-aggregate") && sl_config_aggregates(config) &&
        source->feature_form != SL_FEATURES_DENSE && !cache_pays(config, source))
        config->features.cache_aggregate = false;
    return code;
}
