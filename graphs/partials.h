/* Partial sums: a rank's states for rows of groups at other depths. A vertex-cut has totals of
 * gradients over clones. These matrices stay from aggregation to aggregation. A new partial sum
 * waits until the previous one has been sent. */
#ifndef SL_GRAPHS_PARTIALS_H
#define SL_GRAPHS_PARTIALS_H

#include "core/tile.h"
#include "graphs/reducer.h"

struct sl_distribution;

struct sl_sums {
    struct sl_sums *next;
    int output; /* output of the reducer */
    struct sl_matrix matrix;
};

struct sl_partials {
    struct sl_sums *first; /* a list, whose sums differ in width, type or output */
};

/* Make the partial sums of a reducer with results of that type, cut at `cut` (columns of the grid +
 * 1), unless they exist already. A grid of depth 1 has none. All ranks call this in the same order.
 * Return 0 or SL_ERR_SYSTEM. */
int sl_partials_plan(struct sl_runtime *rt, const struct sl_distribution *d,
                     const struct sl_reducer *reducer, enum sl_type moved, const int64_t *cut);

/* Return the planned partial sums of one output: row block i · layers + l has the sums of depth l
 * for row tile i. */
const struct sl_matrix *sl_partials_of(const struct sl_distribution *d,
                                       const struct sl_reducer *reducer, enum sl_type moved,
                                       int output, const int64_t *cut);

/* Return the planned matrix of that width for totals over the clones of a vertex-cut. */
const struct sl_matrix *sl_partials_totals(const struct sl_distribution *d, int64_t width);

void sl_partials_free(struct sl_partials *partials);

#endif
