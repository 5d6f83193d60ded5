/* The options --groups, --batches, --preload-hops, --max-hop and --fanout: which graphs a run
 * trains on. */
#ifndef SL_RECIPE_BATCHES_OPTIONS_H
#define SL_RECIPE_BATCHES_OPTIONS_H

#include "data/select.h"
#include "data/source.h"
#include "recipe/config.h"

/* The graphs that --batches and the options beside it ask for. */
struct sl_batches_options {
    const struct sl_batches_kind *kind;
    int64_t sets, each;   /* sets of a group's vertices; sets of a step */
    bool automatic;       /* the sets are not counted yet: sl_plan_batches */
    bool sampled;         /* vertices that the sets depend on are sampled */
    int hops;             /* how far from the sets; SL_ALL_HOPS: as far as layers go */
    int64_t fanout;       /* 0: all */
    bool chooses_preload; /* the next is not chosen yet: sl_preload_choose */
    int preload;          /* layers that aggregate between two refreshings; 0: there are none */
    bool needed;          /* inner vertices are training vertices: no other row is a start */
};

/* Whether the run trains on other graphs than the whole one: several groups, or batches. */
bool sl_batches_differ(const struct sl_config *config);

/* Return which graphs a step trains on, by a configuration that sl_config_check_steps has let pass.
 */
struct sl_batches_options sl_config_batches(const struct sl_config *config);

/* Refuse more sets than the graph has vertices. Return 0 or SL_ERR_USAGE. */
int sl_batches_check(const struct sl_config *config, const struct sl_source *source);

/* How the whole graph becomes tiles: as one group would train on it, but in runs of rows on all
 * ranks where there are several groups. */
struct sl_assembly sl_batches_whole(const struct sl_config *config);

/* Return the steps of an epoch. */
int sl_batches_options_steps(const struct sl_batches_options *options);

/* Whether batches have Â·X from the whole graph: the first layer then aggregates nothing, and a
 * selection needs one hop less. */
bool sl_batches_read_aggregated(const struct sl_config *config,
                                const struct sl_batches_options *options);

#endif
