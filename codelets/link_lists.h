/* The links of a training step: all training links of some vertices, and as many negatives for
 * each, whose targets are drawn. */
#ifndef SL_CODELETS_LINK_LISTS_H
#define SL_CODELETS_LINK_LISTS_H

#include "codelets/links.h"

/* The training links whose sources are rows first … first + rows - 1. A target is a row of the
 * graph. */
struct sl_link_list {
    int64_t first, rows;
    const int64_t *start;   // (rows + 1): the first link of each row
    const int32_t *target;  // (links), in the order of the vertices' numbers in each row
    const uint32_t *source; // (rows): the vertices' numbers
};

/* How the targets of negatives are drawn. Vertex numbers do not depend on the order of the rows. */
struct sl_link_draw {
    int64_t least, end; /* numbers of the vertices that are targets: least … end - 1 */
    const int32_t *row; // (end): the row of each vertex; NULL: the vertex's number
    int64_t negatives;  /* for each link */
    uint64_t key;
    int tiles;
    const int64_t *row_cut; // (tiles + 1): cuts of the rows into tiles
};

/* Fill a segment for each tile of targets: segments (tiles), whose headers say their room. A link
 * that a full segment has no room for is left out. Negative j of the k-th link of a source has the
 * target
 *
 *     least + floor(bits(key, source, k · negatives + j) · (end - least) / 2^64)
 *
 * work (the most rows of a tile + 1). */
void sl_link_lists_make(const struct sl_link_list *list, const struct sl_link_draw *draw,
                        struct sl_scored_link *const *segments, int32_t *work);

/* Submit the links of a step into blocks (count), which have one owner and together a segment for
 * each tile of targets, in order. Headers of segments say their room. The task reads `list`, and
 * the arrays of `draw`, on the host; they stay as they are. */
void sl_submit_link_lists(struct sl_runtime *rt, const struct sl_link_list *list,
                          const struct sl_link_draw *draw, struct sl_tile *work, int count,
                          struct sl_tile *blocks);

#endif
