/* A set of vertices: a bit for each. Threads may add vertices at the same time. A sealed set tells
 * how many of its vertices come before a vertex, for half a bit more. */
#ifndef SL_DATA_VERTEX_SET_H
#define SL_DATA_VERTEX_SET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "data/block.h"

struct sl_vertex_set {
    int64_t words;
    _Atomic uint64_t *bits; // (words)
    uint32_t *before;       // (words): vertices in the words before; NULL: the set is not sealed
    struct sl_block *blocks;
};

/* Make an empty set of vertices 0 … n - 1, n <= 2^31. SL_ERR_SYSTEM. Call sl_vertex_set_free in
 * either case. */
int sl_vertex_set_create(struct sl_vertex_set *set, int64_t n);
void sl_vertex_set_free(struct sl_vertex_set *set);

/* Move the vertices of `more`, a set of the same n, into `set`, and copy them to `copy` (or NULL).
 * `more` is empty afterwards. */
void sl_vertex_set_move(struct sl_vertex_set *more, struct sl_vertex_set *set,
                        struct sl_vertex_set *copy);

int64_t sl_vertex_set_count(const struct sl_vertex_set *set);

/* Seal the set: no vertex is added afterwards. SL_ERR_SYSTEM. */
int sl_vertex_set_seal(struct sl_vertex_set *set);

static inline uint64_t sl_vertex_set_word(const struct sl_vertex_set *set, int64_t w)
{
    return atomic_load_explicit(&set->bits[w], memory_order_relaxed);
}

static inline bool sl_vertex_set_has(const struct sl_vertex_set *set, int64_t v)
{
    return sl_vertex_set_word(set, v / 64) >> (v % 64) & 1;
}

static inline void sl_vertex_set_add(struct sl_vertex_set *set, int64_t v)
{
    if (!sl_vertex_set_has(set, v)) /* most vertices are there, and reading is cheaper */
        atomic_fetch_or_explicit(&set->bits[v / 64], (uint64_t)1 << (v % 64), memory_order_relaxed);
}

/* Return the number of vertices before v in a sealed set. */
static inline int64_t sl_vertex_set_rank(const struct sl_vertex_set *set, int64_t v)
{
    const uint64_t lower = ((uint64_t)1 << (v % 64)) - 1;
    return (int64_t)set->before[v / 64] +
           __builtin_popcountll(sl_vertex_set_word(set, v / 64) & lower);
}

#endif
