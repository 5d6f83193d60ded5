/* From rows of a dataset to the clones of a vertex-cut (graphs/vertex_cut.h). Each rank has read
 * some rows. It gets the edges of one part, with all data of the vertices that these edges
 * touch. */
#ifndef SL_ASSEMBLY_CLONES_H
#define SL_ASSEMBLY_CLONES_H

#include "data/source.h"
#include "graphs/vertex_cut.h"

/* What a rank has read. */
struct sl_home {
    const struct sl_part *part;
    const int64_t *bounds; // (ranks + 1): rank r has read the rows bounds[r] … bounds[r + 1] - 1
    const double *left, *right; // (rows)
    const int32_t *edge_part;   // (entries): the rank of each
    uint64_t seed;
    const struct sl_source *source; /* of their hops */
    int delay;
    bool several; /* the dataset has labels (n, classes), on all ranks */
};

struct sl_clones {
    struct sl_part part;   /* the rows of the graph are clones, and columns too: entries have both
                            * ends here. Labels and splits are at roots, and so are stored loops */
    int64_t *bounds;       // (ranks + 1): rank r has the clones bounds[r] … bounds[r + 1] - 1
    double *left, *right;  // (rows)
    double *weight;        // (rows): of the vertex's row of A, all entries; absolute values
    int32_t *diagonal;     // (rows): the column of the loop that normalisation adds: -1 at a leaf
    int32_t *hop;          // (rows), ascending (sl_source_hop)
    int32_t *row;          // (rows): of the graph whose rows were read
    int64_t leaves, roots; /* clones here whose root is elsewhere, and the other way round */
    struct sl_clone *leaf, *root;
};

/* Make this rank's clones, in the order of the vertices. Rows that were read are in the order of
 * their hops, where hops are known. Collective. The seed draws the root of a vertex among the ranks
 * that have a clone; a vertex without edges may be on any rank. Meanwhile each rank takes 4 bytes
 * for every vertex of the graph. SL_ERR_SYSTEM or SL_ERR_DATA (over 2^31 - 1 clones), the same on
 * all ranks; sl_clones_destroy in either case. */
int sl_clones_create(struct sl_runtime *rt, const struct sl_home *home, struct sl_clones *out);
void sl_clones_destroy(struct sl_clones *clones);

#endif
