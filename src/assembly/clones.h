/* Makes the clones of a vertex-cut (graphs/vertex_cut.h) from rows of a dataset. Each rank has read
 * some rows. It gets the edges of one part, with all data of the vertices that these edges touch.
 */
#ifndef SL_ASSEMBLY_CLONES_H
#define SL_ASSEMBLY_CLONES_H

#include "data/source.h"
#include "graphs/vertex_cut.h"

/* The rows that a rank has read. */
struct sl_home {
    const struct sl_part *part;
    const int64_t *bounds; // (ranks + 1): rank r has read the rows bounds[r] … bounds[r + 1] - 1
    const double *left, *right; // (rows): row scales
    const int32_t *edge_part;   // (entries): the rank that gets each entry
    uint64_t seed;
    const struct sl_source *source; /* knows the vertices' hops */
    int delay;
    bool several; /* the dataset has labels (n, classes), on all ranks */
};

struct sl_clones {
    struct sl_part part;   /* rows and columns are clones: both ends of an entry are on this rank.
                              Labels, splits and stored loops are at roots only */
    int64_t *bounds;       // (ranks + 1): rank r has the clones bounds[r] … bounds[r + 1] - 1
    double *left, *right;  // (rows): row scales
    double *weight;        // (rows): sum of the absolute entries in the vertex's whole row of A
    int32_t *diagonal;     // (rows): column of the loop that normalisation adds; -1 at a leaf
    int32_t *hop;          // (rows): hop of the vertex, ascending (sl_source_hop)
    int32_t *row;          // (rows): row that was read, in the graph
    int64_t leaves, roots; /* clones here with a root elsewhere; the reverse */
    struct sl_clone *leaf, *root;
};

/* Make this rank's clones, in the order of the vertices, which is hop by hop if hops are known. The
 * seed draws the root of a vertex among the ranks with a clone. A vertex without edges gets its
 * root on any rank. Meanwhile each rank takes 4 bytes for every vertex of the graph. Collective.
 * Return 0, SL_ERR_SYSTEM or SL_ERR_DATA (over 2^31 - 1 clones), the same on all ranks; call
 * sl_clones_destroy in either case. */
int sl_clones_create(struct sl_runtime *rt, const struct sl_home *home, struct sl_clones *out);
void sl_clones_destroy(struct sl_clones *clones);

#endif
