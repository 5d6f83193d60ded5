/* Makes the blocks of links (graphs/links.h) of a dataset. */
#ifndef SL_ASSEMBLY_LINK_TILES_H
#define SL_ASSEMBLY_LINK_TILES_H

#include "assembly/operands.h"
#include "graphs/links.h"

/* Decisions on links. */
struct sl_link_choice {
    enum sl_decoder decoder;
    enum sl_link_loss loss;
    int64_t width;     /* columns of embeddings */
    int64_t negatives; /* for each training link */
    uint64_t seed;
    bool measures_alone; /* nothing is trained */
};

/* Make the links of `source`, whose tiles `operands` has: training links are the edges of the
 * adjacency. Rows have one order; of the clones of a vertex, the root has its links. Collective.
 * Return 0, SL_ERR_DATA (there is no edge, or the adjacency is wrong) or SL_ERR_SYSTEM, the same on
 * all ranks; call sl_links_destroy in either case. */
int sl_links_make(struct sl_links *links, struct sl_runtime *rt, const struct sl_source *source,
                  const struct sl_operands *operands, const struct sl_link_choice *choice);

/* Return the room for negatives of `count` links in a block whose targets have the share `share` of
 * all. The number that is drawn is further from its mean once in 1e13 blocks, where links are left
 * out. */
int64_t sl_links_room(double count, double share);

#endif
