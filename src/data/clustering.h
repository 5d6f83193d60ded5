/* Clustering of a graph: the share of pairs of a vertex's neighbours that are joined. */
#ifndef SL_DATA_CLUSTERING_H
#define SL_DATA_CLUSTERING_H

#include <stdint.h>

#include "data/dataset.h"

/* The vertices of a simple graph by degree, and the mean local clustering coefficient of each
 * degree: the share of pairs of neighbours that are joined. */
struct sl_clustering {
    int64_t max_degree;
    int32_t *vertices;   // (n): vertices by rising degree
    int64_t *first;      // (max_degree + 2): degree d has vertices[first[d]] … [first[d + 1] - 1]
    double *coefficient; // (max_degree + 1): mean of each degree; 0 without pairs
    struct sl_block *memory;
};

/* Sort the vertices and compute the coefficients. `graph` is symmetric, without loops. Degrees with
 * up to 2048 pairs of neighbours are counted. For other degrees, 2048 random pairs give the
 * coefficient to about 0.01 (Seshadhri, Pinar, Kolda, "Wedge sampling for computing clustering
 * coefficients and triangle counts on large graphs", 2014). The result depends only on graph and
 * key (sl_rng_key). SL_ERR_SYSTEM: out of memory. */
int sl_clustering_compute(const struct sl_csr *graph, uint64_t key, int threads,
                          struct sl_clustering *out);
/* Return the mean coefficient of all vertices that have pairs of neighbours; NAN if none has. */
double sl_clustering_mean(const struct sl_clustering *clustering);

void sl_clustering_free(struct sl_clustering *clustering);

#endif
