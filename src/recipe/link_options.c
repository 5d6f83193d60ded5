#include "recipe/link_options.h"

#include <string.h>

#include "core/error.h"
#include "core/log.h"

/* The first product of the mlp is the last layer: it has columns for the source, and for the
 * target.
 */
int64_t sl_links_width(const struct sl_config *config)
{
    const int64_t width =
        config->links.embedding > 0 ? config->links.embedding : config->network.hidden;
    return config->links.decoder == SL_DECODER_MLP ? 2 * width : width;
}

/* ---- Options ---- */

/* Return an option that links alone have, and that is not its default; NULL: there is none. */
static const char *option_of_links(const struct sl_config *config)
{
    const struct sl_config_links *links = &config->links;
    return links->split.given                 ? "split-edges"
           : links->decoder != SL_DECODER_DOT ? "decoder"
           : links->embedding > 0             ? "embedding"
           : links->negatives > 1             ? "negatives"
           : links->eval_negatives > 1        ? "eval-negatives"
                                              : NULL;
}

/* Return what the task does not go with; NULL: there is nothing. */
static const char *refused(const struct sl_config *config)
{
    return config->splits.split.given                ? "--split (expected --split-edges)"
           : config->units.submodels > 0             ? "--submodels (expected none)"
           : config->steps.groups.given              ? "--groups (expected none)"
           : sl_config_has_batches(config)           ? "--batches (expected full)"
           : config->steps.rows == SL_ROWS_NEEDED    ? "--rows needed (expected all)"
           : config->ranks.allow_inexact             ? "--allow-inexact"
           : config->ranks.order == &sl_order_double ? "--order double (expected another order)"
                                                     : NULL;
}

/* Whether the product of the last layer reads the outputs of all others. */
static bool joins_last(const struct sl_config *config)
{
    return sl_config_jump(config) == SL_JUMP_CONCAT || sl_config_jump(config) == SL_JUMP_SUM;
}

int sl_links_check_options(const struct sl_config *config)
{
    const struct sl_loss *loss = config->training.loss;
    const struct sl_metric *metric = config->training.metric;
    if (!sl_config_links(config)) {
        const char *option = option_of_links(config);
        if (option)
            return sl_error(SL_ERR_USAGE, "--%s: expected --task links with it", option);
        if (loss && loss->links)
            return sl_error(SL_ERR_USAGE, "--loss %s: expected --task links with it", loss->name);
        if (metric && metric->source == SL_METRIC_OF_LINKS)
            return sl_error(SL_ERR_USAGE, "--metric %s: expected --task links with it",
                            metric->name);
        return 0;
    }
    const char *other = refused(config);
    if (other)
        return sl_error(SL_ERR_USAGE, "--task links: does not go with %s", other);
    if (config->links.eval_negatives > 1 && !config->links.split.given)
        return sl_error(SL_ERR_USAGE, "--eval-negatives %lld: expected --split-edges with it",
                        (long long)config->links.eval_negatives);
    if (config->links.decoder == SL_DECODER_MLP && !sl_config_has(config, "classifier"))
        return sl_error(SL_ERR_USAGE,
                        "--decoder mlp: --model %s cannot have a linear layer behind it (expected "
                        "dot or distmult, or a model that takes --classifier linear)",
                        config->network.model->name);
    if (config->links.decoder == SL_DECODER_MLP && joins_last(config))
        return sl_error(SL_ERR_USAGE,
                        "--decoder mlp: its product and that of --jump %s would be one (expected "
                        "--jump none or max)",
                        sl_config_word(config, "jump").text);
    if (config->links.decoder == SL_DECODER_DISTMULT &&
        (joins_last(config) || config->network.model == &sl_model_jknet))
        return sl_error(
            SL_ERR_USAGE,
            "--decoder distmult: does not go with a last layer that reads all others, as "
            "of --jump concat or sum and --model jknet (expected dot, or another model)");
    if (config->training.class_weights != SL_CLASS_WEIGHTS_NONE)
        return sl_error(SL_ERR_USAGE, "--class-weights balanced: links have no classes (expected "
                                      "none)");
    if (config->training.decision != SL_DECIDE_HALF)
        return sl_error(SL_ERR_USAGE, "--decision %s: links have no labels (expected half)",
                        sl_config_word(config, "decision").text);
    if (config->training.label_smoothing > 0.0)
        return sl_error(SL_ERR_USAGE, "--label-smoothing %g: links have no labels (expected 0)",
                        config->training.label_smoothing);
    return 0;
}

