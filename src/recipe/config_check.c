/* Checks of options that depend on one another, which no single row of the table can check. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/attention.h"
#include "codelets/instructions.h"
#include "core/error.h"
#include "data/partition/parts.h"
#include "graphs/vertex_cut.h"
#include "recipe/batches_options.h"
#include "recipe/config.h"
#include "recipe/link_options.h"

int sl_config_check_delay(const struct sl_config *config)
{
    const struct sl_model_kind *model = config->network.model;
    if ((sl_config_reducer(config)->outputs > 1 || model->reducer) && config->ranks.delay > 0)
        return sl_error(SL_ERR_USAGE,
                        "--delay %s: --%s %s has no gradient of a neighbour that was met some "
                        "epochs ago (expected cd-0 or 0c)",
                        sl_config_text(config, "delay").text,
                        model->reducer ? "model" : "aggregator",
                        model->reducer ? model->name : config->network.aggregator->name);
    return 0;
}

static bool is_auto(const struct sl_config *config)
{
    return !config->ranks.distribution && config->ranks.grid.rows == 0 &&
           !config->ranks.replication;
}

static int check_vertex_cut(const struct sl_config *config)
{
    if (sl_config_check_delay(config))
        return SL_ERR_USAGE;
    if (config->ranks.allow_inexact && !is_auto(config))
        return sl_error(SL_ERR_USAGE, "--allow-inexact: expected --distribution auto with it");
    if (config->ranks.exact_epochs > 0 && !config->ranks.allow_inexact &&
        config->ranks.delay == SL_DELAY_EXACT)
        return sl_error(SL_ERR_USAGE,
                        "--exact-epochs %lld: expected --delay cd-R or 0c with it, or "
                        "--allow-inexact: with cd-0 all epochs are exact",
                        (long long)config->ranks.exact_epochs);
    if (!sl_config_kind(config)->clones) {
        if (config->ranks.delay != SL_DELAY_EXACT && !config->ranks.allow_inexact &&
            !config->steps.groups.given)
            return sl_error(SL_ERR_USAGE, "--delay %s: expected --distribution vertex-cut with it",
                            sl_config_text(config, "delay").text);
        if (config->ranks.partial_sums != SL_PARTIAL_SUMS_SCALED && !config->ranks.allow_inexact)
            return sl_error(SL_ERR_USAGE,
                            "--partial-sums %s: expected --distribution vertex-cut with it",
                            sl_config_word(config, "partial-sums").text);
        return 0;
    }
    if (config->ranks.order && !sl_order_is_none(config->ranks.order))
        return sl_error(SL_ERR_USAGE,
                        "--order %s: a vertex-cut takes vertices as the dataset has them (expected "
                        "none; starling convert --order stores another order)",
                        config->ranks.order->name);
    return 0;
}

static bool is_probability(double p)
{
    return p >= 0.0 || p == -1.0;
}

static int check_recompute(const struct sl_config *config)
{
    if (config->machine.recompute > 0 && !config->network.model->recomputes)
        return sl_error(SL_ERR_USAGE, "--recompute %d: --model %s has no blocks (expected resgcn)",
                        config->machine.recompute, config->network.model->name);
    if (config->machine.recompute > 1 && config->ranks.delay > 0)
        return sl_error(SL_ERR_USAGE,
                        "--recompute %d: with --delay %s, sums are not the same a second time "
                        "(expected cd-0, 0c or --recompute 1)",
                        config->machine.recompute, sl_config_text(config, "delay").text);
    return 0;
}

/* The states of a program's reducer are float32, and so are those of GINE. */
static int check_reducer(const struct sl_config *config)
{
    if (config->network.model->reducer && sl_config_type(config) != SL_FLOAT32)
        return sl_error(SL_ERR_USAGE,
                        "--precision %s: --model %s has float32 alone (expected fp32 or tf32)",
                        sl_config_word(config, "precision").text, config->network.model->name);
    if (!sl_config_reducer(config)->own || sl_config_type(config) == SL_FLOAT32)
        return 0;
    return sl_error(SL_ERR_USAGE,
                    "--precision %s: --aggregator %s has float32 alone (expected fp32 or tf32)",
                    sl_config_word(config, "precision").text, config->network.aggregator->name);
}

