/* Values that follow from options: models, distributions, rates, numbers of epochs. */
#include "recipe/config.h"

#include <math.h>
#include <stdlib.h>

#include "codelets/optimizer.h"
#include "graphs/distribution.h"
#include "graphs/vertex_cut.h"

const struct sl_distribution_kind *sl_config_kind(const struct sl_config *config)
{
    return config->ranks.grid.rows > 0 || !config->ranks.distribution
               ? &sl_distribution_block
               : config->ranks.distribution->kind;
}

static bool has_scaled_sums(const struct sl_config *config)
{
    return sl_config_kind(config)->clones && config->ranks.delay != SL_DELAY_EXACT &&
           config->ranks.partial_sums == SL_PARTIAL_SUMS_SCALED && config->units.submodels == 0;
}

int64_t sl_config_exact_epochs(const struct sl_config *config)
{
    if (config->ranks.exact_epochs >= 0)
        return config->ranks.exact_epochs;
    if (!has_scaled_sums(config))
        return 0;
    return sl_config_epochs(config) / (config->ranks.delay == SL_DELAY_NEVER ? 5 : 10);
}

struct sl_split_rule sl_config_split(const struct sl_config *config)
{
    struct sl_split_rule rule = config->splits.split;
    rule.seed = (uint64_t)config->splits.split_seed;
    return rule;
}

static bool has_heads(const struct sl_config *config)
{
    return config->network.model->attention;
}

static bool is_sage(const struct sl_config *config)
{
    return config->network.model == &sl_model_sage;
}

/* Return the aggregator of layers of GraphSAGE; NULL: the model has none. */
static const struct sl_aggregator *aggregator_of(const struct sl_config *config)
{
    const struct sl_aggregator *blocks = config->network.block_aggregator;
    if (sl_config_has(config, "block-aggregator"))
        return blocks == &sl_aggregator_gcn ? NULL : blocks;
    return is_sage(config) ? config->network.aggregator : NULL;
}

/* GraphSAGE with the aggregator gcn is a graph convolution with another norm. */
const struct sl_layer_kind *sl_config_layer(const struct sl_config *config)
{
    const struct sl_aggregator *aggregator = aggregator_of(config);
    return aggregator == &sl_aggregator_gcn                   ? &sl_layer_gcn
           : aggregator                                       ? &sl_layer_sage
           : sl_config_residual(config) == SL_RESIDUAL_LINEAR ? config->network.model->residual
                                                              : config->network.model->neighbours;
}

bool sl_config_begins_alone(const struct sl_config *config)
{
    return config->network.model->alone_first || sl_config_encodes(config);
}

const struct sl_layer_kind *sl_config_norm_layer(const struct sl_config *config)
{
    const struct sl_block_norm *norm = config->network.norm_layers;
    return norm && sl_config_has(config, "norm-layers") ? norm->layer : NULL;
}

int64_t sl_config_out_heads(const struct sl_config *config)
{
    return has_heads(config) && !sl_config_classifies(config) ? config->network.out_heads : 0;
}

bool sl_config_loops(const struct sl_config *config)
{
    return sl_config_layer(config)->loops;
}

const struct sl_reducer *sl_config_reducer(const struct sl_config *config)
{
    const struct sl_aggregator *aggregator = aggregator_of(config);
    if (has_heads(config))
        return config->network.model->attention;
    if (config->network.model->reducer)
        return config->network.model->reducer;
    return aggregator && aggregator->reducer ? aggregator->reducer : &sl_reduce_sum;
}

enum sl_norm sl_config_norm(const struct sl_config *config)
{
    const struct sl_aggregator *aggregator = aggregator_of(config);
    if (aggregator && !aggregator->reducer) /* gcn and mean */
        return SL_NORM_COUNT;
    if (!sl_config_layer(config)->normalized || config->network.model->unscaled)
        return SL_NORM_NONE;
    return config->network.norm;
}

