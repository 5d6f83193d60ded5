#include "recipe/batches_options.h"

#include <stdlib.h>

#include "core/error.h"
#include "graphs/vertex_cut.h"

/* --fanout alone samples, too. Earlier programs had the usual one with all hops. */
static int read_hops(const struct sl_config *config, struct sl_batches_options *o)
{
    enum { USUAL_FANOUT = 15 };
    const bool usual = config->steps.fanout < 0 || config->steps.fanout == USUAL_FANOUT;
    const int hops = config->steps.max_hop;
    if (hops == SL_NO_HOPS && config->steps.fanout < 0)
        return 0;
    if (hops == SL_ALL_HOPS)
        return usual ? 0
                     : sl_error(SL_ERR_USAGE, "--fanout %lld: expected no --max-hop all with it",
                                (long long)config->steps.fanout);
    o->sampled = true;
    o->hops = hops == SL_NO_HOPS ? 1 : hops;
    o->fanout = config->steps.fanout < 0 ? USUAL_FANOUT : config->steps.fanout;
    return 0;
}

static int read_preload(const struct sl_config *config, struct sl_batches_options *o)
{
    if (config->steps.preload_hops == SL_PRELOAD_ALL)
        return 0;
    o->chooses_preload = config->steps.preload_hops == SL_PRELOAD_AUTO;
    o->preload = o->chooses_preload ? 1 : config->steps.preload_hops;
    if (!config->steps.groups.given || o->sampled || o->kind->numbers > 0)
        return sl_error(SL_ERR_USAGE,
                        "--preload-hops %s: expected --groups GxP with it, --max-hop all and "
                        "--batches full",
                        sl_config_text(config, "preload-hops").text);
    return 0;
}

int sl_batches_parse(const struct sl_config *config, struct sl_batches_options *o)
{
    *o = (struct sl_batches_options){.kind = config->steps.batches.kind,
                                     .sets = config->steps.batches.sets,
                                     .each = config->steps.batches.each,
                                     .automatic = config->steps.batches.automatic,
                                     .hops = SL_ALL_HOPS,
                                     .needed = config->steps.rows == SL_ROWS_NEEDED};
    if (o->each > o->sets)
        return sl_error(SL_ERR_USAGE, "--batches %s: expected at most as many clusters in a batch",
                        sl_config_text(config, "batches").text);
    const int code = read_hops(config, o);
    return code ? code : read_preload(config, o);
}

int sl_batches_check(const struct sl_config *config, const struct sl_source *source)
{
    struct sl_batches_options options;
    if (sl_batches_parse(config, &options))
        return SL_ERR_USAGE;
    return options.sets <= source->vertices || options.sets == 1
               ? 0
               : sl_error(SL_ERR_USAGE,
                          "%s%s%s--batches %s: %s has %lld vertices (expected at most %lld %s)",
                          config->files.resume ? "--resume " : "",
                          config->files.resume ? config->files.resume : "",
                          config->files.resume ? ": " : "", sl_config_text(config, "batches").text,
                          source->path, (long long)source->vertices, (long long)source->vertices,
                          options.kind->alone ? "clusters" : "batches");
}

bool sl_batches_differ(const struct sl_config *config)
{
    return config->steps.groups.given || sl_config_has_batches(config) ||
           config->steps.rows == SL_ROWS_NEEDED;
}

struct sl_assembly sl_batches_whole(const struct sl_config *config)
{
    struct sl_assembly options = sl_config_assembly(config);
    if (!config->steps.groups.given)
        return options;
    options.owners.kind = &sl_distribution_block;
    options.owners.distribution = NULL;
    options.owners.grid = (struct sl_grid){0, 0, 0};
    options.owners.partition = NULL;
    options.owners.replication = 0;
    return options;
}

int sl_batches_options_steps(const struct sl_batches_options *o)
{
    return (int)((o->sets + o->each - 1) / o->each);
}

/* Samples and clusters have sums with their own degrees; clones that never meet, of their own
 * edges. */
bool sl_batches_read_aggregated(const struct sl_config *config,
                                const struct sl_batches_options *options)
{
    const bool meets = !sl_config_kind(config)->clones || config->ranks.delay == SL_DELAY_EXACT;
    return sl_config_aggregates(config) && meets && !options->kind->alone && !options->sampled;
}