/* Refuse options that attention is not defined with. */
int sl_config_check_attention(const struct sl_config *config)
{
    if (!config->network.model->attention)
        return 0;
    if (sl_config_residual(config) == SL_RESIDUAL_LINEAR && sl_config_out_heads(config) > 1)
        return sl_error(
            SL_ERR_USAGE,
            "--out-heads %lld: the last layer of --model %s is the mean of these heads, "
            "to which --residual linear adds nothing (expected --out-heads 1, --residual "
            "none, --classifier linear or --jump concat)",
            (long long)sl_config_out_heads(config), config->network.model->name);
    if (config->network.model->attention->again && config->ranks.delay > 0 &&
        sl_config_kind(config)->clones)
        return sl_error(SL_ERR_USAGE,
                        "--delay %s: --model %s goes back over edges twice, after clones have met "
                        "(expected cd-0 or 0c)",
                        sl_config_text(config, "delay").text, config->network.model->name);
    if (sl_config_hidden(config) > SL_ATTENTION_COLUMNS)
        return sl_error(SL_ERR_USAGE,
                        "--heads %lld of --hidden %lld: expected at most %d columns together",
                        (long long)config->network.heads, (long long)config->network.hidden,
                        SL_ATTENTION_COLUMNS);
    if (sl_config_type(config) != SL_FLOAT32)
        return sl_error(SL_ERR_USAGE,
                        "--precision %s: --model %s has float32 alone (expected "
                        "fp32 or tf32)",
                        sl_config_word(config, "precision").text, config->network.model->name);
    return 0;
}

const char *sl_config_reads_all(const struct sl_config *config)
{
    const struct sl_batches_options options = sl_config_batches(config);
    if (config->network.model == &sl_model_resgcn &&
        config->network.block_norm->layer->vectors.averages > 0)
        return "--block-norm batch has the statistics of all rows";
    const struct sl_layer_kind *norm = sl_config_norm_layer(config);
    if (norm && norm->vectors.averages > 0)
        return "--norm-layers batch has the statistics of all rows";
    if (sl_config_links(config))
        return "--task links compares pairs of all vertices";
    if (options.sets > 1 || options.automatic)
        return "--batches has sets of all vertices";
    return sl_config_kind(config)->clones ? "clones of few vertices have other gradients"
           : options.sampled              ? "a sample is drawn around all vertices of a step"
           : options.kind->alone          ? "--batches clusters trains on all rows of its clusters"
           : config->steps.groups.given && (options.preload > 0 || options.chooses_preload)
               ? "--preload-hops takes rows that other groups compute"
               : NULL;
}

int sl_config_check_rows(const struct sl_config *config)
{
    const char *reader = config->steps.rows == SL_ROWS_NEEDED ? sl_config_reads_all(config) : NULL;
    return reader ? sl_error(SL_ERR_USAGE, "--rows needed: %s (expected all or auto)", reader) : 0;
}