struct sl_objective sl_config_objective(const struct sl_config *config)
{
    const struct sl_loss *loss = config->training.loss     ? config->training.loss
                                 : sl_config_links(config) ? &sl_loss_bce
                                                           : &sl_loss_softmax;
    const struct sl_metric *suitable =
        config->training.decision == SL_DECIDE_TOP ? &sl_metric_micro_f1 : sl_metric_of_loss(loss);
    const struct sl_metric *metric = config->training.metric ? config->training.metric : suitable;
    return (struct sl_objective){
        .loss = loss,
        .metric = metric,
        .shown = sl_metric_shown(loss, metric),
        .decision = config->training.decision,
        .smoothing = config->training.label_smoothing,
        .balanced = config->training.class_weights == SL_CLASS_WEIGHTS_BALANCED,
    };
}

bool sl_config_has_own_layer(const struct sl_config *config)
{
    return config->network.model == &sl_model_resgcn && config->network.block_norm->layer->own;
}

/* Return the units of a hidden layer in the smallest sub-model; of attention, all heads are cut
 * alike. */
static int64_t least_units(const struct sl_config *config)
{
    const struct sl_unit_shares *shares = &config->units.submodel_share;
    int64_t least = INT64_MAX, all = 0;
    if (config->units.submodels < 2 || config->units.share == SL_SHARE_COPIES ||
        has_heads(config) || !config->units.split_layers.all)
        return 0;
    for (int64_t p = 0; p < config->units.submodels; p++) {
        const int64_t share = shares->kind == SL_UNITS_GIVEN ? shares->given.number[p] : 1;
        least = share < least ? share : least;
        all += share;
    }
    return config->network.hidden * least / all;
}

struct sl_assembly sl_config_assembly(const struct sl_config *config)
{
    return (struct sl_assembly){
        .norm = sl_config_norm(config),
        .loops = sl_config_loops(config),
        .own_weight = sl_config_layer(config)->weights.count > 1,
        .row_norm =
            config->features.project_features > 0 ? SL_ROW_NORM_NONE : sl_config_row_norm(config),
        .type = sl_config_type(config),
        .reducer = sl_config_reducer(config),
        .objective = sl_config_objective(config),
        .aggregates = sl_config_aggregates(config),
        .spmm_first = config->features.product_order == SL_FIRST_SPMM,
        .model.layers = config->network.layers,
        .model.hidden = sl_config_hidden(config),
        .model.whole_rows = sl_config_has_own_layer(config) || sl_config_decoder_layer(config),
        .model.inner = config->network.layers > 1 || config->network.model->inner ||
                       sl_config_classifies(config) || sl_config_encodes(config),
        .model.least_units = least_units(config),
        .model.heads = has_heads(config) ? config->network.heads : 0,
        .model.out_heads = sl_config_out_heads(config),
        .model.edge_features = config->edge_features,
        .positive = has_heads(config),
        .keeps_features = sl_config_input_dropout(config) == 0.0,
        .alone_first = sl_config_begins_alone(config),
        .owners.kind = sl_config_kind(config),
        .owners.distribution = config->ranks.distribution,
        .owners.grid = config->ranks.grid,
        .owners.replication = config->ranks.replication,
        .owners.partition = config->ranks.partition,
        .owners.delay = config->ranks.delay,
        .owners.scales_partials = config->ranks.partial_sums == SL_PARTIAL_SUMS_SCALED,
        .seed = (uint64_t)config->training.seed,
        .owners.broadcast = config->ranks.broadcast,
        .owners.own_first = config->ranks.sum_order == SL_SUM_ORDER_OWN_FIRST,
        .drops_adjacency = !config->machine.cache_adjacency,
        .balance = config->ranks.balance,
        .tiles = config->machine.tiles,
        .block_cols = config->machine.block_columns,
    };
}

