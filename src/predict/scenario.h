/* A scenario is what predictions are about: a training, a cut graph and a machine. It has a
 * prediction for each distribution, and a choice among them. */
#ifndef SL_PREDICT_SCENARIO_H
#define SL_PREDICT_SCENARIO_H

#include "assembly/operands.h"
#include "data/partition/parts.h"
#include "predict/cover_counts.h"
#include "predict/cut_counts.h"
#include "predict/halo_counts.h"
#include "predict/prediction.h"

/* The options of a training that predictions need. Strings are borrowed. */
struct sl_training {
    struct sl_assembly assembly;
    bool inexact; /* a vertex-cut with the delay of `assembly` may be chosen */
    bool no_cut;  /* no vertex-cut may be chosen: a step computes needed rows */
    struct sl_model_shape shape;
    int product_order;            /* as sl_network_create takes it */
    int stages;                   /* the runtime's (core/message.h) */
    const struct sl_order *order; /* --order; NULL: auto */
    int64_t epochs;
    struct sl_planned_links links; /* `numbered` is the scenario's */
};

/* Figures that are known before there is a grid. All but the numbers is borrowed. */
struct sl_scenario {
    const struct sl_training *training;
    const struct sl_rates *rates;
    const struct sl_rates *core; /* one core's, which training orders products by */
    const struct sl_partition *partition;
    const struct sl_tile_counts *counts;
    const struct sl_distribution_kind *kind;
    void *own;                           /* the distribution's, as counted */
    int64_t vertices, features, classes; /* vertices: or clones, where rows are these */
    int64_t feature_entries;             /* entries of sparse features; 0: features are dense */
    int64_t row_bytes;                   /* bytes of a row of the widest dense matrix */
    int64_t numbered;                    /* struct sl_planned_links */
    bool sums_are_read; /* the first layer's sums are made once, from another graph */
    int refresh;        /* layers that aggregate before a group's copies are refreshed; 0: never */
};

/* The scenario of a training on a source, of which only the sizes need be known. */
struct sl_scenario sl_scenario_of(const struct sl_source *source,
                                  const struct sl_training *training,
                                  const struct sl_partition *partition,
                                  const struct sl_tile_counts *counts, const struct sl_rates *rates,
                                  const struct sl_rates *core);

/* Its prediction on a grid of the partition's ranks, memory and all. SL_ERR_SYSTEM;
 * sl_prediction_free in either case. */
int sl_scenario_predict(const struct sl_scenario *scenario, const struct sl_grid *grid,
                        struct sl_prediction *out);

/* ---- scenario_parts.c ---- */

/* A halo, and covers with the same parts, before training: the partition, and its counts. */
struct sl_scenario_halo {
    struct sl_partition partition;
    struct sl_tile_counts counts;
    struct sl_halo_counts halo;
    struct sl_cover_counts cover;
    bool has_cover;           /* covers are counted where parts are found soon */
    struct sl_source ordered; /* the source, its rows part by part, if there are parts */
    const char *parts;        /* the name of the parts, for messages */
    char why[256];            /* whether METIS was asked; "" where --partition has the parts */
};

/* Return whether rank 0 reads the whole adjacency, for METIS to cut it: where training has parts,
 * or may choose them, and METIS is done soon. Collective. */
bool sl_scenario_reads_whole(struct sl_runtime *rt, const struct sl_source *source,
                             const struct sl_training *training);

/* Gives the source the parts, if there are any: sl_operands_order takes them. */
void sl_scenario_halo_hand_over(struct sl_scenario_halo *halo, struct sl_source *source);

/* A vertex-cut that may be chosen: its edges, its clones and their counts. */
struct sl_scenario_cut {
    struct sl_cut_counts clones;
    struct sl_partition partition; /* cut of the clones */
    struct sl_tile_counts counts;
    struct sl_vertex_cut exact, late; /* with --delay cd-0; as --delay says, if that is another */
    bool has_late;
    struct sl_parts edges; /* none where they are expected */
    const char *parts;
};

