/* R-MAT graphs: few vertices have most edges, and communities lie within communities. */
#ifndef SL_DATA_GENERATE_RMAT_H
#define SL_DATA_GENERATE_RMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "data/dataset.h"

struct sl_rmat_options {
    int64_t scale;      /* 2^scale vertices, 1 … 30 */
    double edge_factor; /* edges drawn per vertex, loops and duplicates among them: 0 … 10^6 */
    double a, b, c; /* probabilities of the adjacency's first three quarters; they and the fourth
                       add up to 1 */
    bool symmetric; /* the reverse of every edge is an edge */
    bool permute;   /* vertices in random order; else vertex 0 has most edges */
    int64_t features, classes; /* at least 1 */
    uint64_t seed;
    int64_t threads; /* 0: as many as this process may run */
};

#define SL_RMAT_DEFAULTS                                                                    \
    {                                                                                       \
        .scale = 20, .edge_factor = 16, .a = 0.57, .b = 0.19, .c = 0.19, .symmetric = true, \
        .permute = true, .features = 64, .classes = 8, .seed = 1                            \
    }

/* Make an R-MAT graph without loops and duplicates, with random features, labels and splits
 * (Chakrabarti, Zhan, Faloutsos, "R-MAT: a recursive model for graph mining", SDM'04; the defaults
 * are Graph500's). The result depends on the options alone, not on the threads; O(edges).
 * SL_ERR_USAGE names the option that is out of range. */
int sl_generate_rmat(const struct sl_rmat_options *options, struct sl_dataset *out);

#endif
