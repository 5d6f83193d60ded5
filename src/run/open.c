#include "run/open.h"

#include "checkpoint/meaning.h"
#include "data/projection.h"
#include "recipe/batches_options.h"
#include "recipe/defaults.h"
#include "recipe/edges.h"
#include "recipe/link_options.h"
#include "recipe/objective.h"
#include "train/trainer.h"

int sl_run_project(const struct sl_config *config, struct sl_source *source)
{
    const int64_t columns = config->features.project_features;
    return columns > 0 ? sl_projection_open(source, columns, sl_config_row_norm(config),
                                            (uint64_t)config->training.seed)
                       : SL_OK;
}

int sl_run_follow(struct sl_runtime *rt, struct sl_source *source, struct sl_config *config,
                  const json_t *trained, const char *model)
{
    int code = sl_links_prepare(rt, config, source);
    source->splits.split_rule = sl_config_split(config);
    if (!code && model)
        code = sl_meaning_adopt(source, trained, sl_config_standardizes(config), model);
    if (!code && model)
        code = sl_edges_follow(config, source, sl_meaning_edges(trained),
                               sl_meaning_relations(trained), model);
    code = sl_runtime_agree(rt, code);
    return code || !(model || config->training.loss)
               ? code
               : sl_objective_take_labels(rt, config, trained, source);
}

int sl_run_check(struct sl_runtime *rt, struct sl_source *source, struct sl_config *config,
                 const json_t *trained, const char *model)
{
    int code = sl_run_follow(rt, source, config, trained, model);
    if (code)
        return code;
    if (!sl_config_links(config))
        code = sl_trainer_check(source);
    if (!code)
        code = sl_edges_settle(config, source);
    if (!code)
        code = sl_run_project(config, source);
    return sl_runtime_agree(rt, code ? code : sl_batches_check(config, source));
}

int sl_run_settle(struct sl_runtime *rt, struct sl_source *source, const struct sl_rates *core,
                  const bool *given, struct sl_config *config, char *chosen)
{
    int code = sl_defaults_form(rt, source, core, config);
    if (!code)
        code = sl_defaults_settle(config, source, given, chosen);
    source->projection.norm = sl_config_row_norm(config);
    if (!code)
        code = sl_objective_check(config, source);
    return sl_runtime_agree(rt, code);
}
