/* Shared by src/assembly/clones.c and clones_build.c: the records of edges and vertices that ranks
 * exchange, and the steps from records to clones. */
#ifndef SL_ASSEMBLY_CLONING_H
#define SL_ASSEMBLY_CLONING_H

#include "assembly/clones.h"
#include "core/rng.h"

enum { SL_DRAW_ROOT = 2, SL_DRAW_BIN = 3 }; /* of SL_RNG_PARTS */

struct sl_edge_record {
    int32_t row, col;
    float weight;
};

struct sl_holding { /* a rank has a clone */
    int32_t vertex, rank;
};

struct sl_vertex_record { /* what is known of a vertex */
    double left, right;
    double weight; /* of its row of A: the sum of the entries' absolute values */
    int64_t original;
    int32_t vertex, root;
    int32_t label, split;
    int32_t loops; /* stored */
    int32_t hop;
    float loop;
};

struct sl_feature_record {
    int32_t vertex, col;
    float value;
};

/* What the steps share. */
struct sl_cloning {
    struct sl_runtime *rt;
    const struct sl_home *home;
    struct sl_clones *out;
    int64_t edges, records, features;
    struct sl_edge_record *edge;       // (edges), of this rank's part: by row, then by column
    struct sl_vertex_record *record;   // (records), of its clones: by vertex
    struct sl_feature_record *feature; // (features), by vertex
    float *dense;                      // (records, features of the dataset)
    float *several;                    // (records, classes): labels, if a vertex has several
    int32_t *number;  // (vertices of the graph): of the clone here; -1: there is none
    int64_t *holders; // (home rows + 1): the ranks that have row k: holder[holders[k]] …
    int32_t *holder;
    int32_t *root; // (home rows)
};

/* Of a vertex of the dataset: modulo the number of its clones, the root. */
static inline uint64_t sl_cloning_draw(uint64_t seed, int64_t original)
{
    return sl_rng_bits(sl_rng_key(seed, SL_RNG_PARTS, 0, SL_DRAW_ROOT), (uint32_t)original, 0);
}

/* With a delay, the turn of its clones. */
static inline int32_t sl_cloning_bin(uint64_t seed, int64_t original, int delay)
{
    const uint64_t key = sl_rng_key(seed, SL_RNG_PARTS, 0, SL_DRAW_BIN);
    return (int32_t)(sl_rng_bits(key, (uint32_t)original, 0) % (uint64_t)(delay > 1 ? delay : 1));
}

/* Out of what came here: the clones with all that is theirs. Collective. */
int sl_cloning_build(struct sl_cloning *m);

int sl_cloning_no_memory(int64_t items);

#endif
