/* Which grid of ranks to train on: a forecast for each, and a choice. */
#ifndef SL_TRAIN_WORKLOAD_H
#define SL_TRAIN_WORKLOAD_H

#include "train/forecast.h"
#include "train/halo_counts.h"

/* What is known before there is a grid. All but the numbers is borrowed. */
struct sl_workload {
    const struct sl_config *config;
    const struct sl_rates *rates;
    const struct sl_partition *partition;
    const struct sl_tile_counts *counts;
    struct sl_halo *halo; // (2): rows that travel as a halo; NULL: tiles do
    int64_t vertices, features, classes;
    int64_t feature_entries; /* of sparse features; 0: dense ones */
};

/* That of training on a source, or on one of which only the sizes are there. */
struct sl_workload sl_workload_of(const struct sl_source *source, const struct sl_config *config,
                                  const struct sl_partition *partition,
                                  const struct sl_tile_counts *counts,
                                  const struct sl_rates *rates);

/* Its forecast on a grid of the partition's ranks, memory and all. SL_ERR_SYSTEM; sl_forecast_free
 * in either case. */
int sl_workload_forecast(const struct sl_workload *work, const struct sl_grid *grid,
                         struct sl_forecast *out);

/* What a halo would be: the partition into parts, and what is counted of it. */
struct sl_workload_halo {
    struct sl_partition partition;
    struct sl_tile_counts counts;
    struct sl_halo_counts halo;
    const char *parts; /* which parts: what is told */
};

/* METIS' parts, those of --partition, or, of a graph that METIS would take long for, runs of the
 * order that there is: for as many ranks as `cut` says. Collective. SL_ERR_SYSTEM, SL_ERR_DATA;
 * sl_workload_halo_destroy in either case. */
int sl_workload_halo_create(struct sl_runtime *rt, const struct sl_source *source,
                            const struct sl_config *config, const struct sl_partition_options *cut,
                            struct sl_workload_halo *out);
void sl_workload_halo_destroy(struct sl_workload_halo *halo);

/* Those on all grids of the ranks that have no more columns than the narrowest matrix, 1D first,
 * and of a halo (NULL: none), last; *list is the caller's (sl_workload_free). SL_ERR_SYSTEM. */
int sl_workload_forecast_all(const struct sl_workload *work, struct sl_workload_halo *halo,
                             struct sl_forecast **list, int *count);
void sl_workload_free(struct sl_forecast *list, int count);

/* The one to train on: the fastest of those that take no more than `space` bytes (0: any), or,
 * where none does, the one that takes least; but 1D, whose results are bitwise the same on any
 * number of ranks, where no other is predicted to be over a tenth faster. `reason`, a sentence,
 * says why. */
const struct sl_forecast *sl_workload_choose(const struct sl_forecast *list, int count,
                                             int64_t space, char reason[256]);

/* What to train on with the ranks that there are, the same on all of them, and why: a grid, or a
 * halo. Collective. */
struct sl_decision {
    struct sl_grid grid;
    bool halo;
    char reason[256];
};
int sl_workload_decide(struct sl_runtime *rt, const struct sl_source *source,
                       const struct sl_config *config, struct sl_decision *decision);

#endif
