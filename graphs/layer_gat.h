/* The two halves of a layer of attention, for an input and an output in blocks. A block of the
 * output is some heads. Blocks of the input add up to the projection of a block of the output. */
#ifndef SL_GRAPHS_LAYER_GAT_H
#define SL_GRAPHS_LAYER_GAT_H

#include "codelets/attention.h"
#include "graphs/edge_sums.h"

/* A walk of a layer: `parameters` of its reduction. */
struct sl_gat_pass {
    struct sl_attention attention;
    struct sl_tile *edge;      // (K, heads): factors of edge features; NULL: there are none
    struct sl_edge_sums *sums; /* back: the gradient of `edge` */
};

/* Submit PROJECTED = H·[W | W·a_src | W·a_dst], which is cut at layer->columns.product_cut; `add`:
 * add to PROJECTED. */
void sl_gat_project(struct sl_network *net, struct sl_layer *layer, bool training, bool add,
                    struct sl_matrix *projected);

/* Return the matrix PROJECTED of a whole layer. */
struct sl_matrix *sl_gat_projected(const struct sl_layer *layer);

/* Submit OUTPUT (n, out) = epilogue(attention(PROJECTED)). Vertices' numbers take the place of
 * scores in PROJECTED. */
void sl_gat_attend(struct sl_network *net, struct sl_layer *layer, bool training,
                   const struct sl_matrix *projected, const struct sl_epilogue_tiles *epilogue,
                   const struct sl_matrix *output);

#endif