static enum sl_activation activation_of(const struct sl_config *config)
{
    const enum sl_hidden_activation wanted =
        sl_config_has(config, "activation") ? config->network.activation : SL_HIDDEN_AUTO;
    return wanted == SL_HIDDEN_ELU || (wanted == SL_HIDDEN_AUTO && has_heads(config))
               ? SL_ACTIVATION_ELU
               : SL_ACTIVATION_RELU;
}

struct sl_model_shape sl_config_shape(const struct sl_config *config, int64_t features,
                                      int64_t classes)
{
    return (struct sl_model_shape){
        .options = {.recompute = config->machine.recompute,
                    .states = sl_optimizer_states(config->training.optimizer),
                    .seed = (uint64_t)config->training.seed,
                    .linear_init = config->network.linear_init,
                    .keep_best = sl_config_keeps_best(config),
                    .clip_norm = config->training.clip_norm},
        .model = config->network.model,
        .kind = sl_config_layer(config),
        .layers = (int)config->network.layers,
        .hops = (int)config->network.hops,
        .block = config->network.block_norm->layer,
        .encoder = sl_config_encodes(config),
        .identity = sl_config_residual(config) == SL_RESIDUAL_IDENTITY,
        .jump = sl_config_jump(config),
        .activation = activation_of(config),
        .classifier = sl_config_classifies(config),
        .decoder = sl_config_decoder_layer(config),
        .norm = sl_config_norm_layer(config),
        .teleport = (float)config->network.teleport,
        .reducer = sl_config_reducer(config),
        .features = features,
        .hidden = config->network.hidden,
        .classes = classes,
        .bias = config->network.bias,
        .input_dropout = sl_config_input_dropout(config),
        .dropout = config->training.dropout,
        .decay_first = (float)config->training.weight_decay,
        .decay_rest =
            config->training.weight_decay_all ? (float)config->training.weight_decay : 0.0f,
        .attention = {.heads = has_heads(config) ? (int)config->network.heads : 0,
                      .last = (int)sl_config_out_heads(config),
                      .dropout = config->training.attention_dropout < 0.0
                                     ? config->training.dropout
                                     : config->training.attention_dropout,
                      .slope = 0.2f},
        .edges = {.features = config->edge_features,
                  .relations = config->relations,
                  .bases = sl_config_has(config, "bases") ? config->network.bases : 0},
    };
}

int sl_config_product_order(const struct sl_config *config)
{
    return config->features.product_order == SL_FIRST_GEMM   ? SL_GEMM_FIRST
           : config->features.product_order == SL_FIRST_SPMM ? SL_SPMM_FIRST
                                                             : -1;
}

/* Return the links of the source. Without lists of measured ones, expect what --split-edges takes
 * out, beside the edges that are left. */
static struct sl_planned_links links_of(const struct sl_config *config,
                                        const struct sl_source *source)
{
    const struct sl_link_rule *rule = &config->links.split;
    struct sl_planned_links links = {.negatives = config->links.negatives};
    if (!sl_config_links(config))
        return (struct sl_planned_links){0};
    for (int s = SL_SPLIT_VAL; s < SL_SPLITS; s++)
        links.measured +=
            sl_links_count(&source->links, (enum sl_split)s) +
            (source->links.negatives[s].data ? source->links.negatives[s].shape[0] : 0);
    if (rule->given && !sl_links_given(&source->links))
        links.measured = (int64_t)((double)source->adjacency.indices.count / 2.0 *
                                   (rule->shares[1] + rule->shares[2]) / rule->shares[0] *
                                   (1.0 + (double)config->links.eval_negatives));
    return links;
}

struct sl_training sl_config_training(const struct sl_config *config,
                                      const struct sl_source *source)
{
    struct sl_assembly assembly = sl_config_assembly(config);
    if (config->ranks.allow_inexact && assembly.owners.delay == SL_DELAY_EXACT &&
        assembly.reducer->linear)
        assembly.owners.delay = SL_DELAY_NEVER;
    return (struct sl_training){
        .assembly = assembly,
        .inexact = config->ranks.allow_inexact,
        .no_cut = config->steps.rows == SL_ROWS_NEEDED,
        .shape = sl_config_shape(config, source->features, source->classes),
        .product_order = sl_config_product_order(config),
        .stages = sl_config_stages(config),
        .order = config->ranks.order,
        .epochs = config->training.epochs,
        .links = links_of(config, source),
    };
}

