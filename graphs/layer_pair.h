/* Layers of attention whose scores need both ends' rows. */
#ifndef SL_GRAPHS_LAYER_PAIR_H
#define SL_GRAPHS_LAYER_PAIR_H

#include "codelets/pair.h"
#include "graphs/edge_sums.h"

/* Parameters of sl_reduce_gatv2 and sl_reduce_transformer. */
struct sl_pair_pass {
    struct sl_pair pair;
    struct sl_tile *vectors;   // (SL_PAIR_VECTORS + K, H·R), on this rank: it never travels
    struct sl_edge_sums *sums; /* of GATv2 with edge features, M; NULL: none */
};

#endif
