#include "run/open.h"

#include "checkpoint/meaning.h"
#include "core/stop.h"
#include "data/feature_form.h"
#include "data/projection.h"
#include "recipe/batches_options.h"
#include "recipe/defaults.h"
#include "recipe/edges.h"
#include "recipe/link_options.h"
#include "recipe/objective.h"
#include "train/trainer.h"

/* Open or borrow the dataset. Tell of a borrowed dataset, which was opened without a word. */
static int open_source(struct sl_runtime *rt, const struct sl_run_inputs *inputs,
                       struct sl_source *source)
{
    int code = 0;
    if (inputs->graph)
        code = sl_source_borrow_alike(rt, inputs->graph, source);
    else if (inputs->path)
        code = sl_source_open(rt, inputs->path, source);
    if (!code)
        code = sl_stop_check(rt);
    if (!code && inputs->hashes)
        *inputs->hashes = sl_source_hashes(source);
    if (!code && inputs->graph && inputs->trains)
        sl_features_note(source, inputs->path);
    return code;
}

/* Give the source what the options and a trained model say. */
static int follow(struct sl_runtime *rt, const struct sl_run_inputs *inputs,
                  struct sl_config *config, struct sl_source *source)
{
    const json_t *trained = inputs->trained;
    const char *model = inputs->model;
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

int sl_run_open(struct sl_runtime *rt, const struct sl_run_inputs *inputs, struct sl_config *config,
                struct sl_source *source)
{
    const int64_t columns = config->features.project_features;
    int code = open_source(rt, inputs, source);
    if (!code)
        code = follow(rt, inputs, config, source);
    if (code)
        return code;
    if (inputs->trains && !sl_config_links(config))
        code = sl_trainer_check(source);
    if (!code && inputs->trains)
        code = sl_edges_settle(config, source);
    if (!code && columns > 0)
        code = sl_projection_open(source, columns, sl_config_row_norm(config),
                                  (uint64_t)config->training.seed);
    if (!code && inputs->trains)
        code = sl_batches_check(config, source);
    return sl_runtime_agree(rt, code);
}

int sl_run_settle(struct sl_runtime *rt, struct sl_source *source, const struct sl_rates *core,
                  const bool *given, struct sl_config *config, char *chosen)
{
    struct sl_rates here;
    sl_rates_of_core(rt->cache_bytes, &here);
    int code = sl_defaults_form(rt, source, core ? core : &here, config);
    if (!code)
        code = sl_defaults_settle(config, source, given, chosen);
    source->change.projection.norm = sl_config_row_norm(config);
    if (!code)
        code = sl_objective_check(config, source);
    return sl_runtime_agree(rt, code);
}
