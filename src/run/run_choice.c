#include "run/run_choice.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "graphs/distribution.h"
#include "predict/order_choice.h"
#include "predict/scenario.h"

/* Whether the ranks are a column of one group each, whatever else is chosen. */
static bool is_1d(const struct sl_runtime *rt, const struct sl_config *config)
{
    struct sl_grid grid;
    const bool named = strcmp(config->distribution, "auto") != 0 || config->grid;
    return rt->ranks > 1 && named && !config->groups &&
           sl_config_kind(config) == &sl_distribution_block &&
           !sl_grid_choose(config->distribution, config->replication, config->grid, rt->ranks,
                           &grid) &&
           grid.rows == rt->ranks;
}

int sl_train_choose_order(struct sl_runtime *rt, const struct sl_source *source,
                          struct sl_config *config, struct sl_train_choice *reasons)
{
    struct sl_order_choice choice;
    if (strcmp(config->order, "auto") != 0)
        return 0;
    const struct sl_training training = sl_config_training(config, source);
    const bool whole =
        rt->ranks > 1 && !config->groups && sl_scenario_reads_whole(rt, source, &training);
    struct sl_random_order random = {.counted = false};
    int code = is_1d(rt, config) ? sl_random_order_predict(rt, source, &training, &random) : 0;
    if (!code)
        code = sl_order_choose(rt, source, &training, whole, &random, &choice);
    if (code)
        return code;
    memcpy(reasons->order, choice.reason, sizeof reasons->order);
    return sl_config_set_text(&config->order, choice.order);
}

/* With --allow-inexact, a delay and its sums belong to the inexact choice. */
static int settle_delay(struct sl_config *config, bool exact)
{
    config->allow_inexact = false; /* the choice is made */
    if (!exact)
        return sl_config_delay(config) == SL_DELAY_EXACT ? sl_config_set_text(&config->delay, "0c")
                                                         : 0;
    config->partial_sums = SL_PARTIAL_SUMS_SCALED;
    return sl_config_set_text(&config->delay, "cd-0");
}

/* Decide for the graph that steps train on. Where the first layer's sums come from the whole graph,
 * decide for the whole graph. */
static int decide(struct sl_runtime *rt, struct sl_source *source, const struct sl_config *config,
                  struct sl_decision *decision)
{
    const bool needed = config->rows == SL_ROWS_NEEDED && !sl_config_aggregates(config);
    struct sl_selection graph = {0};
    int code = needed ? sl_runtime_agree(rt, sl_needed_select(source, config, &graph)) : 0;
    struct sl_source *trained = needed ? &graph.source : source;
    const struct sl_training training = sl_config_training(config, trained);
    if (!code)
        code = sl_scenario_decide(rt, trained, &training, decision);
    sl_selection_free(&graph);
    return code;
}

int sl_train_choose_distribution(struct sl_runtime *rt, struct sl_source *source,
                                 struct sl_config *config, struct sl_train_choice *reasons)
{
    struct sl_decision decision;
    char name[40];
    if (strcmp(config->distribution, "auto") != 0 || config->grid || config->replication)
        return 0;
    if (config->groups) /* of a group, whose graph is not there yet */
        return sl_runtime_agree(rt, sl_config_set_text(&config->distribution, "halo"));
    if (rt->ranks == 1)
        return settle_delay(config, true);
    int code = decide(rt, source, config, &decision);
    if (!code)
        code = sl_runtime_agree(rt, settle_delay(config, decision.exact));
    if (code)
        return code;
    memcpy(reasons->distribution, decision.reason, sizeof reasons->distribution);
    memcpy(reasons->parts, decision.parts, sizeof reasons->parts);
    /* Leave auto for 1D: auto trains in 1D, and checkpoints equal the checkpoints of one rank. */
    const struct sl_grid *grid = &decision.grid;
    const bool is_grid = sl_distribution_find(decision.distribution) == &sl_distribution_block;
    if (is_grid && grid->columns * grid->depth == 1)
        return 0;
    if (is_grid)
        snprintf(name, sizeof name, "%dx%dx%d", grid->rows, grid->columns, grid->depth);
    code = is_grid ? sl_config_set_text(&config->grid, name)
                   : sl_config_set_text(&config->distribution, decision.distribution);
    return sl_runtime_agree(rt, code);
}
