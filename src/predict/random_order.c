/* Random order in 1D (MG-GCN, section 4): the tiles of the order that there is are counted, the
 * tiles of random order expected. Each has a predicted epoch, to which the time is added that ranks
 * wait for the rank with most entries in a window of stages. */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/rates.h"
#include "predict/order_choice.h"
#include "predict/tile_counts.h"

/* To count reads the adjacency once more: a rank's share has at most so many entries. */
static const double MOST_ENTRIES = 30e6;

enum { NOW, RANDOM };

/* In random order, tiles of equally many rows have equally many entries. */
static int expect_random(const struct sl_partition *now, const struct sl_source *source, bool loops,
                         int64_t *row_cut, struct sl_partition *partition,
                         struct sl_tile_counts *counts)
{
    *partition = *now;
    partition->row_cut = row_cut;
    for (int t = 0; t <= now->tiles; t++)
        row_cut[t] = source->vertices * t / now->tiles;
    return sl_tile_counts_expect(partition, source->adjacency.indices.count, loops, counts);
}

static int predict(const struct sl_runtime *rt, const struct sl_source *source,
                   const struct sl_training *training, const struct sl_partition *partition,
                   const struct sl_tile_counts *counts, double *seconds, double *stages)
{
    struct sl_rates rates, core;
    struct sl_prediction prediction;
    const struct sl_grid grid = {rt->ranks, 1, 1};
    sl_rates_of_machine(sl_runtime_computing_cores(rt), rt->process->ranks_here, rt->cache_bytes,
                        &rates);
    sl_rates_of_core(rt->cache_bytes, &core);
    const struct sl_scenario scenario =
        sl_scenario_of(source, training, partition, counts, &rates, &core);
    const int code = sl_scenario_predict(&scenario, &grid, &prediction);
    const struct sl_stage_balance one = sl_tile_counts_stages(counts, partition->rank_cut,
                                                              rt->ranks, 1),
                                  window = sl_tile_counts_stages(counts, partition->rank_cut,
                                                                 rt->ranks, training->stages);
    *seconds = prediction.seconds;
    if (rt->all_cores >= rt->ranks) /* ranks that share cores do not wait: others work meanwhile */
        *seconds += (window.all - 1.0) * sl_order_sum_seconds(source, training) / rt->all_cores;
    *stages = one.all;
    sl_prediction_free(&prediction);
    return code;
}

/* On rank 0, whose rates decide. */
static int compare(const struct sl_runtime *rt, const struct sl_source *source,
                   const struct sl_training *training, const struct sl_partition *now,
                   const struct sl_tile_counts *counts, struct sl_random_order *out)
{
    struct sl_partition random;
    struct sl_tile_counts expected = {0};
    int64_t *row_cut = malloc((size_t)(now->tiles + 1) * sizeof *row_cut);
    int code = row_cut ? 0 : sl_error(SL_ERR_SYSTEM, "no memory for %d tiles", now->tiles);
    if (!code)
        code = expect_random(now, source, training->assembly.loops, row_cut, &random, &expected);
    if (!code)
        code = predict(rt, source, training, now, counts, &out->seconds[NOW], &out->stages[NOW]);
    if (!code)
        code = predict(rt, source, training, &random, &expected, &out->seconds[RANDOM],
                       &out->stages[RANDOM]);
    out->counted = true;
    sl_tile_counts_destroy(&expected);
    free(row_cut);
    return code;
}

int sl_random_order_predict(struct sl_runtime *rt, const struct sl_source *source,
                            const struct sl_training *training, struct sl_random_order *out)
{
    const struct sl_partition_options options = sl_operands_cut(rt, &training->assembly);
    struct sl_partition partition = {0};
    struct sl_tile_counts counts = {0};
    *out = (struct sl_random_order){.counted = false};
    if ((double)source->adjacency.indices.count > MOST_ENTRIES * rt->ranks)
        return 0;
    int code = sl_partition_create(rt, &partition, source, &options);
    if (!code)
        code = sl_tile_counts_read(rt, source, &partition, training->assembly.loops, NULL, NULL,
                                   &counts);
    if (!code && rt->rank == 0)
        code = compare(rt, source, training, &partition, &counts, out);
    code = sl_runtime_agree(rt, code);
    if (!code)
        sl_runtime_broadcast(rt, 0, out, sizeof *out);
    sl_tile_counts_destroy(&counts);
    sl_partition_destroy(&partition);
    return code;
}