int sl_config_check_batches(const struct sl_config *config)
{
    const struct sl_batches_options options = sl_config_batches(config);
    if (sl_config_check_steps(config))
        return SL_ERR_USAGE;
    if (config->steps.groups.given && config->ranks.allow_inexact)
        return sl_error(SL_ERR_USAGE, "--allow-inexact: expected no --groups with it");
    if (options.sampled && (options.kind->alone || !sl_batches_differ(config)))
        return config->steps.max_hop != SL_NO_HOPS
                   ? sl_error(SL_ERR_USAGE,
                              "--max-hop %s: expected --groups GxP or --batches co:R with it",
                              sl_config_text(config, "max-hop").text)
                   : sl_error(SL_ERR_USAGE,
                              "--fanout %lld: expected --groups GxP or --batches co:R with it",
                              (long long)config->steps.fanout);
    if (config->steps.resample > 0 && !options.sampled)
        return sl_error(SL_ERR_USAGE, "--resample %lld: expected --max-hop N or --fanout K with it",
                        (long long)config->steps.resample);
    if (!sl_batches_differ(config))
        return 0;
    if (sl_config_check_rows(config))
        return SL_ERR_USAGE;
    if (config->ranks.order == &sl_order_double)
        return sl_error(SL_ERR_USAGE, "--order double: expected another order with --groups, "
                                      "--batches or --rows needed");
    const bool clones = sl_config_kind(config)->clones;
    if (config->ranks.delay > 0 && (clones || options.preload == 0 || options.chooses_preload))
        return sl_error(SL_ERR_USAGE,
                        "--delay %s: expected --groups GxP and --preload-hops N with it, or cd-0",
                        sl_config_text(config, "delay").text);
    if (config->ranks.delay == SL_DELAY_NEVER && !clones)
        return sl_error(SL_ERR_USAGE, "--delay 0c: expected --distribution vertex-cut with it");
    return 0;
}

/* Latin squares have blocks of one size, and scaled sums one factor. */
static int check_shares(const struct sl_config *config)
{
    const struct sl_unit_shares *shares = &config->units.submodel_share;
    if (shares->kind == SL_UNITS_GIVEN && shares->given.count != config->units.submodels)
        return sl_error(SL_ERR_USAGE,
                        "--submodel-share %s: expected equal, auto, or %lld numbers with commas "
                        "between them",
                        sl_config_text(config, "submodel-share").text,
                        (long long)config->units.submodels);
    if (shares->kind != SL_UNITS_EQUAL &&
        (config->units.partition_units == SL_ROUNDS_LATIN ||
         config->units.unit_sums == SL_UNIT_SUMS_SCALED || config->units.share == SL_SHARE_COPIES))
        return sl_error(SL_ERR_USAGE,
                        "--submodel-share %s: expected no --partition-units latin, no --unit-sums "
                        "scaled and no --share copies with it",
                        sl_config_text(config, "submodel-share").text);
    return 0;
}

