/* Graphs with the degrees and the clustering of another one, made denser. */
#ifndef SL_DATA_GENERATE_BTER_H
#define SL_DATA_GENERATE_BTER_H

#include <stdint.h>

#include "data/dataset.h"

struct sl_bter_options {
    const struct sl_dataset *from;
    double scale;              /* above 0: the average degree is so many times that of `from` */
    int64_t features, classes; /* at least 1 */
    uint64_t seed;
    int64_t threads; /* 0: as many as this process may run */
};

/* An undirected simple graph of as many vertices as `from`, whose directions, weights and loops are
 * ignored: vertex v has `scale` times its degree there in expectation, and vertices of each degree
 * have the mean clustering coefficient they have there, as far as so dense a graph can. Features,
 * labels and splits are random. A pure function of the options, whatever the threads; O(edges).
 * SL_ERR_USAGE names the option that is out of range, SL_ERR_DATA says that there are no edges. */
int sl_generate_bter(const struct sl_bter_options *options, struct sl_dataset *out);

#endif
