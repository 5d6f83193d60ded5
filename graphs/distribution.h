/* Distributions: how one group of ranks cuts the vertices and who owns which tile. One file and one
 * row in the table of distribution.c each. */
#ifndef SL_GRAPHS_DISTRIBUTION_H
#define SL_GRAPHS_DISTRIBUTION_H

#include "core/sparse.h"
#include "core/tile.h"

struct sl_distribution;

struct sl_distribution_kind {
    const char *name, *summary;

    /* η: the rank of dense tile (i, j) of any matrix with a row per vertex. */
    int (*dense_owner)(const struct sl_distribution *d, int i, int j);
    /* α: the rank of sparse tile (i, k) of the adjacency. */
    int (*sparse_owner)(const struct sl_distribution *d, int i, int k);
    /* Submits Z = A·H. */
    void (*aggregate)(struct sl_runtime *rt, const struct sl_distribution *d,
                      const struct sl_sparse_matrix *a, const struct sl_matrix *h,
                      const struct sl_matrix *z);
};

struct sl_distribution {
    const struct sl_distribution_kind *kind;
    int ranks;
    int tiles;              /* row tiles T */
    const int64_t *row_cut; // (T + 1), borrowed
};

/* The kind of that name, or NULL. */
const struct sl_distribution_kind *sl_distribution_find(const char *name);

/* Owner functions with the signature that sl_matrix_create and sl_sparse_matrix_create take; the
 * context is the distribution. */
int sl_distribution_dense_owner(const void *distribution, int i, int j);
int sl_distribution_sparse_owner(const void *distribution, int i, int k);

extern const struct sl_distribution_kind sl_distribution_1d;

#endif