/* Options of sub-models, and what sub-models do not go with. */
static int check_submodels(const struct sl_config *config)
{
    const char *alone = config->units.local_steps > 1                         ? "local-steps"
                        : config->units.rounds > 0                            ? "rounds"
                        : config->units.share != SL_SHARE_BLOCKS              ? "share"
                        : config->units.partition_units != SL_ROUNDS_RANDOM   ? "partition-units"
                        : !config->units.split_layers.all                     ? "split-layers"
                        : config->units.store                                 ? "store"
                        : config->units.submodel_share.kind != SL_UNITS_EQUAL ? "submodel-share"
                        : config->units.unit_sums != SL_UNIT_SUMS_PUBLISHED   ? "unit-sums"
                        : config->units.reset_optimizer                       ? "reset-optimizer"
                                                                              : NULL;
    if (config->training.eval_every < 0 && config->training.patience > 0)
        return sl_error(SL_ERR_USAGE, "--eval-every -1: expected --patience 0 with it");
    if (config->training.eval_every < 0 && config->training.keep == SL_KEEP_BEST)
        return sl_error(SL_ERR_USAGE, "--eval-every -1: expected --keep last with it");
    if (config->units.submodels == 0 && alone)
        return sl_error(SL_ERR_USAGE, "--%s: expected --submodels M with it", alone);
    if (config->units.submodels == 0)
        return 0;
    if (sl_config_has_own_layer(config))
        return sl_error(SL_ERR_USAGE,
                        "--submodels %lld: --block-norm %s has parameters of a program, which are "
                        "not cut (expected row or batch)",
                        (long long)config->units.submodels,
                        sl_config_word(config, "block-norm").text);
    if (sl_config_has(config, "bases") && config->network.bases > 0 &&
        config->units.share != SL_SHARE_COPIES)
        return sl_error(SL_ERR_USAGE,
                        "--submodels %lld: --bases has numbers of relations, which are not cut "
                        "(expected --bases 0, or --share copies)",
                        (long long)config->units.submodels);
    if (check_shares(config))
        return SL_ERR_USAGE;
    if (config->units.share == SL_SHARE_COPIES &&
        (!config->units.split_layers.all || config->units.partition_units != SL_ROUNDS_RANDOM))
        return sl_error(SL_ERR_USAGE,
                        "--share copies: no units are cut (expected no --split-layers, no "
                        "--partition-units and no --unit-sums)");
    if (config->units.share == SL_SHARE_NONE &&
        (config->units.local_steps > 1 || config->units.rounds > 0 ||
         config->units.reset_optimizer || config->units.partition_units != SL_ROUNDS_RANDOM ||
         config->units.unit_sums != SL_UNIT_SUMS_PUBLISHED))
        return sl_error(SL_ERR_USAGE,
                        "--share none: one round is the whole run (expected no --local-steps, no "
                        "--rounds, no --reset-optimizer, no --partition-units and no --unit-sums)");
    if (config->units.share == SL_SHARE_NONE && config->training.patience > 0)
        return sl_error(SL_ERR_USAGE,
                        "--share none: an ensemble keeps its last weights (expected --patience 0)");
    if (config->units.share == SL_SHARE_NONE && config->training.keep == SL_KEEP_BEST)
        return sl_error(SL_ERR_USAGE,
                        "--share none: an ensemble keeps its last weights (expected --keep last)");
    const struct sl_batches_options options = sl_config_batches(config);
    if (options.sampled || options.preload > 0)
        return sl_error(SL_ERR_USAGE,
                        "--submodels %lld: each group has the whole graph (expected no "
                        "--preload-hops, no --max-hop and no --fanout)",
                        (long long)config->units.submodels);
    if (config->ranks.exact_epochs > 0 || config->ranks.delay > 0)
        return sl_error(SL_ERR_USAGE, "--submodels %lld: expected --delay cd-0 or 0c",
                        (long long)config->units.submodels);
    return 0;
}

static int check_trace(const struct sl_config *config)
{
    return config->files.trace || config->files.trace_epochs.first == 0
               ? 0
               : sl_error(SL_ERR_USAGE, "--trace-epochs %s: expected --trace FILE with it",
                          sl_config_text(config, "trace-epochs").text);
}

/* Vertex-cuts take all methods, parts of vertices METIS and PT-Scotch. */
static int check_partition(const struct sl_config *config)
{
    const struct sl_distribution_kind *kind = sl_config_kind(config);
    const char *partition = config->ranks.partition;
    const bool groups = config->steps.groups.given;
    if (!partition)
        return 0;
    if (!groups && !kind->parts && !kind->clones)
        return sl_error(SL_ERR_USAGE,
                        "--partition %s: expected --distribution halo, cover or vertex-cut with it",
                        partition);
    return sl_parts_check_name(partition,
                               kind->clones && !groups ? SL_PARTS_METHODS : "metis|ptscotch");
}

