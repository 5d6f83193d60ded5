/* From rows of a dataset to the copies of vertices of a vertex-cut (graphs/vertex_cut.h): each rank
 * has read some rows, and gets the edges of one part, with all that is known of the vertices that
 * these meet. */
#ifndef SL_ASSEMBLY_COPIES_H
#define SL_ASSEMBLY_COPIES_H

#include "data/source.h"
#include "graphs/vertex_cut.h"

/* What a rank has read. */
struct sl_home {
    const struct sl_part *part;
    const int64_t *bounds; // (ranks + 1): rank r has read the rows bounds[r] … bounds[r + 1] - 1
    const double *left, *right; // (rows)
    const int32_t *edge_part;   // (entries): the rank of each
    uint64_t seed;
    int delay;
};

struct sl_copies {
    struct sl_part part;   /* the rows of the graph are copies, and columns too: entries have both
                            * ends here. Labels and splits are at roots, and so are stored loops */
    int64_t *bounds;       // (ranks + 1): rank r has the copies bounds[r] … bounds[r + 1] - 1
    double *left, *right;  // (rows)
    int32_t *diagonal;     // (rows): the column of the loop that normalisation adds: -1 at a leaf
    int64_t leaves, roots; /* copies here whose root is elsewhere, and the other way round */
    struct sl_copy *leaf, *root;
};

/* Collective. The root of a vertex is one of the ranks that have it, drawn at random with the seed;
 * of one without edges, any rank. Takes 4 bytes on each rank for every vertex of the graph
 * meanwhile. SL_ERR_SYSTEM or SL_ERR_DATA (over 2^31 - 1 copies), the same on all ranks;
 * sl_copies_destroy in either case. */
int sl_copies_create(struct sl_runtime *rt, const struct sl_home *home, struct sl_copies *out);
void sl_copies_destroy(struct sl_copies *copies);

#endif
