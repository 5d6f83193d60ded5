/* Rows that the loss depends on: --rows needed. The inner vertices of a step's graph are then its
 * training vertices, and layers compute what these depend on (graphs/reach.h). */
#ifndef SL_TRAIN_NEEDED_H
#define SL_TRAIN_NEEDED_H

#include "data/select.h"
#include "train/config.h"

/* Set *kept (*left, freed by the caller) to the vertices of a split among `inner` (count; rows of
 * the files; NULL: all vertices), in their order. Splits are drawn. Return 0, SL_ERR_DATA or
 * SL_ERR_SYSTEM. */
int sl_needed_keep(const struct sl_source *source, enum sl_split split, const int64_t *inner,
                   int64_t count, int64_t **kept, int64_t *left);

/* Select the graph of a step with needed rows: the training vertices, and what these depend on.
 * Splits are drawn. Return as sl_select; sl_selection_free in either case. */
int sl_needed_select(const struct sl_source *source, const struct sl_config *config,
                     struct sl_selection *selection);

/* Set *takes to whether evaluations between epochs take a graph of their own: of validation
 * vertices, and of vertices that these depend on, where the vertices are few enough. The same on
 * all ranks. Return 0, SL_ERR_DATA or SL_ERR_SYSTEM. */
int sl_needed_validation(const struct sl_source *source, const struct sl_config *config,
                         bool *takes);

/* Refuse --rows needed where other rows count, too. Part of sl_config_check. Return 0 or
 * SL_ERR_USAGE. */
int sl_needed_check(const struct sl_config *config);

/* Settle --rows auto: needed, where fewer rows are predicted to save enough of a step's time
 * on the ranks `by`. Splits are drawn where they may be needed. `reason` (SL_NEEDED_REASON): why;
 * "": it was no auto. Collective. Return 0, SL_ERR_DATA or SL_ERR_SYSTEM, the same on all ranks. */
enum { SL_NEEDED_REASON = 256 };
struct sl_needed_ranks {
    int ranks, here;              /* here: that share a machine */
    const struct sl_rates *rates; /* of a rank */
};
int sl_needed_choose(struct sl_runtime *rt, struct sl_source *source, struct sl_config *config,
                     const struct sl_needed_ranks *by, char *reason);

#endif
