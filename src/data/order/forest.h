/* Trees as an array of parents, in which a root is its own parent. */
#ifndef SL_DATA_ORDER_FOREST_H
#define SL_DATA_ORDER_FOREST_H

#include <stdint.h>

/* Return the root of v's tree, and halve the path on the way. Several threads may call this while
 * no thread joins trees: the roots do not depend on the paths. */
static inline int32_t sl_forest_root(int32_t *parent, int32_t v)
{
    for (;;) {
        const int32_t above = __atomic_load_n(&parent[v], __ATOMIC_RELAXED);
        if (above == v)
            return v;
        const int32_t next = __atomic_load_n(&parent[above], __ATOMIC_RELAXED);
        if (next == above)
            return above;
        __atomic_store_n(&parent[v], next, __ATOMIC_RELAXED);
        v = next;
    }
}

#endif