/* Counts a vertex-cut for the ranks of `vertices`. The edges' parts follow those of --partition, or
 * METIS', which the halo (or NULL) may have. Random parts are assumed where METIS would take long
 * or more than `space` bytes, and where only the sizes of the graph are known. On this process
 * alone. SL_ERR_SYSTEM, SL_ERR_DATA; sl_scenario_cut_destroy in either case. */
int sl_scenario_cut_create(const struct sl_source *source, const struct sl_training *training,
                           const struct sl_partition *vertices, const struct sl_scenario_halo *halo,
                           int64_t space, struct sl_scenario_cut *out);
void sl_scenario_cut_destroy(struct sl_scenario_cut *cut);

/* Gives the source the edges' parts, if rank 0 has them: sl_edge_shares_find takes them.
 * Collective. */
void sl_scenario_cut_hand_over(struct sl_runtime *rt, struct sl_scenario_cut *cut,
                               struct sl_source *source);

/* A graph that is cut among ranks, and the counts of all their distributions. */
struct sl_scenario_counts {
    struct sl_source shares;       /* the graph; shares of every hop, where hops are known */
    struct sl_partition partition; /* the cut of `shares` */
    struct sl_partition vertices;  /* where hops are known: the cut of the graph without hops */
    struct sl_tile_counts counts;
    struct sl_scenario_halo halo;
    struct sl_scenario_cut cut;
    bool has_halo, has_cut; /* `has_cut`: on rank 0 alone */
    int64_t space;          /* bytes that each rank can have */
};

/* Cut a graph among ranks and count. Where only the sizes of the graph are known, expect vertices
 * in random order. Collective. SL_ERR_SYSTEM, SL_ERR_DATA; sl_scenario_counts_destroy in either
 * case. */
int sl_scenario_counts_create(struct sl_runtime *rt, const struct sl_source *source,
                              const struct sl_training *training,
                              const struct sl_partition_options *cuts,
                              struct sl_scenario_counts *out);
void sl_scenario_counts_destroy(struct sl_scenario_counts *counts);

/* ---- scenario.c ---- */

/* List predictions of all grids with no more columns than the narrowest matrix, 1D first, then of
 * the halo, of covers and of vertex-cuts, as far as they are counted. Leave out a vertex-cut with
 * too large tiles. The caller frees *list by sl_scenario_free_all. SL_ERR_SYSTEM. */
int sl_scenario_predict_all(const struct sl_scenario *scenario, struct sl_scenario_counts *counts,
                            struct sl_prediction **list, int *count);
void sl_scenario_free_all(struct sl_prediction *list, int count);

/* Choose the fastest prediction within `space` bytes (0: any), or the smallest prediction where
 * none fits. Choose 1D, if it fits, unless another prediction is over a tenth faster: results of 1D
 * are bitwise the same on any number of ranks. Else choose the faster of the halo and the cover in
 * the same way: they begin with own rows. With `inexact`, predictions with other results than one
 * rank's count, too. Such a prediction is chosen where it is over a tenth faster than the choice
 * without it, or where only it fits. Write a sentence to `reason`. */
const struct sl_prediction *sl_scenario_choose(const struct sl_prediction *list, int count,
                                               int64_t space, bool inexact, char reason[256]);

/* Choose a distribution for the ranks that there are, alike on all of them, and say why: a grid, a
 * halo, or a vertex-cut, whose parts the source then has. Collective. */
struct sl_decision {
    struct sl_grid grid;
    int named;                    /* place in sl_distribution_names */
    bool exact;                   /* false: the delay is the training's */
    char reason[256], parts[256]; /* `parts`: whether METIS was asked; "" where nobody needed to */
};
int sl_scenario_decide(struct sl_runtime *rt, struct sl_source *source,
                       const struct sl_training *training, struct sl_decision *decision);

#endif