bool sl_config_evaluates(const struct sl_config *config)
{
    return config->training.eval_every >= 0;
}

bool sl_config_keeps_best(const struct sl_config *config)
{
    return config->training.keep == SL_KEEP_AUTO ? config->training.patience > 0
                                                 : config->training.keep == SL_KEEP_BEST;
}

int64_t sl_config_eval_every(const struct sl_config *config)
{
    enum { WITHOUT_PATIENCE = 10, PER_PATIENCE = 10 };
    if (config->training.eval_every > 0)
        return config->training.eval_every;
    if (config->training.patience <= 0)
        return WITHOUT_PATIENCE;
    return config->training.patience < PER_PATIENCE ? 1 : config->training.patience / PER_PATIENCE;
}

enum sl_row_norm sl_config_row_norm(const struct sl_config *config)
{
    return config->features.normalize_features == SL_FEATURE_NORM_L1   ? SL_ROW_NORM_L1
           : config->features.normalize_features == SL_FEATURE_NORM_L2 ? SL_ROW_NORM_L2
                                                                       : SL_ROW_NORM_NONE;
}

bool sl_config_standardizes(const struct sl_config *config)
{
    return config->features.normalize_features == SL_FEATURE_NORM_STANDARD;
}

int64_t sl_config_hidden(const struct sl_config *config)
{
    return has_heads(config) ? config->network.heads * config->network.hidden
                             : config->network.hidden;
}

double sl_config_input_dropout(const struct sl_config *config)
{
    return config->training.input_dropout < 0.0 ? config->training.dropout
                                                : config->training.input_dropout;
}

bool sl_config_aggregates(const struct sl_config *config)
{
    return config->features.cache_aggregate && sl_config_reducer(config)->linear &&
           !sl_config_begins_alone(config) && sl_config_input_dropout(config) == 0.0;
}

enum sl_type sl_config_type(const struct sl_config *config)
{
    return config->machine.precision == SL_PRECISION_BF16 ? SL_BFLOAT16 : SL_FLOAT32;
}

int sl_config_stages(const struct sl_config *config)
{
    return config->machine.overlap ? 4 : 1;
}

bool sl_config_has_submodels(const struct sl_config *config)
{
    return config->units.submodels > 0;
}

bool sl_config_is_ensemble(const struct sl_config *config)
{
    return sl_config_has_submodels(config) && config->units.share == SL_SHARE_NONE;
}

int64_t sl_config_work(const struct sl_config *config)
{
    return config->units.submodels > 0 ? config->units.submodels : 1;
}

int64_t sl_config_epochs(const struct sl_config *config)
{
    const int64_t work = sl_config_work(config);
    return (config->training.epochs + work - 1) / work;
}

/* How many milestones are passed after so many epochs. */
static int passed(const struct sl_numbers *milestones, int64_t done)
{
    int count = 0;
    while (count < milestones->count && milestones->number[count] <= done)
        count++;
    return count;
}

double sl_config_rate(const struct sl_config *config, int64_t epoch)
{
    const int64_t done = (epoch - 1) * sl_config_work(config);
    const double rate = config->training.lr * pow(config->training.step_factor,
                                                  passed(&config->training.milestones, done));
    if (config->training.schedule == SL_SCHEDULE_STEP)
        return rate *
               pow(config->training.step_factor, (double)(done / config->training.step_epochs));
    if (config->training.schedule == SL_SCHEDULE_COSINE)
        return 0.5 * rate * (1.0 + cos(M_PI * (double)done / (double)config->training.epochs));
    return rate;
}