int sl_config_check(const struct sl_config *config)
{
    if (!is_probability(config->training.attention_dropout))
        return sl_error(
            SL_ERR_USAGE,
            "--attention-dropout %g: expected a probability below 1, or -1 for that of --dropout",
            config->training.attention_dropout);
    if (sl_links_check_options(config) || check_reducer(config) ||
        sl_config_check_attention(config) || check_recompute(config) || check_trace(config))
        return SL_ERR_USAGE;
    if (config->ranks.order == &sl_order_double && config->network.model->one_order)
        return sl_error(SL_ERR_USAGE,
                        "--order double: --model %s needs a vertex and its neighbours in one order "
                        "(expected another order)",
                        config->network.model->name);
    if (sl_config_residual(config) == SL_RESIDUAL_LINEAR && !config->network.model->residual)
        return sl_error(SL_ERR_USAGE,
                        "--residual linear: --model %s has a weight for a vertex's own values "
                        "already (expected none or identity)",
                        config->network.model->name);
    const bool last_hidden = sl_config_classifies(config) || config->network.model->inner;
    if (sl_config_residual(config) == SL_RESIDUAL_IDENTITY && !sl_config_encodes(config) &&
        config->network.layers - !last_hidden < 2)
        return sl_error(SL_ERR_USAGE,
                        "--residual identity: no hidden layer follows the first, which changes the "
                        "width (expected more --layers, or --encoder linear)");
    const char *one_order = sl_config_norm_layer(config) ? "norm-layers"
                            : sl_config_residual(config) ? "residual"
                            : sl_config_jump(config)     ? "jump"
                                                         : NULL;
    if (config->ranks.order == &sl_order_double && one_order)
        return sl_error(SL_ERR_USAGE,
                        "--order double: --%s %s needs a vertex and its neighbours in one order "
                        "(expected another order)",
                        one_order, sl_config_word(config, one_order).text);
    if (config->training.input_dropout < 0.0 && config->training.input_dropout != -1.0)
        return sl_error(
            SL_ERR_USAGE,
            "--input-dropout %g: expected a probability below 1, or -1 for that of --dropout",
            config->training.input_dropout);
    if (sl_config_standardizes(config) && config->features.feature_form == SL_FORM_CSR)
        return sl_error(SL_ERR_USAGE,
                        "--normalize-features standard: columns lose their zeros (expected "
                        "--feature-form dense, or auto)");
    if (config->features.project_features > 0 && sl_config_standardizes(config))
        return sl_error(SL_ERR_USAGE,
                        "--project-features %lld: columns are mixed before they could be "
                        "standardised (expected --normalize-features none, l1 or l2)",
                        (long long)config->features.project_features);
    if (config->features.project_features > 0 && config->features.feature_form == SL_FORM_CSR)
        return sl_error(SL_ERR_USAGE,
                        "--project-features %lld: a projection leaves no zeros (expected "
                        "--feature-form dense, or auto)",
                        (long long)config->features.project_features);
    enum sl_instructions level;
    const int known = sl_instructions_choose(config->machine.instructions, &level);
    if (known)
        return known;
    if (config->ranks.order == &sl_order_double && sl_config_layer(config)->weights.count > 1)
        return sl_error(SL_ERR_USAGE,
                        "--order double: --aggregator %s adds a vertex to its neighbours, which "
                        "are in another order then (expected --aggregator gcn, or one order)",
                        config->network.aggregator->name);
    const struct sl_distribution_kind *kind = sl_config_kind(config);
    if (sl_config_check_batches(config) || check_submodels(config))
        return SL_ERR_USAGE;
    if (check_partition(config))
        return SL_ERR_USAGE;
    if (config->ranks.grid.rows > 0 && config->ranks.distribution &&
        config->ranks.distribution->kind != &sl_distribution_block)
        return sl_error(SL_ERR_USAGE, "--grid %s: expected no --distribution %s with it",
                        sl_config_text(config, "grid").text, config->ranks.distribution->name);
    if (kind->parts && config->ranks.order == &sl_order_double)
        return sl_error(SL_ERR_USAGE,
                        "--order double: rows and columns need the same parts with --distribution "
                        "%s (expected another order, or a grid)",
                        kind->name);
    const int code = check_vertex_cut(config);
    if (code)
        return code;
    if (config->files.checkpoint_every && !config->files.checkpoint && !config->files.verify)
        return sl_error(SL_ERR_USAGE, "--checkpoint-every needs --checkpoint FILE");
    return 0;
}
