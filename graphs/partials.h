/* Parts of sums: where a rank adds up rows of the other layers' groups, or of other ranks' copies.
 * They stay from product to product, so that a new one waits until the one before it has been sent.
 */
#ifndef SL_GRAPHS_PARTIALS_H
#define SL_GRAPHS_PARTIALS_H

#include "core/tile.h"

struct sl_distribution;

struct sl_sums {
    struct sl_sums *next;
    struct sl_matrix matrix;
};

struct sl_partials {
    struct sl_sums *first; /* a list, each of another width */
};

/* Those of that width, made where they are not there, by all ranks together; none with one layer
 * and no vertex-cut.
 * SL_ERR_SYSTEM. */
int sl_partials_plan(struct sl_runtime *rt, const struct sl_distribution *d, int64_t width);

/* The part that layer `layer` has of tile (i, j) of a matrix of that width, which was planned. */
struct sl_tile *sl_partials_tile(const struct sl_distribution *d, int64_t width, int i, int layer,
                                 int j);

/* With a vertex-cut: a matrix of that width, which was planned, for sums over copies. */
const struct sl_matrix *sl_partials_totals(const struct sl_distribution *d, int64_t width);

void sl_partials_free(struct sl_partials *partials);

#endif
