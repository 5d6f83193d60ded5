#include "recipe/batches_options.h"

#include <stdlib.h>

#include "core/error.h"
#include "graphs/vertex_cut.h"

enum { USUAL_FANOUT = 15 };

/* --fanout alone samples one hop. */
struct sl_batches_options sl_config_batches(const struct sl_config *config)
{
    const struct sl_config_steps *steps = &config->steps;
    const bool sampled =
        steps->max_hop == SL_NO_HOPS ? steps->fanout >= 0 : steps->max_hop != SL_ALL_HOPS;
    const bool chooses = steps->preload_hops == SL_PRELOAD_AUTO;
    return (struct sl_batches_options){
        .kind = steps->batches.kind,
        .sets = steps->batches.sets,
        .each = steps->batches.each,
        .automatic = steps->batches.automatic,
        .sampled = sampled,
        .hops = !sampled                       ? SL_ALL_HOPS
                : steps->max_hop == SL_NO_HOPS ? 1
                                               : steps->max_hop,
        .fanout = !sampled            ? 0
                  : steps->fanout < 0 ? USUAL_FANOUT
                                      : steps->fanout,
        .chooses_preload = chooses,
        .preload = chooses ? 1 : steps->preload_hops,
        .needed = steps->rows == SL_ROWS_NEEDED,
    };
}

/* Earlier programs had the usual fanout with all hops. */
int sl_config_check_steps(const struct sl_config *config)
{
    const struct sl_config_steps *steps = &config->steps;
    const struct sl_batches_options o = sl_config_batches(config);
    if (o.each > o.sets)
        return sl_error(SL_ERR_USAGE, "--batches %s: expected at most as many clusters in a batch",
                        sl_config_text(config, "batches").text);
    if (steps->max_hop == SL_ALL_HOPS && steps->fanout >= 0 && steps->fanout != USUAL_FANOUT)
        return sl_error(SL_ERR_USAGE, "--fanout %lld: expected no --max-hop all with it",
                        (long long)steps->fanout);
    if (o.preload > 0 && (!steps->groups.given || o.sampled || o.kind->numbers > 0))
        return sl_error(SL_ERR_USAGE,
                        "--preload-hops %s: expected --groups GxP with it, --max-hop all and "
                        "--batches full",
                        sl_config_text(config, "preload-hops").text);
    return 0;
}

int sl_batches_check(const struct sl_config *config, const struct sl_source *source)
{
    const struct sl_batches_options options = sl_config_batches(config);
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
