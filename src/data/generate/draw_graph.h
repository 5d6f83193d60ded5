/* Draw a random graph with communities from the weights of its vertices. */
#ifndef SL_DATA_GENERATE_DRAW_GRAPH_H
#define SL_DATA_GENERATE_DRAW_GRAPH_H

#include <stdint.h>

#include "data/block.h"
#include "data/dataset.h"

struct sl_draw_graph {
    int64_t vertices; /* below 2^31 */
    int64_t communities;
    const int32_t *community; // (vertices)
    const float *inside; // (vertices): weight of draws to members of the own community, at least 0
    const float *anywhere; // (vertices): weight of draws to all vertices, at least 0
    uint64_t inside_key, anywhere_key;
    int threads;
};

/* Make an undirected simple graph as CSR in new blocks, with sorted rows and equal to its
 * transpose. Vertices u != v are joined with probability 1 - exp(-x), independently of all other
 * pairs. x is anywhere_u anywhere_v, plus inside_u inside_v within one community (a
 * degree-corrected block model: Karrer, Newman 2011; Norros, Reittu 2006). The graph does not
 * depend on the threads. O(edges), without a sort. At its peak the arrays take 1.8 times the memory
 * of the result and 50 bytes per vertex. SL_ERR_SYSTEM: out of memory. */
int sl_graph_draw(const struct sl_draw_graph *graph, struct sl_block **blocks, struct sl_csr *out);

#endif
