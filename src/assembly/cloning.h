/* Records of edges and vertices that ranks exchange to make clones, and the steps from records to
 * clones. Shared by clones.c and clones_build.c. */
#ifndef SL_ASSEMBLY_CLONING_H
#define SL_ASSEMBLY_CLONING_H

#include <string.h>

#include "assembly/clones.h"
#include "core/rng.h"

enum { SL_DRAW_ROOT = 2, SL_DRAW_BIN = 3 }; /* draws of the stream SL_RNG_PARTS */

struct sl_edge_record {
    int32_t row, col;
    float weight; /* where edges have features, their row, as bits */
};

/* Return the weight of entry e for its record. */
static inline float sl_cloning_weight(const struct sl_csr *a, int64_t e)
{
    float weight = a->values ? a->values[e] : 1.0f;
    if (a->edges)
        memcpy(&weight, &a->edges[e], sizeof weight);
    return weight;
}

struct sl_holding { /* a vertex and a rank with a clone of it */
    int32_t vertex, rank;
};

struct sl_vertex_record { /* data of a vertex, sent to its clones */
    double left, right;
    double weight; /* sum of the absolute entries in its row of A */
    int64_t original;
    int32_t vertex, root;
    int32_t label, split;
    int32_t hop;
};

struct sl_feature_record {
    int32_t vertex, col;
    float value;
};

/* State that the steps share. */
struct sl_cloning {
    struct sl_runtime *rt;
    const struct sl_home *home;
    struct sl_clones *out;
    int64_t edges, records, features;
    struct sl_edge_record *edge; // (edges): edges of this rank's part, by row, then by column
    int64_t loops;
    struct sl_edge_record *loop;       // (loops): loops of the roots here, by vertex
    struct sl_vertex_record *record;   // (records): vertices with a clone here, by vertex
    struct sl_feature_record *feature; // (features): by vertex
    float *dense;                      // (records, features of the dataset)
    float *several;                    // (records, classes): several labels of each vertex, or NULL
    int32_t *number;  // (vertices of the graph): record of the clone here; -1: none
    int64_t *holders; // (home rows + 1): holder[holders[k]] … are the ranks with a clone of row k
    int32_t *holder;
    int32_t *root; // (home rows): rank of the root
};

/* Return the random number whose remainder by the number of clones chooses the root of a vertex. */
static inline uint64_t sl_cloning_draw(uint64_t seed, int64_t original)
{
    return sl_rng_bits(sl_rng_key(seed, SL_RNG_PARTS, 0, SL_DRAW_ROOT), (uint32_t)original, 0);
}

/* Return the bin of a vertex, 0 … delay - 1: its clones are exchanged in one of `delay` epochs. */
static inline int32_t sl_cloning_bin(uint64_t seed, int64_t original, int delay)
{
    const uint64_t key = sl_rng_key(seed, SL_RNG_PARTS, 0, SL_DRAW_BIN);
    return (int32_t)(sl_rng_bits(key, (uint32_t)original, 0) % (uint64_t)(delay > 1 ? delay : 1));
}

/* Build m->out, this rank's clones, from the records it received. Collective. */
int sl_cloning_build(struct sl_cloning *m);

int sl_cloning_no_memory(int64_t items);

#endif