/* ---- The dataset ---- */

int64_t sl_links_split_size(const struct sl_config *config, const struct sl_source *source,
                            enum sl_split split)
{
    return sl_config_links(config) ? sl_links_count(&source->links, split)
                                   : sl_source_split_size(source, split);
}

int sl_links_check_objective(const struct sl_config *config, const struct sl_source *source)
{
    const struct sl_objective o = sl_config_objective(config);
    if (!o.loss->links)
        return sl_error(SL_ERR_USAGE,
                        "--loss %s: --task links has none of labels (expected bce or "
                        "bpr)",
                        o.loss->name);
    if (o.metric->links.measure == SL_LINKS_UNMEASURED && o.metric != &sl_metric_loss)
        return sl_error(SL_ERR_USAGE,
                        "--metric %s: is not defined for links (expected loss, roc-auc, mrr, "
                        "hits@10, hits@20, hits@50 or hits@100)",
                        o.metric->name);
    for (int s = SL_SPLIT_VAL; s < SL_SPLITS; s++) {
        const struct sl_npy *links = &source->links.pairs[s],
                            *negatives = &source->links.negatives[s];
        if (o.metric == &sl_metric_mrr && links->data && links->shape[0] > 0 &&
            negatives->shape[0] % links->shape[0] != 0)
            return sl_error(SL_ERR_USAGE,
                            "--metric mrr: %s has %lld negatives for %lld links (expected as many "
                            "for each link)",
                            negatives->name, (long long)negatives->shape[0],
                            (long long)links->shape[0]);
    }
    return 0;
}

/* Let all vertices train, so that columns of features are standardised over them. */
static int train_on_all(struct sl_source *source)
{
    int64_t *ids = sl_block_array(&source->blocks, source->vertices, sizeof *ids);
    if (!ids)
        return SL_ERR_SYSTEM;
    for (int64_t v = 0; v < source->vertices; v++)
        ids[v] = v;
    for (int s = 0; s < SL_SPLITS; s++) {
        source->splits.split[s] = (struct sl_npy){0};
        source->splits.mask[s] = false;
    }
    source->splits.split[SL_SPLIT_TRAIN] =
        sl_npy_view("--task links", SL_NPY_INT64, 1, source->vertices, 0, ids);
    return 0;
}

int sl_links_prepare(struct sl_runtime *rt, const struct sl_config *config,
                     struct sl_source *source)
{
    struct sl_link_rule rule = config->links.split;
    if (!sl_config_links(config))
        return 0;
    rule.seed = (uint64_t)config->splits.split_seed;
    rule.negatives = config->links.eval_negatives;
    if (config->predicts && sl_links_given(&source->links))
        rule.given = false;
    if (config->predicts && rule.given && rt->rank == 0)
        sl_note("%s: edges are taken out for validation and test, as in training (--split-edges "
                "%s --split-seed %lld)",
                source->path, sl_config_text(config, "split-edges").text,
                (long long)config->splits.split_seed);
    int code = sl_links_split(source, &rule);
    if (!code)
        code = train_on_all(source);
    source->targets = (struct sl_targets){.label_kind = SL_LABELS_CLASS};
    source->classes = sl_links_width(config);
    return sl_runtime_agree(rt, code);
}

struct sl_link_choice sl_links_choice(const struct sl_config *config,
                                      const struct sl_source *source)
{
    return (struct sl_link_choice){
        .decoder = config->links.decoder,
        .loss = sl_config_objective(config).loss->link_loss,
        .width = source->classes,
        .negatives = config->links.negatives,
        .seed = (uint64_t)config->training.seed,
        .measures_alone = config->predicts,
    };
}
