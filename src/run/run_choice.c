#include "run/run_choice.h"

#include <string.h>

#include "core/error.h"
#include "graphs/distribution.h"
#include "predict/order_choice.h"
#include "predict/scenario.h"

/* Whether the ranks are a column of one group each, whatever else is chosen. */
static bool is_1d(const struct sl_runtime *rt, const struct sl_config *config)
{
    struct sl_grid grid;
    const bool named = config->ranks.distribution || config->ranks.grid.rows > 0;
    return rt->ranks > 1 && named && !config->steps.groups.given &&
           sl_config_kind(config) == &sl_distribution_block &&
           !sl_grid_choose(config->ranks.distribution, config->ranks.replication,
                           config->ranks.grid, rt->ranks, &grid) &&
           grid.rows == rt->ranks;
}

int sl_train_choose_order(struct sl_runtime *rt, const struct sl_source *source,
                          struct sl_config *config, struct sl_train_choice *reasons)
{
    struct sl_order_choice choice;
    if (config->ranks.order)
        return 0;
    const struct sl_training training = sl_config_training(config, source);
    const bool whole = rt->ranks > 1 && !config->steps.groups.given &&
                       sl_scenario_reads_whole(rt, source, &training);
    struct sl_random_order random = {.counted = false};
    int code = is_1d(rt, config) ? sl_random_order_predict(rt, source, &training, &random) : 0;
    if (!code)
        code = sl_order_choose(rt, source, &training, whole, &random, &choice);
    if (code)
        return code;
    memcpy(reasons->order, choice.reason, sizeof reasons->order);
    config->ranks.order = sl_order_find(choice.order);
    return 0;
}

/* With --allow-inexact, a delay and its sums belong to the inexact choice. */
static void settle_delay(struct sl_config *config, bool exact)
{
    config->ranks.allow_inexact = false; /* the choice is made */
    if (exact) {
        config->ranks.partial_sums = SL_PARTIAL_SUMS_SCALED;
        config->ranks.delay = SL_DELAY_EXACT;
    } else if (config->ranks.delay == SL_DELAY_EXACT) {
        config->ranks.delay = SL_DELAY_NEVER;
    }
}

/* Decide for the graph that steps train on. Where the first layer's sums come from the whole graph,
 * decide for the whole graph. */
static int decide(struct sl_runtime *rt, struct sl_source *source, const struct sl_config *config,
                  struct sl_decision *decision)
{
    const bool needed = config->steps.rows == SL_ROWS_NEEDED;
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
    if (config->ranks.distribution || config->ranks.grid.rows > 0 || config->ranks.replication)
        return 0;
    if (config->steps.groups.given) { /* of a group, whose graph is not there yet */
        config->ranks.distribution = sl_distribution_find(sl_distribution_halo.name);
        return 0;
    }
    if (rt->ranks == 1) {
        settle_delay(config, true);
        return 0;
    }
    int code = decide(rt, source, config, &decision);
    if (code)
        return code;
    settle_delay(config, decision.exact);
    memcpy(reasons->distribution, decision.reason, sizeof reasons->distribution);
    memcpy(reasons->parts, decision.parts, sizeof reasons->parts);
    /* Leave auto for 1D: auto trains in 1D, and checkpoints equal the checkpoints of one rank. */
    const struct sl_grid *grid = &decision.grid;
    const struct sl_distribution_name *named = &sl_distribution_names[decision.named];
    const bool is_grid = named->kind == &sl_distribution_block;
    if (is_grid && grid->columns * grid->depth == 1)
        return 0;
    if (is_grid)
        config->ranks.grid = *grid;
    else
        config->ranks.distribution = named;
    return 0;
}
