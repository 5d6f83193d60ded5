/* Make graphs with the degrees and the clustering of another graph, made denser. */
#ifndef SL_DATA_GENERATE_BTER_H
#define SL_DATA_GENERATE_BTER_H

#include <stdint.h>

#include "data/dataset.h"

struct sl_bter_options {
    const struct sl_dataset *from;
    double scale;              /* above 0: ratio to the average degree of `from` */
    int64_t features, classes; /* at least 1 */
    uint64_t seed;
    int64_t threads; /* 0: as many as this process may run */
};

/* Make an undirected simple graph with as many vertices as `from`. Directions, weights and loops of
 * `from` are ignored. The expected degree of a vertex is `scale` times its degree in `from`.
 * Degrees over half of the vertices are cut, and the others grow a little instead. Vertices of each
 * degree keep their mean clustering coefficient, as far as so dense a graph can. Features, labels
 * and splits are random. The result depends on the options alone, not on the threads; O(edges).
 * SL_ERR_USAGE names the option that is out of range, SL_ERR_DATA says that there are no edges. */
int sl_generate_bter(const struct sl_bter_options *options, struct sl_dataset *out);

#endif
