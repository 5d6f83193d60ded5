/* Parts of sums: where a rank adds up rows of the other layers' groups. They stay from product to
 * product, so that a new one waits until the one before it has been sent. */
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

/* Those of that width, made where they are not there, by all ranks together; none with one layer.
 * SL_ERR_SYSTEM. */
int sl_partials_plan(struct sl_runtime *rt, const struct sl_distribution *d, int64_t width);

/* The part that layer `layer` has of tile (i, j) of a matrix of that width, which was planned. */
struct sl_tile *sl_partials_tile(const struct sl_distribution *d, int64_t width, int i, int layer,
                                 int j);

void sl_partials_free(struct sl_partials *partials);

#endif
