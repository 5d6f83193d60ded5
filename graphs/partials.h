/* Parts: what a rank has of rows of the other layers' groups, or of other ranks' copies. They stay
 * from aggregation to aggregation, so that a new one waits until the one before it has been sent.
 */
#ifndef SL_GRAPHS_PARTIALS_H
#define SL_GRAPHS_PARTIALS_H

#include "core/tile.h"
#include "graphs/reducer.h"

struct sl_distribution;

struct sl_sums {
    struct sl_sums *next;
    int output; /* of a reducer */
    struct sl_matrix matrix;
};

struct sl_partials {
    struct sl_sums *first; /* a list, each of another width, type or output */
};

/* Makes the parts of a reducer that moves matrices of that width and type, unless they are there.
 * A grid of one layer has none. All ranks call this in the same order. SL_ERR_SYSTEM. */
int sl_partials_plan(struct sl_runtime *rt, const struct sl_distribution *d,
                     const struct sl_reducer *reducer, enum sl_type moved, int64_t width);

/* The parts of one output, which were planned: row block i · layers + l is layer l's of row tile i.
 */
const struct sl_matrix *sl_partials_of(const struct sl_distribution *d,
                                       const struct sl_reducer *reducer, enum sl_type moved,
                                       int output, int64_t width);

/* With a vertex-cut: a matrix of that width, which was planned, for sums over copies. */
const struct sl_matrix *sl_partials_totals(const struct sl_distribution *d, int64_t width);

void sl_partials_free(struct sl_partials *partials);

#endif
