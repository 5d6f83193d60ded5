#include "groups/preload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "batches/batch.h"
#include "batches/group_epoch.h"
#include "batches/sets.h"
#include "core/error.h"

/* Predicted seconds of an epoch, for each number of hops. */
struct preload {
    struct sl_group_epoch epoch;
    double *computing; // (most + 1): seconds of the slowest group
    double *messages;  // (most + 1): seconds of the slowest group
};

static int open_preload(struct preload *p, const struct sl_batches *b)
{
    int code = sl_group_epoch_open(&p->epoch, b->source, b->config, &b->options);
    const size_t count = (size_t)p->epoch.most + 1;
    p->computing = calloc(count, sizeof *p->computing);
    p->messages = calloc(count, sizeof *p->messages);
    if (!code && !(p->computing && p->messages))
        code = sl_error(SL_ERR_SYSTEM, "no memory for the hops of %d layers", p->epoch.layers);
    return code;
}

static void close_preload(struct preload *p)
{
    sl_group_epoch_close(&p->epoch);
    free(p->computing);
    free(p->messages);
}

/* Count rows and entries of each number of hops in this rank's group, from one selection of all
 * hops. */
static int count_hops(const struct sl_batches *b, struct preload *p)
{
    struct sl_selection all = {0};
    const int code = sl_select(b->source, b->vertex, b->set_cut[b->options.sets],
                               &(struct sl_selection_options){.hops = p->epoch.layers}, &all);
    if (!code)
        sl_group_epoch_count(&p->epoch, &all);
    sl_selection_free(&all);
    return code;
}

/* Return the columns of the group's grid; 1 for a grid that is refused later. */
static double columns_of(const struct sl_batches *b)
{
    const struct sl_assembly assembly = sl_config_assembly(b->config);
    struct sl_grid grid;
    const int code = sl_grid_choose(assembly.owners.distribution, assembly.owners.replication,
                                    assembly.owners.grid, b->own.ranks, &grid);
    return code ? 1.0 : grid.columns;
}

/* Return the most seconds of any rank, so the slowest group's. */
static double slowest(struct sl_runtime *rt, double seconds)
{
    static const double NANO = 1e9;
    return (double)-sl_runtime_least(rt, -llround(seconds * NANO)) / NANO;
}

static void predict(const struct sl_batches *b, struct preload *p)
{
    const struct sl_group_epoch *e = &p->epoch;
    struct sl_runtime *rt = b->rt;
    struct sl_rates rates;
    sl_rates_of_machine(sl_runtime_computing_cores(rt), rt->process->ranks_here, rt->cache_bytes,
                        &rates);
    const struct sl_link link = sl_rates_link(&rates, rt->ranks);
    const double ranks = b->own.ranks;
    struct sl_group_among among = {
        .ranks = ranks, .groups = rt->ranks / ranks, .columns = columns_of(b)};
    const struct sl_group_ranks by = {ranks, 1.0};
    for (int h = 1; h <= e->most; h++) {
        among.outer = (double)sl_group_epoch_outer(e, h);
        p->computing[h] = slowest(rt, sl_group_epoch_computing(e, &rates, h, by));
        p->messages[h] = slowest(rt, sl_group_epoch_messages(e, &link, h, &among));
    }
}

/* Return the fastest number of hops, the largest of several equal ones. */
static int fastest(const struct preload *p)
{
    int best = p->epoch.most;
    for (int h = p->epoch.most - 1; h >= 1; h--)
        if (p->computing[h] + p->messages[h] < p->computing[best] + p->messages[best])
            best = h;
    return best;
}

static void settle(const struct preload *p, struct sl_config *config, char *reason)
{
    const int best = fastest(p), all = p->epoch.most;
    config->steps.preload_hops = best < all ? best : SL_PRELOAD_ALL;
    snprintf(
        reason, SL_PRELOAD_REASON,
        "%.8s: %.2g s of computing and %.2g s of messages predicted for an epoch; one hop: %.2g "
        "s and %.2g s; all hops: %.2g s and %.2g s",
        sl_config_text(config, "preload-hops").text, p->computing[best], p->messages[best],
        p->computing[1], p->messages[1], p->computing[all], p->messages[all]);
}

static int choose(struct sl_batches *b, struct sl_config *config, char *reason)
{
    struct preload p = {0};
    int code = sl_runtime_agree(b->rt, open_preload(&p, b));
    if (!code)
        code = sl_batches_cut(b);
    if (!code)
        code = sl_runtime_agree(b->rt, count_hops(b, &p));
    if (!code)
        predict(b, &p);
    if (!code)
        settle(&p, config, reason);
    close_preload(&p);
    return code;
}

/* Whether copies can be refreshed. With --delay 0c, clones have no exact sums to send. With a cut
 * of columns, groups of unlike sizes may cut columns in unlike ways. */
static bool may_refresh(const struct sl_batches *b)
{
    const struct sl_distribution_name *named = b->config->ranks.distribution;
    const bool cuts = b->config->ranks.grid.rows > 0 || (named && named->cuts);
    const int64_t least = sl_runtime_least(b->rt, b->own.ranks),
                  most = -sl_runtime_least(b->rt, -b->own.ranks);
    return b->config->ranks.delay != SL_DELAY_NEVER && (!cuts || least == most);
}

int sl_preload_choose(struct sl_runtime *rt, const struct sl_source *source,
                      struct sl_config *config, char *reason)
{
    struct sl_batches b = {
        .config = config, .source = source, .rt = rt, .options = sl_config_batches(config)};
    if (!b.options.chooses_preload)
        return 0;
    int code = sl_batches_group(&b);
    if (!code && b.groups.count > 1 && may_refresh(&b))
        code = choose(&b, config, reason);
    else if (!code)
        config->steps.preload_hops = SL_PRELOAD_ALL;
    sl_batches_destroy(&b);
    return code;
}
